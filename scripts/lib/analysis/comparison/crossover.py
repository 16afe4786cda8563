"""Which variant is best at which load, and why that changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations, groupby

import numpy as np

from scripts.lib.analysis.comparison.comparisons import (
    RESTART_BAND,
    Samples,
    band_of,
    compared_metrics,
    difference_of,
    is_higher_better,
    judge,
    noise_of_variants,
    points_of,
    samples_at,
)
from scripts.lib.analysis.points.digest import Digest
from scripts.lib.analysis.statistics import MIN_RUNS_FOR_INTERVAL, holm
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
Place = tuple[str, str, float]
"""Workload, metric and level of load."""
Places = dict[Place, dict[str, Samples]]


def find_crossovers(
    study: Study, digests: Sequence[Digest], plans: Mapping[str, Plan] | None = None
) -> list[Crossover]:
    """Return, per workload and metric, the best variants at each level of load.

    A variant shares the first place when it cannot be told from the best one: by the test of
    :mod:`comparisons` where there are repeats, and when it is within ``RESTART_BAND`` where
    there are not. The best one is only known from the data, so the test is corrected for every
    pair of variants at every place. Levels with fewer than two measured variants are left out,
    and so is, where a workload is repeated, a variant with fewer than three sound runs.

    Args:
        study: For the order of the variants.
        digests: All points.
        plans: The roofline's concurrency from which compute takes over, per variant, against
            which the words are checked.
    """
    workloads = _by_workload(digests)
    metrics = [*compared_metrics(digests), *TAILS]
    places = _places(workloads, metrics)
    apart = _told_apart(study, places)
    crossovers = []
    for workload, levels in workloads.items():
        for metric in metrics:
            best = {
                level: _best(study, places, (workload, metric, level), apart)
                for level in sorted(levels)
                if (workload, metric, level) in places
            }
            if best:
                repeated = _repeated(levels)
                crossovers.append(_crossover(workload, metric, best, repeated, plans or {}))
    return crossovers


def _by_workload(digests: Sequence[Digest]) -> dict[str, Levels]:
    workloads: dict[str, Levels] = {}
    for (workload, kind, level), variants in points_of(digests).items():
        if kind in ("concurrency", "rate"):
            workloads.setdefault(workload, {})[level] = variants
    return workloads


def _places(workloads: Mapping[str, Levels], metrics: Sequence[str]) -> Places:
    """Return the samples wherever two variants or more have them."""
    places: Places = {}
    for workload, levels in workloads.items():
        for level, variants in levels.items():
            for metric in metrics:
                shown = {n: own for n, own in variants.items() if not _withheld(own, metric)}
                samples = {
                    name: own
                    for name, own in samples_at(shown, metric).items()
                    if len(own.runs) >= MIN_RUNS_FOR_INTERVAL or not _repeated(levels)
                }
                if len(samples) > 1:
                    places[workload, metric, level] = samples
    return places


def _repeated(levels: Levels) -> bool:
    """Return whether a workload was run often enough to know its noise."""
    runs = [len(repeats) for variants in levels.values() for repeats in variants.values()]
    return max(runs) >= MIN_RUNS_FOR_INTERVAL


def _withheld(repeats: Sequence[Digest], metric: str) -> bool:
    """Return whether a tail has too few requests to be compared; reported ones are passed on."""
    name, statistic = metric.split("_")[:2]
    samples = [d.samples[name] for d in repeats if d.samples and name in d.samples]
    return bool(samples) and sum(map(len, samples)) < PERCENTILE_FLOORS.get(statistic, 0)


def _best(
    study: Study, places: Places, place: Place, apart: Collection[tuple[Place, frozenset[str]]]
) -> list[str]:
    """Return the best variant and those tied with it, in the study's order."""
    samples = places[place]
    sign = -1 if is_higher_better(place[1]) else 1
    centre = {name: float(np.mean(np.log(own.values))) for name, own in samples.items()}
    first = min(samples, key=lambda name: sign * centre[name])
    tied = {name for name in samples if (place, frozenset({name, first})) not in apart}
    known = [name for name in study.variants if name in tied]
    return known + sorted(tied - set(known))


def _told_apart(study: Study, places: Places) -> set[tuple[Place, frozenset[str]]]:
    """Return every pair of variants that differs beyond noise and band, with its place."""
    noise = noise_of_variants(places.values(), study.baseline)
    differences = {
        (place, pair): difference_of(samples, noise, *pair)
        for place, samples in places.items()
        for pair in combinations(samples, 2)
    }
    raw = {key: d.p for key, d in differences.items() if d.p is not None}
    p_adjusted = dict(zip(raw, holm(list(raw.values())), strict=True))
    apart = set()
    for (place, pair), difference in differences.items():
        band = band_of(*(places[place][name] for name in pair))
        if difference.p is None:
            different = abs(np.log(difference.ratio)) > np.log1p(band)
        else:
            outcome, _ = judge(difference, p_adjusted[place, pair], band, place[1])
            different = outcome in ("better", "worse")
        if different:
            apart.add((place, frozenset(pair)))
    return apart


def _crossover(
    workload: str,
    metric: str,
    best: Mapping[float, list[str]],
    repeated: bool,
    plans: Mapping[str, Plan],
) -> Crossover:
    words = _words(metric, best)
    if why := _why(metric, best, plans):
        words += f" {why}"
    if not repeated:
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
