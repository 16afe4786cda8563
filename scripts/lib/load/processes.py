"""The client processes of a session: started early, given their parts, ended surely."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection as Channel
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from scripts.lib.load import limits
from scripts.lib.load.wire import Assignment, Failed, Finished, Ready, Start, Tick

_READY_TIMEOUT_S = 120.0

OnTick = Callable[[int, int, int], None]
"""Called with done, in flight, failed."""


class ClientError(RuntimeError):
    """A client process could not do its part."""


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processes_needed(streams: int, events_per_s: float, cores: int) -> int:
    """Return how many client processes a load needs, never more than one a core.

    Args:
        streams: Streams open at a time.
        events_per_s: Expected stream events a second over all of them.
        cores: Cores the client may use; the server's are not known to be others.
    """
    by_streams = -(-streams // limits.STREAMS_PER_PROCESS)
    by_events = -(-round(events_per_s) // limits.EVENTS_PER_S_PER_PROCESS)
    return max(1, min(cores, max(by_streams, by_events)))


class ClientProcesses:
    """A group of client processes that play one point at a time."""

    def __init__(self, count: int) -> None:
        self._channels: list[Channel[Any, Any]] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        for _ in range(count):
            self._start_one()

    def __len__(self) -> int:
        return len(self._processes)

    def _start_one(self) -> None:
        root = Path(__file__).resolve().parents[3]
        ours, theirs = Pipe(duplex=True)
        path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH", "")]))
        process = subprocess.Popen(
            [sys.executable, "-m", "scripts.lib.load.worker", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path},
        )
        theirs.close()
        self._channels.append(ours)
        self._processes.append(process)

    def play(
        self, assignments: list[Assignment], on_tick: OnTick | None = None
    ) -> tuple[float, list[Finished]]:
        """Play one point, one assignment a process, from a common start.

        Returns:
            The start (``time.monotonic``) and what each process brought back.

        Raises:
            ClientError: A process failed or died.
        """
        channels = self._channels[: len(assignments)]
        for channel, assignment in zip(channels, assignments, strict=True):
            self._send(channel, assignment)
        for channel in channels:
            self._expect_ready(channel)
        start = time.monotonic() + limits.BARRIER_S
        for channel in channels:
            self._send(channel, Start(start))
        return start, self._collect(channels, on_tick)

    def _expect_ready(self, channel: Channel[Any, Any]) -> None:
        if not channel.poll(_READY_TIMEOUT_S):
            raise ClientError(
                f"a client process did not open its connections within {_READY_TIMEOUT_S:g} s"
            )
        message = self._receive(channel)
        if not isinstance(message, Ready):
            raise ClientError(getattr(message, "error", "a client process did not get ready"))

    def _collect(self, channels: list[Channel[Any, Any]], on_tick: OnTick | None) -> list[Finished]:
        finished: dict[int, Finished] = {}
        ticks = {index: Tick(0, 0, 0) for index in range(len(channels))}
        while len(finished) < len(channels):
            waiting = [c for i, c in enumerate(channels) if i not in finished]
            for ready in wait(waiting):
                index = channels.index(ready)  # type: ignore[arg-type]
                message = self._receive(channels[index])
                if isinstance(message, Finished):
                    finished[index] = message
                    failed = sum(not answer.ok for answer in message.answers)
                    ticks[index] = Tick(len(message.answers), failed, 0)
                elif isinstance(message, Tick):
                    ticks[index] = message
                elif isinstance(message, Failed):
                    raise ClientError(message.error)
            if on_tick is not None:
                values = ticks.values()
                on_tick(
                    sum(t.done for t in values),
                    sum(t.in_flight for t in values),
                    sum(t.failed for t in values),
                )
        return [finished[index] for index in range(len(channels))]

    def _send(self, channel: Channel[Any, Any], message: object) -> None:
        try:
            channel.send(message)
        except OSError as problem:
            raise ClientError(self._death()) from problem

    def _receive(self, channel: Channel[Any, Any]) -> object:
        try:
            return channel.recv()
        except (EOFError, OSError) as problem:
            raise ClientError(self._death()) from problem

    def _death(self) -> str:
        codes = [str(p.poll()) for p in self._processes if p.poll() is not None]
        return f"a client process died (exit status {', '.join(codes) or 'unknown'})"

    def close(self) -> None:
        """End all processes; safe to call again and after Ctrl-C."""
        for channel in self._channels:
            with contextlib.suppress(OSError):
                channel.close()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._channels, self._processes = [], []
