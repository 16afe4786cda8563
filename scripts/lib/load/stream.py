"""From the bytes of one streamed answer, and when they came, to what it says.

Pure functions of the standard library. The client only stores bytes and times while an
answer arrives; this runs afterwards. However the bytes were split on their way, the result
is the same: an event's time is that of the piece which holds its last byte.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_ERROR_EXCERPT = 300


class Head:
    """The status line and headers of an answer; header names in lower case."""

    __slots__ = ("body_start", "chunked", "has_trailer", "headers", "status")

    def __init__(self, status: int, headers: dict[bytes, bytes], body_start: int) -> None:
        self.status = status
        self.headers = headers
        self.body_start = body_start
        self.chunked = b"chunked" in headers.get(b"transfer-encoding", b"").lower()
        self.has_trailer = b"trailer" in headers

    @property
    def length(self) -> int | None:
        """The body's length, if announced and not chunked."""
        value = self.headers.get(b"content-length", b"")
        return int(value) if value.isdigit() and not self.chunked else None

    @property
    def keeps_alive(self) -> bool:
        """Whether the connection can carry another request."""
        framed = self.chunked or self.length is not None
        return framed and b"close" not in self.headers.get(b"connection", b"").lower()


@dataclass(slots=True)
class StreamRecord:
    """What one answer said. Times are those given for the pieces of bytes."""

    status: int | None = None
    token_times: list[float] = field(default_factory=list)
    input_tokens: int | None = None
    output_tokens: int | None = None
    tokens_from: str = "none"
    finish_reason: str | None = None
    ok: bool = False
    error: str | None = None


