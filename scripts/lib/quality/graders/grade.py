"""What a grader returns, and what every grader reads."""

from __future__ import annotations

import re

from scripts.lib.base.schema import Strict

_THOUGHT = re.compile(r"\A.*</think>|\A\s*<think>.*\Z", re.DOTALL)


class Grade(Strict):
    """The measures of one answer (None: this kind has no such measure), with the reason."""

    task_success: bool | None = None
    format_ok: bool | None = None
    tool_success: bool | None = None
    reason: str


def without_thoughts(text: str) -> str:
    """Return ``text`` after its last ``</think>``: what a reasoning model gives as its answer.

    That is nothing where the text was cut within its thoughts.
    """
    return _THOUGHT.sub("", text)


def short(value: object, limit: int = 60) -> str:
    """Return ``value`` as text of at most ``limit`` characters, on one line."""
    text = " ".join(str(value).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
