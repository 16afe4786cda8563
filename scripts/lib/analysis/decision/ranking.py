"""Orders the variants that qualify: cost or throughput within the SLO; the simpler in a tie."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from scripts.lib.analysis import thresholds
from scripts.lib.analysis.decision.operating import common_ceiling, operating_row
from scripts.lib.analysis.material import Material
from scripts.lib.analysis.statistics import MIN_RUNS_FOR_INTERVAL
from scripts.lib.analysis.summary import PointRow, Value
from scripts.lib.analysis.wording import at, metric_words, number, percent, value_of

LOWER_IS_BETTER = ("usd_per_million_good_tokens", "usd_per_million_output_tokens")
RANK_METRICS = (
    *LOWER_IS_BETTER,
    "good_output_tok_s",
    "output_throughput_tok_s",
    "total_throughput_tok_s",
    "request_throughput",
)
"""The first of these that every compared variant has; throughputs count per GPU."""

NOISE_OF = {
    "usd_per_million_good_tokens": "output_throughput_tok_s",
    "usd_per_million_output_tokens": "output_throughput_tok_s",
    "good_output_tok_s": "output_throughput_tok_s",
}
"""A cost is a constant divided by a throughput: it has that throughput's relative noise."""


@dataclass(frozen=True)
class Ranking:
    """How variants compare: one metric, each at its operating point."""

    metric: str | None
    rows: dict[str, dict[str, PointRow]] = field(default_factory=dict)
    """Variant -> workload -> operating row."""
    scores: dict[str, Value] = field(default_factory=dict)
    words: str = "nothing: no variant has a load that keeps the SLO"

    def advantage(self, a: str, b: str) -> float | None:
        """Return how many times better ``a`` scores than ``b`` (above 1: better)."""
        first, second = self.scores.get(a), self.scores.get(b)
        if first is None or second is None or not first.value or not second.value:
            return None
        ratio = first.value / second.value
        return 1 / ratio if self.metric in LOWER_IS_BETTER else ratio


def rank(material: Material, variants: Sequence[str]) -> Ranking:
    """Score ``variants`` at their operating points; the ones without one are left out."""
    workloads = list(material.study.workloads)
    ceilings = {w: common_ceiling(material, variants, w) for w in workloads}
    rows: dict[str, dict[str, PointRow]] = {}
    for variant in variants:
        found = {w: operating_row(material, variant, w, ceilings[w]) for w in workloads}
        complete = {w: row for w, row in found.items() if row is not None}
        if len(complete) == len(workloads):
            rows[variant] = complete
    if not rows:
        return Ranking(metric=None)
    metric = next((m for m in RANK_METRICS if _everywhere(rows, m)), None)
    if metric is None:
        return Ranking(None, rows, {}, "nothing: no throughput was measured at a common load")
    scores = {v: _score(material, v, list(by.values()), metric) for v, by in rows.items()}
    several = any(material.study.variants[v].gpus > 1 for v in material.study.variants)
    per_gpu = several and metric not in LOWER_IS_BETTER
    return Ranking(metric, rows, scores, _ranked_by(material, metric, per_gpu))


def _everywhere(rows: dict[str, dict[str, PointRow]], metric: str) -> bool:
    return all((value_of(row, metric) or 0) > 0 for by in rows.values() for row in by.values())


def _score(material: Material, variant: str, rows: list[PointRow], metric: str) -> Value:
    gpus = 1 if metric in LOWER_IS_BETTER else material.study.variants[variant].gpus
    values = [row.metrics[metric] for row in rows]
    mean = math.prod(v.value or 0 for v in values) ** (1 / len(values)) / gpus
    if len(values) > 1:
        return Value(value=mean)
    only = values[0]
    low = None if only.low is None else only.low / gpus
    high = None if only.high is None else only.high / gpus
    return Value(value=mean, low=low, high=high, n=only.n)


def _ranked_by(material: Material, metric: str, per_gpu: bool) -> str:
    workloads = material.study.workloads
    reach = "keeps the SLO" if material.study.slo.limits_anything else "was measured"
    share = " per GPU" if per_gpu else ""
    order = "lowest" if metric in LOWER_IS_BETTER else "highest"
    mean = f", geometric mean over {len(workloads)} workloads" if len(workloads) > 1 else ""
    return (
        f"{order} {metric_words(metric)}{share} at the highest load that {reach}{mean}; "
        "within the noise the simpler one (baseline, then lower simplicity in the study, then "
        "fewer GPUs)"
    )


