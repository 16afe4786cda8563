"""The answer of a study: one recommendation, "none qualifies", or "undecided", with reasons."""

from __future__ import annotations

from dataclasses import dataclass

from scripts.lib.analysis.comparison.quality_need import more_items
from scripts.lib.analysis.decision import gates as gating
from scripts.lib.analysis.decision.gate_words import NOUNS, against, open_gates
from scripts.lib.analysis.decision.limitations import limitations
from scripts.lib.analysis.decision.ranking import (
    LOWER_IS_BETTER,
    Ranking,
    choose,
    operating_words,
    rank,
    tied,
)
from scripts.lib.analysis.decision.rollback import rollback_conditions
from scripts.lib.analysis.material import Material
from scripts.lib.analysis.summary import Candidate, Decision, Gate, Value
from scripts.lib.analysis.wording import interval, listed, metric_words, number


@dataclass(frozen=True)
class _Field:
    """The candidates, sorted by whether they qualify."""

    gates: dict[str, list[Gate]]
    qualified: list[str]
    undecided: list[str]
    failed: list[str]


def decide(material: Material) -> Decision:
    """Judge every variant through the gates and choose among those that pass.

    The rollback command is filled in by the caller, who knows the baseline's command line.
    """
    field = _field(material)
    ranking = rank(material, [*field.qualified, *field.undecided])
    if field.qualified:
        return _recommended(material, field, ranking)
    candidates = _candidates(material, field, ranking)
    unjudged = {v: against(material, field.gates[v]) for v in field.undecided}
    rejected = {v: against(material, field.gates[v]) for v in field.failed}
    outcome = "undecided" if field.undecided else "none qualifies"
    return Decision.model_validate(
        {
            "outcome": outcome,
            "variant": None,
            "headline": _headline_without_answer(material, unjudged, rejected),
            "reasons": [f"{material.label(v)}: {why}" for v, w in unjudged.items() for why in w],
            "rejected": rejected,
            "candidates": candidates,
            "limitations": limitations(material, None, ranking),
            "rollback": [],
            "rollback_command": None,
            "ranked_by": ranking.words,
        }
    )


def _field(material: Material) -> _Field:
    gates = {v: gating.judge(material, v) for v in material.study.variants}
    verdicts = {v: gating.qualifies(material, found) for v, found in gates.items()}
    return _Field(
        gates=gates,
        qualified=[v for v, ok in verdicts.items() if ok is True],
        undecided=[v for v, ok in verdicts.items() if ok is None],
        failed=[v for v, ok in verdicts.items() if ok is False],
    )


def _candidates(material: Material, field: _Field, ranking: Ranking) -> list[Candidate]:
    return [
        Candidate(
            variant=variant,
            qualifies=gating.qualifies(material, gates),
            gates=gates,
            score=ranking.scores.get(variant) or Value(missing=_no_score(gates)),
        )
        for variant, gates in field.gates.items()
    ]


def _no_score(gates: list[Gate]) -> str:
    failed = next((g for g in gates if g.passed is False), None)
    if failed is not None:
        return f"not ranked: disqualified at the gate {failed.gate}"
    return "not ranked: no valid load that keeps the SLO and has a throughput"


def _recommended(material: Material, field: _Field, ranking: Ranking) -> Decision:
    chosen, ties = choose(material, ranking, field.qualified)
    better = _might_be_better(material, field, ranking, chosen)
    rejected = {v: against(material, field.gates[v]) for v in [*field.failed, *field.undecided]}
    for other in field.qualified:
        if other != chosen:
            rejected[other] = [_why_not(material, ranking, chosen, other)]
    return Decision(
        outcome="recommended",
        variant=chosen,
        headline=_headline(material, field, ranking, chosen, better),
        reasons=[*_reasons(field, ranking, chosen), *ties, *better.values()],
        rejected=rejected,
        candidates=_candidates(material, field, ranking),
        limitations=[
            *_no_way_back(material, field, chosen),
            *limitations(material, chosen, ranking),
        ],
        rollback=rollback_conditions(material, chosen, ranking.rows.get(chosen, {})),
        rollback_command=None,
        ranked_by=ranking.words,
    )


def _no_way_back(material: Material, field: _Field, chosen: str) -> list[str]:
    """Say so where the baseline, which a rollback returns to, is itself no sound choice."""
    baseline = material.study.baseline
    if chosen == baseline or baseline in field.qualified:
        return []
    reasons = "; ".join(against(material, field.gates[baseline]))
    return [
        f"The baseline {baseline} does not qualify itself ({reasons}): a rollback returns to a "
        "configuration that was not found good."
    ]


def _might_be_better(
    material: Material, field: _Field, ranking: Ranking, chosen: str
) -> dict[str, str]:
    """Return the undecided variants that would win if they passed, each with a sentence."""
    words = {}
    for variant in field.undecided:
        ratio = ranking.advantage(variant, chosen)
        if ratio is None or ratio <= 1 or tied(material, ranking, variant, chosen):
            continue
        open_ = open_gates(material, field.gates[variant])
        reasons = "; ".join(f"its {NOUNS[g.gate]} is undecided: {g.why}" for g in open_)
        gain = _gain_words(ranking, ratio, chosen)
        words[variant] = f"{material.label(variant)} {gain}, but {reasons}"
    return words