def parse_head(raw: bytes) -> Head | None:
    """Read status and headers; None while they are incomplete. Interim 1xx heads are skipped.

    Raises:
        ValueError: The bytes are no HTTP answer.
    """
    start = 0
    while True:
        end = raw.find(b"\r\n\r\n", start)
        if end < 0:
            if raw[:5] != b"HTTP/"[: len(raw[:5])]:
                raise ValueError("the server's answer is not HTTP")
            return None
        status_line, *lines = raw[start:end].split(b"\r\n")
        parts = status_line.split(None, 2)
        if len(parts) < 2 or not parts[0].startswith(b"HTTP/") or not parts[1].isdigit():
            raise ValueError("the server's answer is not HTTP")
        status = int(parts[1])
        if 100 <= status < 200:
            start = end + 4
            continue
        pairs = (line.partition(b":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        return Head(status, headers, end + 4)


@dataclass(slots=True)
class Body:
    """A decoded body: its bytes, and where each run of them lay in the raw answer."""

    data: bytes
    complete: bool
    starts: list[int]
    raw_starts: list[int]

    def raw_position(self, offset: int) -> int:
        """Return the raw position of the body's byte ``offset``."""
        run = bisect_left(self.starts, offset + 1) - 1
        return self.raw_starts[run] + offset - self.starts[run]


def decode_body(raw: bytes, head: Head, *, closed: bool) -> Body:
    """Take off the HTTP framing. ``closed``: the server has ended the connection regularly."""
    if head.chunked:
        return _decode_chunks(raw, head.body_start)
    data = raw[head.body_start :]
    if head.length is not None:
        complete = len(data) >= head.length
        return Body(data[: head.length], complete, [0], [head.body_start])
    return Body(data, closed, [0], [head.body_start])


def _decode_chunks(raw: bytes, position: int) -> Body:
    pieces: list[bytes] = []
    starts, raw_starts, length, complete = [0], [position], 0, False
    while (line_end := raw.find(b"\r\n", position)) >= 0:
        try:
            size = int(raw[position:line_end].split(b";", 1)[0], 16)
        except ValueError:
            break
        position = line_end + 2
        if size == 0:
            complete = raw.startswith(b"\r\n", position) or raw.find(b"\r\n\r\n", position) >= 0
            break
        piece = raw[position : position + size]
        starts.append(length)
        raw_starts.append(position)
        pieces.append(piece)
        length += len(piece)
        position += size + 2
    return Body(b"".join(pieces), complete, starts, raw_starts)


@dataclass(slots=True)
class _Events:
    """What the events of one stream said, in their order."""

    texts: list[float] = field(default_factory=list)
    empties: list[float] = field(default_factory=list)
    finish_empties: list[float] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=dict)
    finish_reason: str | None = None
    done: bool = False
    error: str | None = None


def parse_answer(
    pieces: Sequence[bytes], times: Sequence[float], *, closed: bool = False
) -> StreamRecord:
    """Read one streamed answer.

    Args:
        pieces: The bytes as received, from the status line on.
        times: When each piece was received; same length.
        closed: Whether the server closed the connection after them.

    Returns:
        The record; ``ok`` only after the stream's regular end (``[DONE]`` or a finish reason)
        with at least one token. ``error`` says in a sentence what was missing.
    """
    raw = b"".join(pieces)
    try:
        head = parse_head(raw)
    except ValueError as problem:
        return StreamRecord(error=f"{problem}: {_excerpt(raw)}")
    if head is None:
        return StreamRecord(error="the connection ended before an answer came")
    body = decode_body(raw, head, closed=closed)
    if head.status != 200:
        return StreamRecord(status=head.status, error=_http_error(head.status, body.data))
    ends = list(accumulate(len(piece) for piece in pieces))
    events = _Events()
    for data, offset in split_events(body.data, complete=body.complete):
        _read_event(events, data, times[bisect_left(ends, body.raw_position(offset) + 1)])
    return _conclude(events, body)


def split_events(body: bytes, *, complete: bool = True) -> list[tuple[bytes, int]]:
    """Split a body into its events' data, each with the offset of the event's last byte.

    Comments and other fields are dropped; several ``data`` lines of one event are joined. At
    the end of a ``complete`` body an event counts without its blank line (some servers leave
    it out); at the end of a broken one it is a fragment and does not.
    """
    events = []
    start = 0
    bounds = [(match.start(), match.end()) for match in _EVENT_END.finditer(body)]
    if complete or body.endswith(b"[DONE]\n"):
        bounds.append((len(body), len(body)))
    for stop, end in bounds:
        block = body[start:stop]
        if block.startswith(b"data:") and b"\n" not in block and b"\r" not in block:
            events.append((block[5:].strip(), end - 1))
        elif data := _data_lines(block):
            events.append((data, end - 1))
        start = end
    return events


def _data_lines(block: bytes) -> bytes:
    lines = (line for line in block.splitlines() if line.startswith(b"data:"))
    return b"\n".join(line[5:].strip() for line in lines)


def _read_event(events: _Events, data: bytes, time: float) -> None:
    if data == b"[DONE]":
        events.done = True
        return
    try:
        message = json.loads(data)
    except ValueError:
        events.error = events.error or f"an event is not JSON: {_excerpt(data)}"
        return
    if not isinstance(message, dict):
        return
    if message.get("error") or message.get("object") == "error":
        events.error = events.error or _error_message(message)
        return
    if isinstance(usage := message.get("usage"), dict):
        events.usage = usage
    choices = message.get("choices")
    if choices and isinstance(choices[0], dict):
        _read_choice(events, choices[0], time)


def _read_choice(events: _Events, choice: dict[str, Any], time: float) -> None:
    finish = choice.get("finish_reason")
    if finish:
        events.finish_reason = str(finish)
    delta = choice.get("delta")
    if delta is None:
        text, opens = choice.get("text"), False
    else:
        text = (
            delta.get("content")
            or delta.get("reasoning_content")
            or delta.get("reasoning")
            or delta.get("tool_calls")
        )
        opens = "role" in delta and not events.texts
    if text:
        events.texts.append(time)
    elif finish:
        events.finish_empties.append(time)
    elif not opens:
        events.empties.append(time)


def _token_times(events: _Events, output_tokens: int | None) -> list[float]:
    """Decide which events carried a token.

    An event with text did. One without may (half a character, a special token, the end
    token) or may not (a preamble, a bare finish): it did if the server's own count of tokens
    leaves room for it.
    """
    room = (output_tokens or 0) - len(events.texts)
    times = events.texts
    if events.empties and room >= len(events.empties):
        times = sorted(times + events.empties)
        room -= len(events.empties)
    if events.finish_empties and room > 0:
        times = times + events.finish_empties[:1]
    return times


def _conclude(events: _Events, body: Body) -> StreamRecord:
    completion, prompt = events.usage.get("completion_tokens"), events.usage.get("prompt_tokens")
    counted = completion if isinstance(completion, int) and completion > 0 else None
    times = _token_times(events, counted)
    record = StreamRecord(
        status=200,
        token_times=times,
        input_tokens=prompt if isinstance(prompt, int) else None,
        output_tokens=counted if counted is not None else (len(times) or None),
        tokens_from="usage" if counted is not None else "events" if times else "none",
        finish_reason=events.finish_reason,
    )
    regular_end = events.done or events.finish_reason is not None
    if events.error:
        record.error = events.error
    elif not regular_end and not body.complete:
        record.error = "the connection ended in the middle of the stream"
    elif not times:
        record.error = "the stream ended without a token"
    elif not regular_end:
        record.error = "the stream ended without a finish reason or [DONE]"
    record.ok = record.error is None
    return record


def _error_message(message: dict[str, Any]) -> str:
    inner = message.get("error")
    if isinstance(inner, dict):
        inner = inner.get("message") or inner
    text = inner if isinstance(inner, str) else message.get("message") or inner
    return f"the server sent an error: {str(text)[:_ERROR_EXCERPT]}"


def _http_error(status: int, body: bytes) -> str:
    try:
        message = json.loads(body)
        text = _error_message(message) if isinstance(message, dict) else ""
    except ValueError:
        text = ""
    said = text.removeprefix("the server sent an error: ") if text else _excerpt(body)
    return f"HTTP {status}: {said}" if said else f"HTTP {status}"


def _excerpt(raw: bytes) -> str:
    return " ".join(raw[:_ERROR_EXCERPT].decode("utf-8", "replace").split())
