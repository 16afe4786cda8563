"""What terminals, containers and web pages add to a printed table, taken away again."""

from __future__ import annotations

import codecs
import re

_COLOUR = re.compile(
    r"(?:\x1b|\\u001b|\\x1b|\\033)\[[0-9;?]*[A-Za-z]|\[(?:\d{1,2}(?:;\d{1,3})+|0)m"
)
"""A colour; copied text may have lost its first character."""
_FRAME = re.compile(r"[ \t|\u2502\u2503]+$", re.MULTILINE)
_FEW_LINES = 3
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_PACKED = {b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2"}


def packed_with(data: bytes) -> str | None:
    """Return the name of the program that packed the data, None when they are not packed."""
    return next((name for sign, name in _PACKED.items() if data.startswith(sign)), None)


def decode(data: bytes, wanted: str) -> str:
    """Return data as text; what PowerShell's ``>`` writes is UTF-16.

    Raises:
        ValueError: the data are packed or no text; the sentence says what is ``wanted``.
    """
    if packer := packed_with(data):
        raise ValueError(f"the file is packed with {packer}: unpack it first")
    if data.startswith(_UTF16):
        return data.decode("utf-16", errors="replace")
    if b"\0" in data:
        raise ValueError(f"binary data, not {wanted}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    text = data.decode("utf-8", errors="replace")
    if text.count("\ufffd") > len(text) // 20:
        raise ValueError(f"not text; give {wanted}")
    return text


def why_unreadable(path: object, error: Exception) -> str:
    """Return one sentence that says which file cannot be read and why."""
    if isinstance(error, OSError) and error.strerror:
        return f"{path}: {error.strerror[0].lower()}{error.strerror[1:]}"
    text = str(error)
    return text if text.startswith(f"{path}: ") else f"{path}: {text}"


def plain(text: str) -> str:
    """Return the text with newlines as line ends, usual blanks, no colours and no frame."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u00a0", " ")
    if text.count("\\n") > _FEW_LINES > text.count("\n"):
        # A string of a program: its line ends are two characters each.
        text = text.replace("\\n", "\n")
    return _FRAME.sub("", _COLOUR.sub("", text))
