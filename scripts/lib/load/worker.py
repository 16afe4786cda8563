"""A client process: ``python -m scripts.lib.load.worker FD``, started by the session.

It takes assignments over a socket, plays them and sends the records back. It ends when the
session's process does: the socket then closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import signal
import sys
from collections.abc import Coroutine
from multiprocessing.connection import Connection as Channel
from pathlib import Path
from time import monotonic
from typing import Any

import uvloop

from scripts.lib.load.client import PointRun
from scripts.lib.load.wire import Assignment, Failed, Finished, Ready, Start, Tick

_TICK_S = 0.5


def main(descriptor: int) -> None:
    """Play assignments until the session closes the socket or sends None."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the session, which ends us
    channel: Channel[Any, Any] = Channel(descriptor)
    while True:
        try:
            message = channel.recv()
        except (EOFError, OSError):
            return
        if message is None:
            return
        result = _run(_play(channel, message))
        os.set_blocking(descriptor, True)  # the event loop, which watched it, had changed that
        channel.send(result)


def _run(work: Coroutine[Any, Any, Finished | Failed]) -> Finished | Failed:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


async def _play(channel: Channel[Any, Any], assignment: Assignment) -> Finished | Failed:
    run = PointRun(assignment)
    await run.open_connections()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        channel.send(Ready())
        start = await _receive(channel)
        if not isinstance(start, Start):
            return Failed("stopped before the start")
        return await _measure(channel, run, start)
    finally:
        run.close()
        gc.enable()
        gc.unfreeze()


async def _measure(channel: Channel[Any, Any], run: PointRun, start: Start) -> Finished:
    ticker = asyncio.create_task(_tick(channel, run))
    stopper = asyncio.create_task(_stop_when_told(channel, run))
    cpu, wall = _cpu_s(), monotonic()
    await run.run(start.at_s)
    cpu, wall = _cpu_s() - cpu, monotonic() - wall
    ticker.cancel()
    stopper.cancel()
    answers = run.parse_rest()
    return Finished(
        answers=answers,
        cpu_s=cpu,
        wall_s=wall,
        peak_memory_mib=peak_memory_mib(),
        loop_lag_ms=run.loop_lag_ms,
        read_lag_ms=run.read_lag_ms,
        retries=run.retries,
    )


async def _receive(channel: Channel[Any, Any]) -> object:
    """Wait for a message without stopping the loop; exit if the session is gone."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(channel.fileno(), readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(channel.fileno())
    os.set_blocking(channel.fileno(), True)
    try:
        return channel.recv()
    except (EOFError, OSError):
        os._exit(1)


async def _stop_when_told(channel: Channel[Any, Any], run: PointRun) -> None:
    await _receive(channel)
    run.stop()


async def _tick(channel: Channel[Any, Any], run: PointRun) -> None:
    while True:
        await asyncio.sleep(_TICK_S)
        with contextlib.suppress(BlockingIOError):  # a session that does not read may miss one
            channel.send(Tick(run.done, run.failed, run.in_flight))


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def peak_memory_mib() -> float:
    """Return this process's peak resident memory in MiB.

    From VmHWM: ``ru_maxrss`` of a started process begins with its parent's.
    """
    try:
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main(int(sys.argv[1]))
