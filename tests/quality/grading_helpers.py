"""Short ways to grade one text in tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from scripts.lib.quality.completions import Completion
from scripts.lib.quality.grading import GradedItem, grade_completion
from scripts.lib.quality.probes import ProbeItem


def item(
    grader: dict[str, Any],
    *,
    tools: list[dict[str, Any]] | None = None,
    question: str | list[dict[str, str]] = "?",
) -> ProbeItem:
    return ProbeItem.model_validate(
        {
            "id": "x",
            "axis": "a",
            "messages": [{"role": "user", "content": question}],
            "tools": tools or [],
            "grader": grader,
        }
    )


def grade(
    grader: dict[str, Any],
    text: str | None = "",
    *,
    calls: list[Any] | None = None,
    tools: list[dict[str, Any]] | None = None,
    finish_reason: str = "stop",
    question: str | list[dict[str, str]] = "?",
) -> GradedItem:
    completion = Completion.model_validate(
        {"id": "x", "text": text, "tool_calls": calls, "finish_reason": finish_reason}
    )
    return grade_completion(item(grader, tools=tools, question=question), completion)


def all_at_once(work: Callable[[Any], object], cases: Iterable[Any]) -> list[object]:
    """Do ``work`` for every case, several at a time: sandbox processes take long to start."""
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(work, cases))
