"""Compares a variant's answers with the baseline's, item by item."""

from __future__ import annotations

import contextlib
import difflib
import json
from typing import Literal

from pydantic import Field

from scripts.lib.base.schema import Strict
from scripts.lib.quality.results import ItemResult, QualityResult

SIMILARITY_FORMULA = (
    "2 M / T: M characters in matching blocks (Ratcliff and Obershelp, Python's "
    "difflib), T characters of both answers"
)

Outcome = Literal["both right", "both wrong", "lost", "gained", "not comparable"]


class ItemComparison(Strict):
    """One item, answered by a variant and by the baseline."""

    id: str
    axis: str
    passed: bool | None
    baseline_passed: bool | None
    outcome: Outcome = Field(
        description="lost: the baseline passed and the variant did not; gained: the reverse; "
        "both wrong: not held against the variant"
    )
    similarity: float | None = Field(description="0 to 1; None: one of them gave no answer.")
    identical: bool | None

    @property
    def baseline_wrong_too(self) -> bool:
        """Whether both failed: quantization did not cause it."""
        return self.outcome == "both wrong"


def compare_to_baseline(variant: QualityResult, baseline: QualityResult) -> list[ItemComparison]:
    """Return a comparison for each item that both have, in the variant's order."""
    of_baseline = {item.id: item for item in baseline.items}
    return [
        compare_items(item, of_baseline[item.id])
        for item in variant.items
        if item.id in of_baseline
    ]


def compare_items(item: ItemResult, baseline: ItemResult) -> ItemComparison:
    """Compare two answers to the same item."""
    answered = item.error is None and baseline.error is None
    mine, theirs = said(item), said(baseline)
    return ItemComparison(
        id=item.id,
        axis=item.axis,
        passed=item.passed,
        baseline_passed=baseline.passed,
        outcome=_outcome(item.passed, baseline.passed),
        similarity=similarity(theirs, mine) if answered else None,
        identical=mine == theirs if answered else None,
    )


def similarity(baseline: str, variant: str) -> float:
    """Return how alike two texts are, 0 to 1 (``SIMILARITY_FORMULA``); two empty ones are 1."""
    return difflib.SequenceMatcher(None, baseline, variant, autojunk=False).ratio()


def said(item: ItemResult) -> str:
    """Return all that an answer says: its text, then its tool calls in a canonical form."""
    calls = [json.dumps(_plain_call(call), sort_keys=True) for call in item.tool_calls]
    return "\n".join([item.text, *calls])


def _plain_call(call: dict[str, object]) -> object:
    """Return name and arguments of a call: its id differs from run to run."""
    function = call.get("function", call)
    if not isinstance(function, dict):
        return function
    arguments = function.get("arguments")
    with contextlib.suppress(ValueError):
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    return {"name": function.get("name"), "arguments": arguments}


def _outcome(passed: bool | None, baseline: bool | None) -> Outcome:
    if passed is None or baseline is None:
        return "not comparable"
    if passed:
        return "both right" if baseline else "gained"
    return "lost" if baseline else "both wrong"
