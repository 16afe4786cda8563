"""Grades a file of completions against probe items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel

from scripts.lib.quality.completions import Completion
from scripts.lib.quality.graders.registry import degenerate, grade
from scripts.lib.quality.probes import ProbeItem
from scripts.lib.quality.results import AskedProbes, ItemResult, QualityResult


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


def grade_records(
    asked: AskedProbes, items: Sequence[ProbeItem], records: Sequence[dict[str, Any]]
) -> QualityResult:
    """Grade what :func:`~scripts.lib.quality.asking.ask_probes` kept of one variant.

    Returns:
        No items where ``asked.not_applicable`` says why none were answered.

    Raises:
        ValueError: The records are not those of ``items``.
    """
    if asked.not_applicable is not None:
        return QualityResult(**asked.model_dump(), items=[])
    if [record.get("id") for record in records] != [item.id for item in items]:
        raise ValueError(f"the completions of {asked.variant} are not those of the probe files")
    graded = [_item_result(item, record) for item, record in zip(items, records, strict=True)]
    return QualityResult(**asked.model_dump(), items=graded)


def _item_result(item: ProbeItem, record: dict[str, Any]) -> ItemResult:
    completion = Completion.model_validate(record)
    usage = record.get("usage") or {}
    return ItemResult(
        **grade_completion(item, completion).model_dump(),
        text=completion.text,
        tool_calls=[call for call in completion.tool_calls if isinstance(call, dict)],
        finish_reason=completion.finish_reason,
        output_tokens=usage.get("completion_tokens"),
        duration_s=record.get("duration_s"),
        error=completion.error,
    )
