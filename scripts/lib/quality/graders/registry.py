"""Every kind of grader, by name; a new kind is a model in ``probes`` and an entry here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scripts.lib.quality.completions import Completion
from scripts.lib.quality.degenerate import is_degenerate
from scripts.lib.quality.graders.choice import grade_choice
from scripts.lib.quality.graders.echo import repeats_question
from scripts.lib.quality.graders.grade import Grade
from scripts.lib.quality.graders.instructions import grade_instructions
from scripts.lib.quality.graders.json_answer import grade_json
from scripts.lib.quality.graders.number import grade_number
from scripts.lib.quality.graders.python_code import grade_python
from scripts.lib.quality.graders.text import grade_text
from scripts.lib.quality.graders.tool import grade_tool
from scripts.lib.quality.probes import ProbeItem

GRADERS: dict[str, Callable[[Any, ProbeItem, Completion], Grade]] = {
    "number": grade_number,
    "text": grade_text,
    "choice": grade_choice,
    "json": grade_json,
    "instructions": grade_instructions,
    "python": grade_python,
    "tool": grade_tool,
}


NO_ECHO = ("python", "tool")
"""Kinds that no echo passes wrongly: tests run the code, and "Good morning!" needs no call."""


def grade(item: ProbeItem, completion: Completion) -> Grade:
    """Grade one completion of an item; one that only repeats the question is no answer."""
    kind = item.grader.kind
    result = GRADERS[kind](item.grader, item, completion)
    cut = completion.finish_reason == "length"
    if kind in NO_ECHO or not repeats_question(item, completion.text, cut=cut):
        return result
    return Grade(
        task_success=None if result.task_success is None else False,
        format_ok=None if result.format_ok is None else False,
        reason="repeats the question",
    )


def degenerate(completion: Completion) -> bool:
    """Whether an answer is empty (no text and no call) or one short piece over and over."""
    if completion.tool_calls and not completion.text.strip():
        return False
    return is_degenerate(completion.text)
