"""What the session's process and its client processes tell each other.

Plain data of the standard library: a client process must start fast and stay small.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass


@dataclass(slots=True)
class Target:
    """Where requests go, and the bytes in front of each body."""

    host: str
    port: int
    head: bytes
    tls: bool = False

    def request(self, body: bytes) -> bytes:
        """Return the whole request for ``body``."""
        return b"%sContent-Length: %d\r\n\r\n%s" % (self.head, len(body), body)


@dataclass(slots=True)
class Assignment:
    """One client process's part of one point.

    ``offsets_s`` (open loop) are the intended send times after the common start, ascending;
    without them ``slots`` requests are kept in flight (closed loop). ``slots`` of an open
    loop is the cap on requests in flight, 0 for none. A closed loop sends nothing more once
    ``send_for_s`` have passed since the start.
    """

    target: Target
    indices: list[int]
    bodies: list[bytes]
    slots: int
    offsets_s: list[float] | None
    timeout_s: float
    send_for_s: float | None = None


@dataclass(slots=True)
class Answered:
    """One request as a client process saw it; times are ``time.monotonic`` seconds."""

    index: int
    intended_s: float
    sent_s: float
    token_times: array[float]
    status: int | None
    input_tokens: int | None
    output_tokens: int | None
    tokens_from: str
    finish_reason: str | None
    ok: bool
    error: str | None
    end_s: float


@dataclass(slots=True)
class Ready:
    """The connections that could be opened are open, and all requests are built."""


@dataclass(slots=True)
class Start:
    """Begin at this ``time.monotonic`` instant."""

    at_s: float


@dataclass(slots=True)
class Tick:
    """How far a process is."""

    done: int
    failed: int
    in_flight: int


@dataclass(slots=True)
class Finished:
    """One process's records of one point, and what the process itself did."""

    answers: list[Answered]
    cpu_s: float
    wall_s: float
    peak_memory_mib: float
    loop_lag_ms: list[float]
    read_lag_ms: array[float]
    retries: int


@dataclass(slots=True)
class Failed:
    """The process could not do its part."""

    error: str
