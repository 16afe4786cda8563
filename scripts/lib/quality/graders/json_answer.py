"""Grades answers that are JSON."""

from __future__ import annotations

from typing import Any

from scripts.lib.quality.completions import Completion
from scripts.lib.quality.graders.grade import Grade, without_thoughts
from scripts.lib.quality.graders.json_values import NotJson, equal, parse, values_in, violation
from scripts.lib.quality.probes import JsonGrader, ProbeItem


def grade_json(grader: JsonGrader, item: ProbeItem, completion: Completion) -> Grade:  # noqa: ARG001
    """Grade JSON: some value satisfies schema and expectation; the form is it and nothing else."""
    text = without_thoughts(completion.text)
    complaints = [_complaint(grader, value) for value in values_in(text)]
    right = None in complaints
    format_ok = _whole_is_right(grader, completion.text)
    if right:
        reason = "right" if format_ok else "right, but something stands around the JSON"
    else:
        reason = next((c for c in complaints if c), "no JSON value in the text")
    return Grade(task_success=right, format_ok=format_ok, reason=reason)


def _whole_is_right(grader: JsonGrader, text: str) -> bool:
    try:
        return _complaint(grader, parse(text)) is None
    except NotJson:
        return False


def _complaint(grader: JsonGrader, value: Any) -> str | None:  # noqa: ANN401 - any JSON value
    wrong = violation(value, grader.schema_)
    if wrong is not None:
        return wrong
    if grader.expects_a_value and not equal(value, grader.expected):
        return "satisfies the schema, but is not the expected value"
    return None
