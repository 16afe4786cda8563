"""The quality of each variant beside the baseline's, on the same probe items."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.lib.analysis.comparison.paired import Paired, items_needed, judge_paired
from scripts.lib.analysis.statistics import share_value
from scripts.lib.analysis.summary import AskedHow, AxisQuality, QualityView, Value
from scripts.lib.base.again import ask_again
from scripts.lib.quality.compare import (
    ItemComparison,
    asked_differently,
    compare_to_baseline,
)
from scripts.lib.quality.results import ItemResult, QualityResult
from scripts.lib.study.models import Study

MAX_EXAMPLES = 12
DEFAULT_MARGIN = 0.05
IMPORTED = "source"
"""The setting that says where imported answers come from."""
MAX_DIFFERENCES = 4
ASKED_DIFFERENTLY = "it was asked in another way than the baseline"
NO_BASELINE_ANSWERS = "the baseline has no answers to compare with"


@dataclass(frozen=True)
class Pair:
    """One answered item, beside the baseline's answer to it where there is one."""

    item: ItemResult
    against: ItemComparison | None
    similarity: float | None
    """How alike both answers are, 0 to 1."""
    baseline_text: str = ""
    baseline_reason: str = ""
    """Why the baseline's answer was graded as it was."""

    @property
    def passed(self) -> bool:
        """Whether the variant passed."""
        return bool(self.item.passed)

    @property
    def outcome(self) -> str:
        """``both right``, ``both wrong``, ``lost``, ``gained`` or ``not comparable``."""
        return self.against.outcome if self.against else "not comparable"

    @property
    def both_graded(self) -> bool:
        """Whether both answers came and have a grade."""
        return self.outcome != "not comparable"

    @property
    def identical(self) -> bool:
        """Whether the answers are equal; reported ones that are alike to the full are."""
        told = self.against.identical if self.against else None
        return self.similarity == 1 if told is None else told


def build_quality(
    study: Study,
    results: Mapping[str, QualityResult],
    stamps: Mapping[str, str],
    prompts: Mapping[str, str] | None = None,
) -> list[QualityView]:
    """Return one view per variant, the baseline's first place being its own reference.

    Args:
        study: For the baseline and the margin.
        results: quality.json of each variant that has one.
        stamps: Variant -> what really ran.
        prompts: Item id -> the question as shown in examples.
    """
    margin = study.quality.non_inferiority_margin if study.quality else DEFAULT_MARGIN
    baseline = results.get(study.baseline)
    views = []
    for name in study.variants:
        result = results.get(name)
        stamp = stamps.get(name, "")
        if result is None:
            views.append(_empty(name, stamp, None, "quality was not measured"))
        elif result.not_applicable or not result.items:
            reason = result.not_applicable or "no probe item was answered"
            views.append(_empty(name, stamp, result.not_applicable, reason))
        else:
            view = _view(result, baseline, margin, name == study.baseline, prompts or {})
            differences = _differences(result, baseline)
            if baseline and differences:
                words = _differently_words(differences, _fix(study, result, baseline))
                view = view.model_copy(update={"outcome": "undecided", "words": words})
            views.append(view.model_copy(update={"stamp": stamp}))
    return views


def _empty(name: str, stamp: str, not_applicable: str | None, reason: str) -> QualityView:
    missing = Value(missing=reason)
    return QualityView(
        variant=name,
        stamp=stamp,
        not_applicable=not_applicable,
        axes=[],
        task_success=missing,
        format_accuracy=missing,
        tool_success=missing,
        similarity=missing,
        lost=0,
        gained=0,
        p_value=None,
        difference_low=None,
        difference_high=None,
        outcome="not measured",
        words=reason[:1].upper() + reason[1:] + ".",
        examples=[],
        source=f"quality/{name}/quality.json",
    )


