"""The lines of a log that can matter, out of files of any size and dress.

A file is read in blocks of bytes; what containers, terminals and log shippers put around, before
or into its lines is taken off those that are looked at.
"""

from __future__ import annotations

import codecs
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path

from scripts.lib.base.printed_text import packed_with

BLOCK = 1 << 18
LONGEST_LINE = 1 << 16
OPEN_END = "\u2026"
"""Ends a last line that has no line end: its last word may have been cut."""

_ESCAPES = ("\x1b", "\\u001b", "\\x1b", "\\033", "\u241b")
_BARE_COLOUR = re.compile(r"\[(?:\d{1,2}(?:;\d{1,3})+|0)m")
_ANSI = re.compile(
    rf"(?:{'|'.join(map(re.escape, _ESCAPES))})\[[0-9;?]*[A-Za-z]|{_BARE_COLOUR.pattern}"
)
"""A colour; copied text may have lost its first character."""
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_SAMPLE = 1 << 16
_NARROWEST, _WIDEST = 60, 400
_KEPT = 4096
_LARGEST_COPY = 1 << 23
_BEGINS = re.compile(
    r"\s*(?:[\w.-]+\s*\|\s*|>\s*)?(?:\(\w+ (?:rank=\d+ "
    r")?pid=|(?:INFO|WARNING|ERROR|DEBUG)\b|Traceback )"
)
"""The beginning of a line of vLLM's log, behind the prefix of a container or a quotation."""
_QUOTED = re.compile(r"\s{0,4}[>|\u2502\u2503#*] ?")
_STRANGE_SHARE = 0.05
GUTTER = " \t|\u2502\u2503"
"""What a terminal's frame or a table puts behind a line."""
_MESSAGE = re.compile(
    r"\b(?:INFO|WARNING|ERROR|DEBUG|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d\b|\bINFO:\s+(?:Started "
    r"server|Waiting for app|Application s|Uvicorn running|Shutting down)"
)
_ENTITY = re.compile(r"&(?:#x?[0-9a-f]{2,4}|quot|lt|gt|amp|apos|nbsp);")
_RECORD = re.compile(rf"\n[{GUTTER}]*\{{")
"""A line of JSON, as containers and log shippers write them."""
_PROCESS = re.compile(r"(?:\([^()]{3,80}\)\s*)+$")


def read_blocks(path: Path) -> Iterator[bytes]:
    """Yield the file in blocks of whole lines (UTF-8), a last line without its end last.

    Progress bars overwrite themselves with carriage returns; each state becomes a line.

    Raises:
        ValueError: the file is empty or binary.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        first = file.read(BLOCK)
        encoding = next((name for bom, name in _UTF16.items() if first.startswith(bom)), None)
        if encoding:
            # PowerShell's `>` writes UTF-16; such files are small.
            text = (first + file.read()).decode(encoding, errors="replace")
            first = text.lstrip("\ufeff").encode()
        refuse_unreadable(first)
        if width := wrapped_width(first):
            yield unwrap(first + file.read(_LARGEST_COPY), width)
            first = file.read(BLOCK)
        rest = b""
        block = first
        while block:
            data = rest + normal_line_ends(block)
            cut = data.rfind(b"\n") + 1
            if cut:
                yield data[:cut]
            rest = data[cut:]
            if len(rest) > 32 * BLOCK:
                yield rest + b"\n"
                rest = b""
            block = file.read(BLOCK)
    if rest:
        yield rest


def wrapped_width(sample: bytes) -> int | None:
    """Return the width at which a terminal broke the lines of a text, None when none did.

    Then no line is wider, several are just as wide, and the lines after them have no beginning
    of their own.
    """
    lines = _bare_lines(sample)
    width = max(map(len, lines))
    if not _NARROWEST <= width <= _WIDEST:
        return None
    full = [
        after
        for line, after in zip(lines, lines[1:], strict=False)
        if len(line) == width and after and not _BEGINS.match(after)
    ]
    return width if len(full) > 1 else None


def unwrap(data: bytes, width: int) -> bytes:
    """Join what a terminal of this width broke; a blank at a line's end may be gone."""
    joined: list[str] = []
    full = 0
    for line in _bare_lines(data):
        if full and line and not _BEGINS.match(line):
            joined[-1] += ("" if full == width else " ") + line
        else:
            joined.append(line)
        full = len(line) if len(line) >= width - 1 else 0
    return "\n".join(joined).encode()


def _bare_lines(data: bytes) -> list[str]:
    """Return the lines without the quotation marks or the frame before each of them."""
    lines = _text(normal_line_ends(data)).split("\n")
    gutter = _QUOTED.match(next((line for line in lines if line.strip()), ""))
    if gutter is None:
        return lines
    mark = gutter[0].rstrip()
    if not all(line.startswith(mark) for line in lines if line.strip()):
        return lines
    return [line.removeprefix(gutter[0]).removeprefix(mark) for line in lines]


