"""Grades answers that name something."""

from __future__ import annotations

from scripts.lib.quality.completions import Completion
from scripts.lib.quality.graders.grade import Grade, short, without_thoughts
from scripts.lib.quality.graders.phrases import occurs
from scripts.lib.quality.probes import ProbeItem, TextGrader


def grade_text(grader: TextGrader, item: ProbeItem, completion: Completion) -> Grade:  # noqa: ARG001
    """Grade a text: one of the accepted phrases occurs and none of the rejected."""
    text = without_thoughts(completion.text)
    for phrase in grader.rejected:
        if occurs(phrase, text):
            return Grade(task_success=False, reason=f"found the rejected '{short(phrase)}'")
    for phrase in grader.accepted:
        if occurs(phrase, text):
            return Grade(task_success=True, reason=f"found '{short(phrase)}'")
    wanted = "', '".join(short(phrase) for phrase in grader.accepted)
    return Grade(task_success=False, reason=f"found none of '{wanted}'")
