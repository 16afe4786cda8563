"""Which variant is best at which load, and why that changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np

from scripts.lib.analysis.comparison.comparisons import (
    RESTART_BAND,
    Samples,
    band_of,
    compared_metrics,
    is_higher_better,
    judge,
    others,
    points_of,
    samples_at,
)
from scripts.lib.analysis.points.digest import Digest
from scripts.lib.analysis.statistics import MIN_RUNS_FOR_INTERVAL, compare_repeats, holm
from scripts.lib.analysis.summary import Crossover
from scripts.lib.analysis.wording import percent
from scripts.lib.plan.models import Plan
from scripts.lib.study.models import Study
from scripts.lib.study.slo import PERCENTILE_FLOORS

TAILS = ("ttft_p95_ms", "ttft_p99_ms", "tpot_p95_ms", "tpot_p99_ms")
NAMES = {
    "output_throughput_tok_s": "output throughput",
    "total_throughput_tok_s": "total throughput",
    "tpot": "TPOT",
    "ttft": "TTFT",
}

Levels = dict[float, dict[str, list[Digest]]]


def find_crossovers(
    study: Study, digests: Sequence[Digest], plans: Mapping[str, Plan] | None = None
) -> list[Crossover]:
    """Return, per workload and metric, the best variants at each level of load.

    A variant shares the first place when it cannot be told from the best one: by the test of
    :mod:`comparisons` (corrected within the level) where there are repeats, and when it is
    within ``RESTART_BAND`` where there are not. Levels with fewer than two measured variants
    are left out.

    Args:
        study: For the order of the variants.
        digests: All points.
        plans: The roofline's concurrency from which compute takes over, per variant, against
            which the words are checked.
    """
    crossovers = []
    for workload, levels in _by_workload(digests).items():
        for metric in [*compared_metrics(digests), *TAILS]:
            best = {
                level: names
                for level, variants in sorted(levels.items())
                if (names := best_at(study, variants, metric))
            }
            if best:
                crossovers.append(_crossover(workload, metric, best, levels, plans or {}))
    return crossovers


def _by_workload(digests: Sequence[Digest]) -> dict[str, Levels]:
    workloads: dict[str, Levels] = {}
    for (workload, kind, level), variants in points_of(digests).items():
        if kind in ("concurrency", "rate"):
            workloads.setdefault(workload, {})[level] = variants
    return workloads


def best_at(study: Study, variants: Mapping[str, Sequence[Digest]], metric: str) -> list[str]:
    """Return the best variant and those tied with it, in the study's order; [] if under two."""
    samples = samples_at(
        {name: repeats for name, repeats in variants.items() if not _withheld(repeats, metric)},
        metric,
    )
    if len(samples) < 2:
        return []
    sign = -1 if is_higher_better(metric) else 1
    centre = {name: float(np.mean(np.log(own.values))) for name, own in samples.items()}
    first = min(samples, key=lambda name: sign * centre[name])
    tied = {first, *_tied_with(first, samples, metric)}
    known = [name for name in study.variants if name in tied]
    return known + sorted(tied - set(known))


def _withheld(repeats: Sequence[Digest], metric: str) -> bool:
    """Return whether a tail has too few requests to be compared; reported ones are passed on."""
    name, statistic = metric.split("_")[:2]
    samples = [d.samples[name] for d in repeats if d.samples and name in d.samples]
    return bool(samples) and sum(map(len, samples)) < PERCENTILE_FLOORS.get(statistic, 0)


def _tied_with(first: str, samples: Mapping[str, Samples], metric: str) -> list[str]:
    rivals = [name for name in samples if name != first]
    differences = {
        name: compare_repeats(
            samples[name].values, samples[first].values, others(samples, name, first)
        )
        for name in rivals
    }
    raw = {name: d.p for name, d in differences.items() if d.p is not None}
    p_adjusted = dict(zip(raw, holm(list(raw.values())), strict=True))
    tied = []
    for name in rivals:
        band = band_of(samples[name], samples[first])
        if name in p_adjusted:
            outcome, _ = judge(differences[name], p_adjusted[name], band, metric)
            apart = outcome == "worse"
        else:
            apart = abs(np.log(differences[name].ratio)) > np.log1p(band)
        if not apart:
            tied.append(name)
    return tied


def _crossover(
    workload: str,
    metric: str,
    best: Mapping[float, list[str]],
    levels: Levels,
    plans: Mapping[str, Plan],
) -> Crossover:
    words = _words(metric, best)
    if why := _why(metric, best, plans):
        words += f" {why}"
    runs = [len(repeats) for level in best for repeats in levels[level].values()]
    if min(runs) < MIN_RUNS_FOR_INTERVAL:
        words += f" Fewer than three runs a point: ties are those within {percent(RESTART_BAND)}."
    return Crossover(
        workload=workload,
        metric=metric,
        levels=list(best),
        best=list(best.values()),
        words=words,
    )


def _words(metric: str, best: Mapping[float, list[str]]) -> str:
    """Say who leads where, e.g. ``Best TPOT (mean): a up to 10; a and b tied at 100; b at 300``."""
    parts = []
    for names, group in groupby(best.items(), key=lambda item: item[1]):
        run = [level for level, _ in group]
        where = f"at {run[0]:g}" if len(run) == 1 else f"from {run[0]:g} to {run[-1]:g}"
        tied = f"{', '.join(names[:-1])} and {names[-1]} tied" if len(names) > 1 else names[0]
        parts.append(f"{tied} {where}")
    return f"Best {_metric_words(metric)}: {'; '.join(parts)}."


def _metric_words(metric: str) -> str:
    if metric in NAMES:
        return NAMES[metric]
    name, statistic, _ = metric.split("_")
    return f"{NAMES[name]} ({statistic})"


def _why(metric: str, best: Mapping[float, list[str]], plans: Mapping[str, Plan]) -> str:
    """Explain a change of the leader: weights are read per step, arithmetic grows with load."""
    leaders = list(best.values())
    if metric.startswith("ttft") or all(names == leaders[0] for names in leaders):
        return ""
    low, high = (bits_of(plans, names) for names in (leaders[0], leaders[-1]))
    if low is None or high is None:
        return ""
    if low < high:
        text = (
            f"At low load each step waits for the weights to be read, and {low}-bit weights are "
            f"the fewest bytes (weight-bound); at high load arithmetic decides, where "
            f"{leaders[-1][0]} computes more cheaply than unpacking smaller weights "
            "(compute-bound)."
        )
        return text + _roofline(best, leaders, plans)
    return ""


def bits_of(plans: Mapping[str, Plan], names: Sequence[str]) -> int | None:
    """Return the fewest weight bits among variants as their plans expect them to run."""
    bits = []
    for name in names:
        plan = plans.get(name)
        scheme = plan.expected.scheme if plan else ""
        digits = scheme[1:].split("a")[0] if scheme.startswith("w") else scheme.strip("bfp")
        if digits.isdigit():
            bits.append(int(digits))
    return min(bits, default=None)


def _roofline(
    best: Mapping[float, list[str]], leaders: Sequence[list[str]], plans: Mapping[str, Plan]
) -> str:
    """Set the measured change beside the roofline's estimate."""
    change = next(level for level, names in best.items() if names != leaders[0])
    estimate = plans[leaders[0][0]].compute_bound_from if leaders[0][0] in plans else None
    if estimate is None:
        return ""
    before = max((level for level in best if level < change), default=0.0)
    agrees = "agrees with" if before <= estimate.value <= change else "differs from"
    return (
        f" The change between {before:g} and {change:g} {agrees} the roofline, which puts it "
        f"at {estimate.value:,.0f}."
    )