def tolerance(
    material: Material, metric: str, runs: tuple[int, int] = (1, 1), sessions: int = 1
) -> tuple[float, str]:
    """Return the relative difference of two means that counts as a tie, and where it comes from.

    With a measured noise floor s (relative standard deviation between repeats):
    exp(1.96 s sqrt(1/n + 1/m)) - 1 for means over n and m runs. Repeats on one server do not show
    how far two servers are apart, so with fewer than three sessions it is never less than what
    equal servers may differ by; with three, the sessions are the n and the m.
    """
    noise = noise_of(material, metric)
    assumed = thresholds.ASSUMED_NOISE
    if noise is None:
        return assumed, f"noise not measured, {percent(assumed)} assumed"
    enough = sessions >= MIN_RUNS_FOR_INTERVAL
    n, m = (sessions, sessions) if enough else runs
    share = math.expm1(thresholds.NOISE_Z * noise * math.sqrt(1 / n + 1 / m))
    if not enough and share < assumed:
        return assumed, f"equal servers may differ by {percent(assumed)}, so that is a tie"
    return share, f"noise between repeats {percent(noise)}, so up to {percent(share)} is a tie"


def noise_of(material: Material, metric: str) -> float | None:
    """Return the measured noise floor behind a ranking metric; None: it was not measured."""
    floor = material.noise_floor.get(NOISE_OF.get(metric, metric))
    return None if floor is None else floor.value


def tied(material: Material, ranking: Ranking, a: str, b: str) -> str | None:
    """Return why ``a`` and ``b`` count as equal, or None when they differ."""
    metric = ranking.metric
    ratio = ranking.advantage(a, b)
    if metric is None or ratio is None:
        return "no score sets them apart"
    verdict = _tested(material, ranking, a, b)
    if verdict is False:
        return None
    if verdict is True:
        return f"the comparison of repeats finds no difference (ratio {number(ratio)})"
    runs = [min(row.runs for row in ranking.rows[v].values()) for v in (a, b)]
    sessions = min(row.sessions for v in (a, b) for row in ranking.rows[v].values())
    share, source = tolerance(material, metric, (runs[0], runs[1]), sessions)
    if abs(math.log(ratio)) <= math.log1p(share):
        return f"they differ by {percent(abs(ratio - 1))} ({source})"
    return None


def _tested(material: Material, ranking: Ranking, a: str, b: str) -> bool | None:
    """What the comparisons say where one of the two is the baseline: True: a tie, False: not.

    None: not compared at these loads, or too few repeats for a verdict.
    """
    baseline = material.study.baseline
    if baseline not in (a, b):
        return None
    variant = b if a == baseline else a
    outcomes = [_outcome(material, ranking, variant, w) for w in ranking.rows[variant]]
    if None in outcomes or "undecided" in outcomes:
        return None
    return all(outcome == "tie" for outcome in outcomes)


def _outcome(material: Material, ranking: Ranking, variant: str, workload: str) -> str | None:
    own = ranking.rows[variant][workload]
    base = ranking.rows[material.study.baseline][workload]
    metric = NOISE_OF.get(ranking.metric or "", ranking.metric)
    if own.level != base.level:
        return None
    for found in material.comparisons:
        key = (found.variant, found.workload, found.level, found.metric)
        if key == (variant, workload, own.level, metric):
            undecided = found.outcome == "undecided" and found.low is not None
            return "tie" if undecided else found.outcome
    return None


def simplest(material: Material, variants: Sequence[str]) -> str:
    """Return the simplest of ``variants``: baseline, `simplicity`, fewer GPUs, study order."""
    order = list(material.study.variants)

    def key(name: str) -> tuple[bool, int, int, int]:
        variant = material.study.variants[name]
        not_baseline = name != material.study.baseline
        return not_baseline, variant.simplicity, variant.gpus, order.index(name)

    return min(variants, key=key)


def choose(material: Material, ranking: Ranking, variants: Sequence[str]) -> tuple[str, list[str]]:
    """Return the best of ``variants`` and, for each one it is tied with, the reason in words."""
    scored = [v for v in variants if v in ranking.scores]
    if not scored:
        return simplest(material, variants), []
    best = max(scored, key=lambda v: ranking.advantage(v, scored[0]) or 0)
    ties = {v: why for v in scored if v != best if (why := tied(material, ranking, best, v))}
    chosen = simplest(material, [best, *ties])
    if chosen == best:
        words = [f"{material.label(v)} counts as equal: {why}" for v, why in ties.items()]
    else:
        words = [
            f"{material.label(best)} scores best, but {material.label(chosen)} counts as equal "
            f"({ties[chosen]}) and is simpler"
        ]
    return chosen, words


def operating_words(ranking: Ranking, variant: str) -> str:
    """Return at which load a variant is judged, in words."""
    rows = ranking.rows.get(variant, {})
    return ", ".join(f"{w} at {at(row)}" if len(rows) > 1 else at(row) for w, row in rows.items())