def pair_items(result: QualityResult, baseline: QualityResult | None) -> list[Pair]:
    """Return the items that were answered, each with the baseline's answer to the same item.

    Similarities that an imported result reports itself
    (``settings["similarity_to_baseline"]``: id -> 0 to 1) stand before our own.
    """
    told = result.settings.get("similarity_to_baseline")
    reported = told if isinstance(told, dict) else {}
    others = {i.id: i for i in baseline.items if i.error is None} if baseline else {}
    compared = {c.id: c for c in compare_to_baseline(result, baseline)} if baseline else {}
    pairs = []
    for item in result.items:
        if item.error is not None:
            continue
        against = compared.get(item.id) if item.id in others else None
        alike = against.similarity if against else None
        if item.id in reported:
            alike = float(reported[item.id])
            against = against and against.model_copy(update={"identical": None})
        other = others[item.id] if against else None
        said = (other.text, other.reason) if other else ("", "")
        pairs.append(Pair(item, against, alike, *said))
    return pairs


def _view(
    result: QualityResult,
    baseline: QualityResult | None,
    margin: float,
    is_baseline: bool,
    prompts: Mapping[str, str],
) -> QualityView:
    differences = _differences(result, baseline)
    pairs = pair_items(result, None if differences else baseline)
    graded = [pair for pair in pairs if pair.both_graded]
    lost = [pair for pair in graded if pair.outcome == "lost"]
    gained = [pair for pair in graded if pair.outcome == "gained"]
    alike = [pair.similarity for pair in pairs if pair.similarity is not None]
    view = QualityView(
        variant=result.variant,
        stamp="",
        not_applicable=None,
        axes=_axes(pairs),
        task_success=_share(pairs, lambda item: item.task_success, "a right answer"),
        format_accuracy=_share(pairs, lambda item: item.format_ok, "a required form"),
        tool_success=_share(pairs, lambda item: item.tool_success, "tool calls"),
        similarity=Value(value=sum(alike) / len(alike), n=len(alike))
        if alike
        else Value(missing=ASKED_DIFFERENTLY if differences else NO_BASELINE_ANSWERS),
        lost=len(lost),
        gained=len(gained),
        paired=len(graded),
        p_value=None,
        difference_low=None,
        difference_high=None,
        outcome="baseline" if is_baseline else "not measured",
        words=_own_words(result, pairs) if is_baseline else _no_reference(baseline),
        examples=_examples([*lost, *gained], prompts),
        source=f"quality/{result.variant}/quality.json",
        asked=_asked_how(result.settings),
    )
    if is_baseline or not graded:
        return view
    return view.model_copy(update=_judged(Paired(len(graded), len(lost), len(gained)), margin))


def _asked_how(settings: Mapping[str, object]) -> AskedHow:
    """Return what the report tells of the settings; imported ones may hold anything."""

    def read(key: str, kind: type) -> object:
        value = settings.get(key)
        return value if isinstance(value, int | kind) and not isinstance(value, bool) else None

    found = {"temperature": float, "seed": int, "concurrency": int}
    return AskedHow.model_validate({key: read(key, kind) for key, kind in found.items()})


def _differences(result: QualityResult, baseline: QualityResult | None) -> list[str]:
    return asked_differently(result, baseline) if baseline and baseline.items else []


def _fix(study: Study, result: QualityResult, baseline: QualityResult) -> str:
    """Return how to ask both alike; "" for imported answers, which nobody asks here."""
    if IMPORTED in result.settings or IMPORTED in baseline.settings:
        return ""
    quality = Path("results", study.study, "quality")
    return f" To {ask_again(quality / baseline.variant, quality / result.variant)}"


def _differently_words(differences: Sequence[str], fix: str) -> str:
    said = "; ".join(differences[:MAX_DIFFERENCES])
    more = len(differences) - MAX_DIFFERENCES
    rest = f"; and {more} more" if more > 0 else ""
    return (
        f"{ASKED_DIFFERENTLY[:1].upper()}{ASKED_DIFFERENTLY[1:]} ({said}{rest}): the answers are "
        f"not compared.{fix}"
    )


