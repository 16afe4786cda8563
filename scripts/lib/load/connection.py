"""One HTTP/1.1 connection that carries one streamed answer at a time.

The hot path does nothing but store bytes and the time they came; what they mean is read
after the point. To know when an answer has ended, only its last bytes are looked at.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import sys
from array import array
from collections.abc import Callable
from time import monotonic
from typing import Any

from scripts.lib.load.stream import Head, decode_body, parse_head

_LAST_CHUNK = b"0\r\n\r\n"
_TAIL_BYTES = 48

_TCP_INFO_BYTES, _LAST_DATA_RECV = 60, struct.Struct("=I")
_LAST_DATA_RECV_OFFSET = 52
"""Linux's ``struct tcp_info``: milliseconds since the last packet with data arrived."""


class RawAnswer:
    """The bytes of one answer as received, unparsed."""

    __slots__ = (
        "broken",
        "closed",
        "end_s",
        "index",
        "intended_s",
        "lost",
        "pieces",
        "sent_s",
        "times",
    )

    def __init__(self, index: int, intended_s: float) -> None:
        self.index = index
        self.intended_s = intended_s
        self.sent_s = 0.0
        self.end_s = 0.0
        self.pieces: list[bytes] = []
        self.times = array("d")
        self.closed = False
        self.lost = False
        self.broken: str | None = None


OnEnd = Callable[["Connection", RawAnswer], None]
OnIdleLoss = Callable[["Connection"], None]


class Connection(asyncio.Protocol):
    """Sends one request at a time and gives each raw answer to ``on_end``."""

    def __init__(self, on_end: OnEnd, on_idle_loss: OnIdleLoss, read_lag_ms: array[float]) -> None:
        """Make one; ``read_lag_ms`` gets how long first and last pieces lay unread."""
        self._on_end = on_end
        self._read_lag_ms = read_lag_ms
        self._socket: socket.socket | None = None
        self._on_idle_loss = on_idle_loss
        self._transport: Any = None
        self._fd = -1
        self._head: Head | None = None
        self._left = -1
        self.answer: RawAnswer | None = None
        self.alive = False
        self.carried = 0

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - uvloop's has no public type
        """Remember the transport, and the socket for direct writes (not under TLS)."""
        self._transport = transport
        self.alive = True
        descriptor = transport.get_extra_info("socket").fileno()
        if transport.get_extra_info("ssl_object") is None:
            self._fd = descriptor
        if sys.platform == "linux":
            self._socket = socket.socket(fileno=descriptor)

    def send(self, answer: RawAnswer, request: bytes) -> None:
        """Send ``request`` now; uvloop's own write would wait for the end of the loop's turn."""
        self.answer, self._head, self._left = answer, None, -1
        self.carried += 1
        answer.sent_s = monotonic()
        written = 0
        if self._fd >= 0:
            try:
                written = os.write(self._fd, request)
            except BlockingIOError:
                written = 0
            except OSError as problem:
                answer.lost = True
                self.give_up(f"the connection broke while sending: {problem.strerror}")
                return
        if written < len(request):
            self._transport.write(request[written:])

    def data_received(self, data: bytes) -> None:
        """Store the piece; notice the answer's end."""
        now = monotonic()
        answer = self.answer
        if answer is None:
            return
        answer.times.append(now)
        answer.pieces.append(data)
        head = self._head
        if head is None:
            self._note_lag()
            self._read_head(answer)
        elif head.chunked:
            if data.endswith(_LAST_CHUNK) or len(data) < len(_LAST_CHUNK) or head.has_trailer:
                self._end_if_complete(answer)
        elif self._left >= 0:
            self._left -= len(data)
            if self._left <= 0:
                self._end(answer)

    def _note_lag(self) -> None:
        """Ask the kernel how long the data just read had been there."""
        if self._socket is not None:
            info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO_BYTES)
            if len(info) == _TCP_INFO_BYTES:
                lag = _LAST_DATA_RECV.unpack_from(info, _LAST_DATA_RECV_OFFSET)[0]
                self._read_lag_ms.append(lag)

    def _forget_socket(self) -> None:
        if self._socket is not None:
            self._socket.detach()  # the descriptor is the transport's to close
            self._socket = None

    def _read_head(self, answer: RawAnswer) -> None:
        raw = b"".join(answer.pieces)
        try:
            head = parse_head(raw)
        except ValueError:
            self.give_up("the server's answer is not HTTP")
            return
        if head is None:
            return
        self._head = head
        if head.chunked:
            if raw.endswith(_LAST_CHUNK):
                self._end_if_complete(answer)
        elif head.length is not None:
            self._left = head.length - (len(raw) - head.body_start)
            if self._left <= 0:
                self._end(answer)

    def _end_if_complete(self, answer: RawAnswer) -> None:
        tail = b"".join(answer.pieces[-6:])[-_TAIL_BYTES:]
        if self._head is None or not (tail.endswith(_LAST_CHUNK) or self._head.has_trailer):
            return
        if tail.endswith(_LAST_CHUNK) and b"[DONE]" in tail:
            self._end(answer)  # the usual end; anything else is worth reading the whole framing
        elif decode_body(b"".join(answer.pieces), self._head, closed=False).complete:
            self._end(answer)

    def _end(self, answer: RawAnswer) -> None:
        self._note_lag()
        answer.end_s = answer.times[-1] if answer.times else monotonic()
        self.answer = None
        if self._head is not None and not self._head.keeps_alive:
            self.close()
        self._on_end(self, answer)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the running answer with what came so far."""
        self.alive = False
        self._forget_socket()
        answer, self.answer = self.answer, None
        if answer is None:
            self._on_idle_loss(self)
            return
        answer.lost = True
        answer.closed = exc is None
        answer.end_s = monotonic()
        if exc is not None and answer.broken is None:
            answer.broken = f"the connection broke: {exc}"
        self._on_end(self, answer)

    def give_up(self, reason: str) -> None:
        """Drop the connection; the running answer ends with ``reason``."""
        answer, self.answer = self.answer, None
        self.alive = False
        self._forget_socket()
        self._transport.abort()
        if answer is not None:
            answer.broken = reason
            answer.end_s = monotonic()
            self._on_end(self, answer)

    def close(self) -> None:
        """Close an idle connection."""
        self.alive = False
        self._forget_socket()
        if self._transport is not None:
            self._transport.close()
