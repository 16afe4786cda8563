"""What terminals, containers and web pages add to a printed table, taken away again."""

from __future__ import annotations

import re

_COLOUR = re.compile(
    r"(?:\x1b|\\u001b|\\x1b|\\033)\[[0-9;?]*[A-Za-z]|\[(?:\d{1,2}(?:;\d{1,3})+|0)m"
)
"""A colour; copied text may have lost its first character."""
_FRAME = re.compile(r"[ \t|\u2502\u2503]+$", re.MULTILINE)
_FEW_LINES = 3


def plain(text: str) -> str:
    """Return the text with newlines as line ends, usual blanks, no colours and no frame."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u00a0", " ")
    if text.count("\\n") > _FEW_LINES > text.count("\n"):
        # A string of a program: its line ends are two characters each.
        text = text.replace("\\n", "\n")
    return _FRAME.sub("", _COLOUR.sub("", text))