def _gain_words(ranking: Ranking, ratio: float, other: str) -> str:
    metric = ranking.metric or ""
    verb = "costs" if metric in LOWER_IS_BETTER else "yields"
    return f"{verb} {_times(ranking, ratio)} {other}'s {metric_words(metric)}"


def _headline(
    material: Material, field: _Field, ranking: Ranking, chosen: str, better: dict[str, str]
) -> str:
    verb = "Keep" if chosen == material.study.baseline else "Serve"
    reach = "keeps the SLO" if material.study.slo.limits_anything else "was measured"
    text = f"{verb} {material.label(chosen)}: it {reach} up to "
    text += operating_words(ranking, chosen) or "the measured load"
    score = ranking.scores.get(chosen)
    if score is not None and ranking.metric is not None:
        text += f" with {interval(score)} {metric_words(ranking.metric)}"
    versus = _against_baseline(material, ranking, chosen)
    text += f", {versus}." if versus else "."
    conditions = _conditions(material, field.gates[chosen])
    if conditions:
        text += f" Provided that {listed(conditions)}."
    for variant in better:
        text += f" {_better_in_short(material, field, ranking, chosen, variant)}"
    return text


def _better_in_short(
    material: Material, field: _Field, ranking: Ranking, chosen: str, variant: str
) -> str:
    """Return in one short sentence what an undecided variant would gain and what it lacks."""
    ratio = ranking.advantage(variant, chosen)
    assert ratio is not None
    open_ = open_gates(material, field.gates[variant])
    lacks = listed([f"its {NOUNS[g.gate]} is undecided" for g in open_])
    gain = _gain_words(ranking, ratio, chosen)
    view, quality = material.quality_of(variant), material.study.quality
    need = ""
    if view is not None and view.outcome == "undecided" and quality is not None:
        more = more_items(view, quality)
        need = f" ({more:,} more probe items might prove it)" if more else ""
    return f"{material.label(variant)} {gain}, but {lacks}{need}."


def _against_baseline(material: Material, ranking: Ranking, chosen: str) -> str:
    baseline = material.study.baseline
    ratio = ranking.advantage(chosen, baseline)
    if chosen == baseline or ratio is None or ranking.metric is None:
        return ""
    return f"{_times(ranking, ratio)} {baseline}'s"


def _times(ranking: Ranking, ratio: float) -> str:
    lower = ranking.metric in LOWER_IS_BETTER
    return f"{number(1 / ratio if lower else ratio)} times"


def _conditions(material: Material, gates: list[Gate]) -> list[str]:
    """Return what a recommendation rests on though it was not proven."""
    words = {
        "kernel": "its kernel path is what the checkpoint promises (not proven)",
        "quality": "its quality holds (not measured)",
    }
    return [
        words[g.gate]
        for g in gates
        if g.passed is None and not gating.blocks(material, g) and g.gate in words
    ]


def _reasons(field: _Field, ranking: Ranking, chosen: str) -> list[str]:
    told = [g for g in field.gates[chosen] if g.gate in ("kernel", "quality", "slo", "cost")]
    reasons = [f"{_capital(NOUNS[g.gate])}: {g.why}" for g in told]
    for other in field.qualified:
        if other != chosen:
            reasons.append(_comparison_words(ranking, chosen, other))
    return reasons


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _comparison_words(ranking: Ranking, chosen: str, other: str) -> str:
    own, theirs = ranking.scores.get(chosen), ranking.scores.get(other)
    if own is None or theirs is None or ranking.metric is None:
        return f"{chosen} and {other} both qualify; no score sets them apart"
    return (
        f"{metric_words(ranking.metric)}: {chosen} {interval(own)} "
        f"({operating_words(ranking, chosen)}), {other} {interval(theirs)} "
        f"({operating_words(ranking, other)})"
    )


def _why_not(material: Material, ranking: Ranking, chosen: str, other: str) -> str:
    ratio = ranking.advantage(other, chosen)
    equal = tied(material, ranking, other, chosen)
    if equal:
        return f"qualifies and counts as equal ({equal}), but {chosen} is simpler"
    assert ratio is not None
    return f"qualifies, but {_gain_words(ranking, ratio, chosen)}"


def _headline_without_answer(
    material: Material, unjudged: dict[str, list[str]], rejected: dict[str, list[str]]
) -> str:
    parts = [f"{material.label(v)}: {'; '.join(why)}" for v, why in (unjudged or rejected).items()]
    start = (
        "No recommendation yet, for want of evidence. " if unjudged else "No variant qualifies. "
    )
    return start + " ".join(f"{part.rstrip('.')}." for part in parts)
