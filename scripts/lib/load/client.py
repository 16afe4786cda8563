"""What one client process does during one point: closed or open loop, in one event loop."""

from __future__ import annotations

import asyncio
import ssl
from array import array
from collections import deque
from collections.abc import Coroutine
from time import monotonic
from typing import Any

from scripts.lib.load import limits
from scripts.lib.load.connection import Connection, RawAnswer
from scripts.lib.load.stream import parse_answer
from scripts.lib.load.wire import Answered, Assignment

_CONNECTS_AT_A_TIME = 32
_SPARE_CONNECTIONS = 4
_SWEEP_S = 0.25
_STALE_WITHIN_S = 1.0


class PointRun:
    """Sends an assignment's requests and keeps what came back."""

    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._loop = asyncio.get_running_loop()
        target = assignment.target
        self._requests = [target.request(body) for body in assignment.bodies]
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._waiting: deque[RawAnswer] = deque()
        self._raw: deque[RawAnswer] = deque()
        self._ended: list[tuple[Connection, RawAnswer]] = []
        self._raw_bytes = 0
        self._parsing = False
        self._retried: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._next_arrival = 0
        self._opening = 0
        self._all_done = asyncio.Event()
        self._start_s = 0.0
        self.answers: list[Answered] = []
        self.loop_lag_ms: list[float] = []
        self.read_lag_ms = array("d")
        self.connect_errors: list[str] = []
        self.done = self.failed = self.in_flight = 0
        self.retries = 0
        self.stopped = False

    # Connections

    async def open_connections(self) -> None:
        """Open what the start needs: one a slot, or the expected number of an open loop."""
        wanted = self._connections_wanted()
        gate = asyncio.Semaphore(_CONNECTS_AT_A_TIME)

        async def one() -> None:
            async with gate:
                if self.connect_errors:
                    return  # nobody is there; each request will say so
                try:
                    self._idle.append(await self._connect())
                except OSError as problem:
                    self.connect_errors.append(_connect_error(problem))

        await asyncio.gather(*(one() for _ in range(wanted)))

    def _connections_wanted(self) -> int:
        part = self._assignment
        if part.offsets_s is None:
            return min(part.slots, len(part.bodies))
        rate = len(part.offsets_s) / max(part.offsets_s[-1], 1.0) if part.offsets_s else 0.0
        expected = round(2 * rate) + _SPARE_CONNECTIONS
        return min(part.slots or expected, len(part.bodies), expected)

    async def _connect(self) -> Connection:
        target = self._assignment.target
        _, connection = await asyncio.wait_for(
            self._loop.create_connection(
                lambda: Connection(self._on_end, self._on_idle_loss, self.read_lag_ms),
                target.host,
                target.port,
                ssl=ssl.create_default_context() if target.tls else None,
            ),
            limits.CONNECT_TIMEOUT_S,
        )
        return connection

    def _on_idle_loss(self, connection: Connection) -> None:
        if connection in self._idle:
            self._idle.remove(connection)

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.alive:
                return connection
        return None

    # Running

    async def run(self, start_s: float) -> None:
        """Send everything from ``start_s`` on (``time.monotonic``) and wait for the last answer."""
        self._start_s = start_s
        await asyncio.sleep(max(0.0, start_s - monotonic()))
        if not self._requests:
            return
        timers = [
            asyncio.create_task(self._sweep()),
            asyncio.create_task(self._probe()),
        ]
        if self._assignment.offsets_s is None:
            self._begin_closed_loop()
        else:
            self._send_arrivals()
        await self._all_done.wait()
        for timer in timers:
            timer.cancel()

    def stop(self) -> None:
        """Abort what is in flight and end."""
        self.stopped = True
        self._waiting.clear()
        self._next_arrival = len(self._requests)
        for connection in list(self._busy):
            connection.give_up("the measurement was stopped")
        self._all_done.set()

    def _begin_closed_loop(self) -> None:
        total = len(self._requests)
        for index in range(min(self._assignment.slots, total)):
            self._next_arrival = index + 1
            self._dispatch(RawAnswer(index, self._start_s))

    def _send_arrivals(self) -> None:
        """Send every request whose time has come and set the timer for the next one."""
        offsets = self._assignment.offsets_s
        assert offsets is not None
        while self._next_arrival < len(offsets):
            intended = self._start_s + offsets[self._next_arrival]
            wait = intended - monotonic()
            if wait > 0:
                self._loop.call_later(wait, self._send_arrivals)
                return
            answer = RawAnswer(self._next_arrival, intended)
            self._next_arrival += 1
            cap = self._assignment.slots
            if cap and self.in_flight >= cap:
                self._waiting.append(answer)
            else:
                self._dispatch(answer)

    def _dispatch(self, answer: RawAnswer) -> None:
        """Send on an idle connection; without one, open it first."""
        self.in_flight += 1
        connection = self._take_idle()
        if connection is None:
            self._spawn(self._open_and_send(answer))
        else:
            self._send(connection, answer)
        if self._assignment.offsets_s is not None:
            self._keep_spares()

    def _send(self, connection: Connection, answer: RawAnswer) -> None:
        self._busy.add(connection)
        connection.send(answer, self._requests[answer.index])

    async def _open_and_send(self, answer: RawAnswer) -> None:
        try:
            connection = await self._connect()
        except OSError as problem:
            answer.sent_s = answer.end_s = monotonic()
            answer.broken = _connect_error(problem)
            await asyncio.sleep(0.05)
            self._collect(answer)
            return
        self._send(connection, answer)

    def _keep_spares(self) -> None:
        cap = self._assignment.slots
        spares = len(self._idle) + self._opening
        open_now = len(self._busy) + spares
        left = len(self._requests) - self._next_arrival
        if spares < min(_SPARE_CONNECTIONS, left) and (not cap or open_now < cap):
            self._opening += 1
            self._spawn(self._open_spare())

    async def _open_spare(self) -> None:
        try:
            self._idle.append(await self._connect())
        except OSError:
            return  # the request that needs it will say so
        finally:
            self._opening -= 1

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Answers

    def _on_end(self, connection: Connection, answer: RawAnswer) -> None:
        self._busy.discard(connection)
        if self._is_stale(connection, answer):
            self._retried.add(answer.index)
            self.retries += 1
            again = RawAnswer(answer.index, answer.intended_s)
            self._spawn(self._open_and_send(again))
            return
        self._ended.append((connection, answer))
        if len(self._ended) == 1:
            self._loop.call_soon(self._after_reads)

    def _after_reads(self) -> None:
        """Go on only after every piece that had come was read: sending costs, times must not."""
        ended, self._ended = self._ended, []
        for connection, answer in ended:
            self._collect(answer, connection)

    def _is_stale(self, connection: Connection, answer: RawAnswer) -> bool:
        """A kept connection that the server closed just as we used it: not the request's fault."""
        return (
            answer.lost
            and not answer.pieces
            and connection.carried > 1
            and not self.stopped
            and answer.index not in self._retried
            and monotonic() - answer.sent_s < _STALE_WITHIN_S
        )

    def _collect(self, answer: RawAnswer, connection: Connection | None = None) -> None:
        """Keep the answer for later and send the next request at once."""
        self.done += 1
        self.in_flight -= 1
        if answer.broken is not None or not _looks_good(answer):
            self.failed += 1
        if connection is not None and connection.alive:
            self._idle.append(connection)
        self._send_next()
        self._raw.append(answer)
        self._raw_bytes += sum(map(len, answer.pieces))
        if self._raw_bytes > limits.MAX_RAW_BYTES_PER_PROCESS and not self._parsing:
            self._parsing = True
            self._loop.call_later(0.002, self._parse_one)
        cut = self.in_flight == 0 and self._out_of_time()
        if self.done == len(self._requests) or cut:
            self._all_done.set()

    def _out_of_time(self) -> bool:
        """Whether a closed loop with a time limit sends no more."""
        limit = self._assignment.send_for_s
        closed = self._assignment.offsets_s is None
        return closed and limit is not None and monotonic() - self._start_s > limit

    def _send_next(self) -> None:
        if self._waiting:
            self._dispatch(self._waiting.popleft())
        elif self._assignment.offsets_s is not None or self._out_of_time():
            return
        elif self._next_arrival < len(self._requests):
            answer = RawAnswer(self._next_arrival, monotonic())
            self._next_arrival += 1
            self._dispatch(answer)

    def _parse_one(self) -> None:
        """Make room: parse the oldest answer, one a turn, so that no timestamp waits long."""
        if self._raw:
            self._parse(self._raw.popleft())
        if self._raw_bytes > limits.MAX_RAW_BYTES_PER_PROCESS and self._raw:
            self._loop.call_later(0.002, self._parse_one)
        else:
            self._parsing = False

    def _parse(self, answer: RawAnswer) -> None:
        self._raw_bytes -= sum(map(len, answer.pieces))
        self.answers.append(read_answer(answer, self._assignment.indices[answer.index]))

    def parse_rest(self) -> list[Answered]:
        """Parse what is left, after the clock, and return all answers."""
        while self._raw:
            self._parse(self._raw.popleft())
        return self.answers

    def close(self) -> None:
        """Close every connection."""
        for task in self._tasks:
            task.cancel()
        for connection in [*self._idle, *self._busy]:
            connection.close()

    # Timers

    async def _sweep(self) -> None:
        """Give up on requests that take longer than the timeout."""
        timeout = self._assignment.timeout_s
        while True:
            await asyncio.sleep(_SWEEP_S)
            limit = monotonic() - timeout
            for connection in list(self._busy):
                if connection.answer is not None and connection.answer.sent_s < limit:
                    connection.give_up(f"no end of the answer within {timeout:g} s")

    async def _probe(self) -> None:
        """Measure how late this loop runs: so late are its timestamps."""
        while True:
            before = monotonic()
            await asyncio.sleep(limits.LOOP_PROBE_S)
            self.loop_lag_ms.append(max(0.0, (monotonic() - before - limits.LOOP_PROBE_S) * 1000))


def read_answer(answer: RawAnswer, index: int) -> Answered:
    """Parse one raw answer into its record."""
    if answer.broken is not None and not answer.pieces:
        return Answered(
            index, answer.intended_s, answer.sent_s, array("d"), None, None, None, "none", None,
            False, answer.broken, answer.end_s,
        )  # fmt: skip
    record = parse_answer(answer.pieces, answer.times, closed=answer.closed)
    broken = answer.broken is not None and not record.ok
    return Answered(
        index=index,
        intended_s=answer.intended_s,
        sent_s=answer.sent_s,
        token_times=array("d", record.token_times),
        status=record.status,
        input_tokens=record.input_tokens,
        output_tokens=record.output_tokens,
        tokens_from=record.tokens_from,
        finish_reason=record.finish_reason,
        ok=record.ok,
        error=answer.broken if broken else record.error,
        end_s=answer.end_s,
    )


def _looks_good(answer: RawAnswer) -> bool:
    return bool(answer.pieces) and answer.pieces[0][8:13] == b" 200 "


def _connect_error(problem: OSError) -> str:
    text = problem.strerror or str(problem) or type(problem).__name__
    return f"no connection to the server: {text}"
