"""Grades a file of completions against probe items."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from scripts.lib.quality.completions import Completion
from scripts.lib.quality.graders.registry import degenerate, grade
from scripts.lib.quality.probes import ProbeItem


class GradedItem(BaseModel):
    """One line of ``grade_completions``; None: the axis has no such measure, or no answer."""

    id: str
    axis: str
    task_success: bool | None = None
    format_ok: bool | None = None
    tool_success: bool | None = None
    degenerate: bool = False
    reason: str


def grade_completion(item: ProbeItem, completion: Completion) -> GradedItem:
    """Grade one completion. A request that failed is not graded: nobody knows the answer."""
    if completion.error:
        return GradedItem(id=item.id, axis=item.axis, reason=f"no answer: {completion.error}")
    result = grade(item, completion)
    cut = " (cut at max_tokens)" if completion.finish_reason == "length" else ""
    return GradedItem(
        id=item.id,
        axis=item.axis,
        task_success=result.task_success,
        format_ok=result.format_ok,
        tool_success=result.tool_success,
        degenerate=degenerate(completion),
        reason=result.reason + cut,
    )


def grade_all(items: list[ProbeItem], completions: list[Completion]) -> Iterator[GradedItem]:
    """Yield the grade of every completion of a known item, then items without a completion."""
    known = {item.id: item for item in items}
    for completion in completions:
        if completion.id in known:
            yield grade_completion(known[completion.id], completion)
    answered = {completion.id for completion in completions}
    for item in items:
        if item.id not in answered:
            yield GradedItem(id=item.id, axis=item.axis, reason="no completion")


def unknown_ids(items: list[ProbeItem], completions: list[Completion]) -> list[str]:
    """Return the ids of completions that no item has, in order, each once."""
    known = {item.id for item in items}
    return list(dict.fromkeys(c.id for c in completions if c.id not in known))
