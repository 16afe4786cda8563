"""Compares a variant's answers with the baseline's, item by item."""

from __future__ import annotations

import contextlib
import difflib
import json
from typing import Literal

from pydantic import Field

from scripts.lib.base.schema import Strict
from scripts.lib.quality.results import AskedProbes, ItemResult, QualityResult

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


NO_SETTINGS = ("source", "similarity_to_baseline")
"""Keys beside the settings that say where imported answers come from, not how they were asked."""


def asked_differently(variant: AskedProbes, baseline: AskedProbes) -> list[str]:
    """Return what differs in how two variants were asked, as phrases; empty: nothing.

    Other probes, lengths, seeds or numbers of requests at a time change answers by themselves: a
    flip between them says nothing about the variant. A setting that only one result records
    differs, since what the other one was is not known.
    """
    phrases = [
        f"{key}: {_recorded(variant.settings, key)} here, {_recorded(baseline.settings, key)} there"
        for key in dict.fromkeys([*variant.settings, *baseline.settings])
        if key not in NO_SETTINGS
        and _recorded(variant.settings, key) != _recorded(baseline.settings, key)
    ]
    mine, theirs = variant.probe_files, baseline.probe_files
    for path in dict.fromkeys([*mine, *theirs]):
        if path in mine and path in theirs:
            phrases += [f"{path}: another content"] if mine[path] != theirs[path] else []
        else:
            phrases.append(f"{path}: asked {'here' if path in mine else 'there'} only")
    return phrases


def _recorded(settings: dict[str, object], key: str) -> str:
    return json.dumps(settings[key], sort_keys=True) if key in settings else "not recorded"


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
