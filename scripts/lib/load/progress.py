"""What a person sees while a load session runs: one line a state, one bar a point."""

from __future__ import annotations

import sys
import time
from typing import Any, Protocol, TextIO

from tqdm import tqdm

PLAIN_INTERVAL_S = 10.0


class Progress(Protocol):
    """What the session tells whoever watches it."""

    def state(self, text: str) -> None:
        """Say what begins now, in one line."""

    def start(self, label: str, total: int, limit_s: float | None = None) -> None:
        """Begin a point of ``total`` requests; no more are sent after ``limit_s``."""

    def update(self, done: int, in_flight: int, failed: int) -> None:
        """Say how far the point is: requests finished, running and failed so far."""

    def finish(self, text: str = "") -> None:
        """End the point; ``text`` is its result in one line."""


class Silent:
    """Says nothing (tests, other programs)."""

    def state(self, text: str) -> None:
        """See Progress."""

    def start(self, label: str, total: int, limit_s: float | None = None) -> None:
        """See Progress."""

    def update(self, done: int, in_flight: int, failed: int) -> None:
        """See Progress."""

    def finish(self, text: str = "") -> None:
        """See Progress."""


class ConsoleProgress:
    """Writes to standard error: a bar with the time left, or a line every 10 s if no terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._bar: tqdm[Any] | None = None
        self._label, self._total = "", 0
        self._limit_s: float | None = None
        self._started = self._last = 0.0

    def state(self, text: str) -> None:
        """See Progress."""
        self._line(text)

    def start(self, label: str, total: int, limit_s: float | None = None) -> None:
        """See Progress."""
        self.finish()
        self._label, self._total, self._limit_s = label, total, limit_s
        self._started = self._last = time.monotonic()
        if self._terminal:
            self._bar = tqdm(
                total=total, desc=label, unit="req", file=self._stream, leave=False, ncols=100
            )

    def update(self, done: int, in_flight: int, failed: int) -> None:
        """See Progress."""
        if self._bar is not None:
            self._bar.set_postfix_str(f"{in_flight} in flight, {failed} failed", refresh=False)
            self._bar.update(done - self._bar.n)
            return
        now = time.monotonic()
        if self._label and now - self._last >= PLAIN_INTERVAL_S:
            self._last = now
            self._line(self._plain(done, in_flight, failed, now - self._started))

    def finish(self, text: str = "") -> None:
        """See Progress."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        self._label = ""
        if text:
            self._line(text)

    def _plain(self, done: int, in_flight: int, failed: int, elapsed_s: float) -> str:
        return (
            f"{self._label}: {done}/{self._total} done, {in_flight} in flight, "
            f"{failed} failed, {elapsed_s:.0f} s{self._left(done, elapsed_s)}"
        )

    def _left(self, done: int, elapsed_s: float) -> str:
        """Say how long the rest will take, or that the point will be cut before its end."""
        if not done:
            return ""
        left_s = elapsed_s * (self._total - done) / done
        if self._limit_s is not None and elapsed_s + left_s > self._limit_s:
            return f"; no more are sent after {self._limit_s:g} s (point_time_limit_s)"
        return f", about {left_s:.0f} s left"

    def _line(self, text: str) -> None:
        if self._bar is not None:
            self._bar.clear()
        self._stream.write(text + "\n")
        self._stream.flush()