def refuse_unreadable(sample: bytes) -> None:
    """Raise a ValueError when the beginning of a file is not that of a text."""
    if not sample.strip():
        raise ValueError("the file is empty; give the log of a vLLM start")
    if packer := packed_with(sample):
        raise ValueError(f"the file is packed with {packer}: unpack it first")
    if b"\0" in sample[:1024]:
        raise ValueError("this is binary data, not a log")
    text = sample[:_SAMPLE].decode("utf-8", errors="replace")
    strange = sum(
        text.count(mark) for mark in ["\ufffd", *map(chr, [*range(1, 8), *range(14, 27)])]
    )
    if strange > _STRANGE_SHARE * len(text):
        raise ValueError("this is binary data, not a log")


def clean(line: str) -> str:
    """Return a line without colours, container JSON and line end."""
    text = line.rstrip("\n") if line.endswith("\n") else line + OPEN_END
    text = _ANSI.sub("", text).replace("\0", "").strip(GUTTER)
    if text.startswith("{") and (inner := _inside_json(text)):
        text = _ANSI.sub("", inner).strip().rstrip(GUTTER)
    return html.unescape(text) if _ENTITY.search(text) else text


def _inside_json(text: str) -> str | None:
    """Return the message of a line that a container or a log shipper wrote as JSON."""
    try:
        record = json.loads(text)
    except ValueError:
        return None
    for key in ("log", "message", "msg"):
        if isinstance(record, dict) and isinstance(record.get(key), str):
            return str(record[key])
    return None


def messages(line: str) -> list[str]:
    """Return the messages of a line: a text whose line ends were lost holds many in one."""
    if line.count("\\n") > 2 and "Received request" not in line:  # noqa: PLR2004
        return [message for part in line.split("\\n") for message in _joined(part)]
    return _joined(line)


def _joined(line: str) -> list[str]:
    begins = [match.start() for match in _MESSAGE.finditer(line)]
    if len(begins) < 2 or "Received request" in line:  # noqa: PLR2004
        return [line]
    cuts = [0]
    for begin in begins[1:]:
        process = _PROCESS.search(line[max(cuts[-1], begin - 200) : begin])
        cuts.append(begin - len(process[0]) if process else begin)
    return [line[a:b].strip() for a, b in zip(cuts, [*cuts[1:], None], strict=True)]


def undressed(text: str) -> str:
    """Return the lines of a text as ``clean`` does, one after the other.

    Quick where colours are all that was added; only other dress is taken off line by line.
    """
    if "\\n" in text or _ENTITY.search(text) or _RECORD.search(f"\n{text}"):
        lines = re.findall(r".*\n|.+\Z", text)
        return "".join(f"{message}\n" for line in lines for message in messages(clean(line)))
    text = text if text.endswith("\n") else text + OPEN_END
    if any(sign in text for sign in _ESCAPES) or _BARE_COLOUR.search(text):
        text = _ANSI.sub("", text)
    return text.replace("\0", "")


def quote(line: str, length: int = 600) -> str:
    """Return a line as it is quoted in results: at most ``length`` characters."""
    line = line.rstrip(OPEN_END)
    return line if len(line) <= length else line[: length - 4] + " ..."


def shortened(line: str) -> str:
    """Return a line without the middle of a very long one: what is kept of it may be many."""
    half = _KEPT // 2
    return line if len(line) <= _KEPT else f"{line[:half]} ... {line[-half:]}"


class Edges:
    """The beginning and the end of a text of any length, for a second look at wrapped lines."""

    def __init__(self, head: int = 1 << 19, tail: int = 1 << 18) -> None:
        self._head_size, self._tail_size = head, tail
        self._head = self._tail = ""

    def add(self, text: str) -> None:
        """Append a text; what lies between the edges is forgotten."""
        room = self._head_size - len(self._head)
        if room > 0:
            self._head += text[:room]
            text = text[room:]
        if text:
            self._tail = (self._tail + text)[-self._tail_size :]

    def head(self) -> str:
        """Return the beginning without colours."""
        return _ANSI.sub("", self._head)

    def tail(self) -> str:
        """Return the end without colours, of what is kept."""
        return _ANSI.sub("", (self._head + self._tail)[-self._tail_size :])


def _text(data: bytes) -> str:
    return _ANSI.sub("", data.decode("utf-8", errors="replace"))


def normal_line_ends(data: bytes) -> bytes:
    """Return the bytes with newlines as the only line ends and blanks that are blanks."""
    data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return data.replace(b"\xc2\xa0", b" ")