def _no_reference(baseline: QualityResult | None) -> str:
    if baseline is None or baseline.not_applicable or not baseline.items:
        return "The baseline's quality was not measured, so there is nothing to compare with."
    return "No item has a grade for both this variant and the baseline."


def _own_words(result: QualityResult, pairs: Sequence[Pair]) -> str:
    graded = [pair for pair in pairs if pair.item.passed is not None]
    failed = len(result.items) - len(pairs)
    text = f"Passed {sum(p.passed for p in graded)} of {len(graded)} graded items."
    return text + (f" {failed} requests failed and are not graded." if failed else "")


def _judged(pair: Paired, margin: float) -> dict[str, object]:
    outcome, p, (low, high) = judge_paired(pair, margin)
    flips = (
        f"On {pair.items} items it lost {pair.lost} that the baseline passes and gained "
        f"{pair.gained}: {100 * pair.difference:+.1f} points "
        f"(Tango's 90 % interval {100 * low:+.1f} to {100 * high:+.1f}; McNemar's exact test "
        f"p = {p:.2g})."
    )
    verdict = {
        "non-inferior": f"The loss is surely below the margin of {100 * margin:g} points.",
        "worse": "It is worse than the baseline.",
        "undecided": f"That neither proves nor excludes a loss beyond {100 * margin:g} points.",
    }[outcome]
    if outcome == "undecided" and margin > 0 and pair.items < (needed := items_needed(margin)):
        verdict += f" Even without a single flip that takes {needed} items."
    return {
        "outcome": outcome,
        "p_value": p,
        "difference_low": low,
        "difference_high": high,
        "words": f"{flips} {verdict}",
    }


def _axes(pairs: Sequence[Pair]) -> list[AxisQuality]:
    axes: dict[str, list[Pair]] = {}
    for pair in pairs:
        axes.setdefault(pair.item.axis, []).append(pair)
    return [_axis(axis, members) for axis, members in axes.items()]


def _axis(axis: str, pairs: Sequence[Pair]) -> AxisQuality:
    alike = [pair.similarity for pair in pairs if pair.similarity is not None]
    graded = [pair for pair in pairs if pair.item.passed is not None]
    reference = [pair for pair in graded if pair.both_graded]
    return AxisQuality(
        axis=axis,
        items=len(graded),
        passed=sum(pair.passed for pair in graded),
        baseline_passed=sum(p.outcome in ("both right", "lost") for p in reference)
        if reference
        else None,
        baseline_wrong_too=sum(pair.outcome == "both wrong" for pair in pairs),
        lost=[pair.item.id for pair in pairs if pair.outcome == "lost"],
        gained=[pair.item.id for pair in pairs if pair.outcome == "gained"],
        similarity_to_baseline=sum(alike) / len(alike) if alike else None,
        identical_to_baseline=sum(pair.identical for pair in pairs),
        cut=_cut([pair.item for pair in pairs]),
    )


def _cut(items: Sequence[ItemResult]) -> int | None:
    """Return how many answers ended at ``max_tokens``; None: no answer says how it ended."""
    ends = [item.finish_reason for item in items if item.finish_reason is not None]
    return ends.count("length") if ends else None


def _share(pairs: Sequence[Pair], read: Callable[[ItemResult], bool | None], what: str) -> Value:
    """Return the share of items that passed, with Wilson's interval."""
    values = [value for pair in pairs if (value := read(pair.item)) is not None]
    if not values:
        return Value(missing=f"no item asks for {what}", n=0)
    return share_value(sum(values), len(values))


def _examples(pairs: Sequence[Pair], prompts: Mapping[str, str]) -> list[dict[str, str]]:
    return [
        {
            "id": pair.item.id,
            "axis": pair.item.axis,
            "prompt": prompts.get(pair.item.id, ""),
            "baseline": pair.baseline_text,
            "variant": pair.item.text,
            "baseline_reason": pair.baseline_reason,
            "variant_reason": pair.item.reason,
        }
        for pair in pairs[:MAX_EXAMPLES]
    ]
