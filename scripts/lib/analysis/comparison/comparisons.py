"""Is a variant really faster or slower than the baseline, or is it noise?

The unit of a sample is a repeat (one run of a point), never a request. A difference is called
one only when it is significant after correction for all comparisons of the study *and* larger
than what starting the same server again can do; a tie is only called when the whole interval
lies inside that band. Everything else is undecided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from scripts.lib.analysis.points.digest import Digest
from scripts.lib.analysis.points.rows import group_digests
from scripts.lib.analysis.statistics import (
    MIN_RUNS_FOR_INTERVAL,
    Difference,
    compare_repeats,
    holm,
    spread_value,
)
from scripts.lib.analysis.summary import Comparison, Value
from scripts.lib.analysis.thresholds import ASSUMED_NOISE
from scripts.lib.load.repeats import run_statistic, select
from scripts.lib.study.models import Study

Outcome = Literal["better", "worse", "tie", "undecided"]

ALPHA = 0.05
RESTART_BAND = ASSUMED_NOISE
"""Relative difference that two starts of one and the same server may show. With fewer than three
sessions a side the spread between servers cannot be seen in the repeats, so no difference inside
this band is ever called."""
MANY_SESSIONS_BAND = 0.02
"""With three sessions or more a side, the spread between servers is part of the test; this much
is too small to matter."""

THROUGHPUTS = ("output_throughput_tok_s", "total_throughput_tok_s")
LATENCIES = ("tpot_mean_ms", "ttft_mean_ms")


def is_higher_better(metric: str) -> bool:
    """Return whether more of a metric is better (throughput) or worse (latency, cost)."""
    return not metric.endswith("_ms") and not metric.startswith(("usd_", "joules_"))


def compared_metrics(digests: Sequence[Digest]) -> list[str]:
    """Return the metrics worth a test: one throughput, mean TPOT and mean TTFT.

    Few on purpose: every further comparison makes each one harder to decide. Output throughput
    is preferred; results that hold only the total are compared by that.
    """
    throughput = next(
        (m for m in THROUGHPUTS if any(run_value(d, m) is not None for d in digests)), None
    )
    return [*([throughput] if throughput else []), *LATENCIES]


def run_value(digest: Digest, metric: str) -> float | None:
    """Return one run's value of a throughput or of a latency's statistic (``ttft_p95_ms``)."""
    if metric in THROUGHPUTS or metric == "request_throughput":
        value: float | None = getattr(digest.point, metric)
        return value
    name, statistic, _ = metric.split("_")
    return run_statistic(digest, name, statistic)


@dataclass(frozen=True)
class Samples:
    """The repeats of one variant at one point."""

    values: list[float]
    sessions: int


def samples_of(repeats: Sequence[Digest], metric: str) -> Samples | None:
    """Return the values to compare: session means with three sessions, else single runs.

    Repetitions inside one session share a server; where there are enough servers, they are the
    sample. Runs that the tables leave out are left out here too. None if the point is invalid
    or a run does not have the metric.
    """
    chosen = select(repeats)
    if not chosen.valid:
        return None
    by_session: dict[int, list[float]] = {}
    for digest in chosen.used:
        value = run_value(digest, metric)
        if value is None or value <= 0:
            return None
        by_session.setdefault(digest.session, []).append(value)
    if len(by_session) >= MIN_RUNS_FOR_INTERVAL:
        means = [float(np.exp(np.mean(np.log(values)))) for values in by_session.values()]
        return Samples(means, len(by_session))
    return Samples([v for values in by_session.values() for v in values], len(by_session))


def band_of(a: Samples, b: Samples) -> float:
    """Return the relative difference below which nothing is called between two samples."""
    enough = min(a.sessions, b.sessions) >= MIN_RUNS_FOR_INTERVAL
    return MANY_SESSIONS_BAND if enough else RESTART_BAND


@dataclass(frozen=True)
class _Test:
    workload: str
    level: float
    metric: str
    variant: str
    difference: Difference
    band: float
    sessions: int


def compare(study: Study, digests: Sequence[Digest]) -> list[Comparison]:
    """Compare every variant with the baseline at every load point.

    A t-test on the logarithms of the repeats, with the noise pooled over the variants of a
    point; p-values are corrected by Holm's method over all comparisons of the study. Points
    where one side was not measured, or is invalid, are left out.
    """
    tests = _tests(study, digests)
    p_values = [t.difference.p for t in tests if t.difference.p is not None]
    adjusted = iter(holm(p_values))
    return [_comparison(t, None if t.difference.p is None else next(adjusted)) for t in tests]


def _tests(study: Study, digests: Sequence[Digest]) -> list[_Test]:
    tests = []
    for (workload, _, level), variants in points_of(digests).items():
        for metric in compared_metrics(digests):
            samples = samples_at(variants, metric)
            baseline = samples.get(study.baseline)
            if baseline is None:
                continue
            tests += [
                _Test(
                    workload=workload,
                    level=level,
                    metric=metric,
                    variant=name,
                    difference=compare_repeats(
                        own.values, baseline.values, others(samples, name, study.baseline)
                    ),
                    band=band_of(own, baseline),
                    sessions=min(own.sessions, baseline.sessions),
                )
                for name, own in samples.items()
                if name != study.baseline
            ]
    return tests


Variants = dict[str, list[Digest]]


def points_of(digests: Sequence[Digest]) -> dict[tuple[str, str, float], Variants]:
    """Return the repeats of every variant at each (workload, kind, level), in that order."""
    points: dict[tuple[str, str, float], Variants] = {}
    for (variant, workload, kind, level), repeats in sorted(group_digests(digests).items()):
        points.setdefault((workload, kind, level), {})[variant] = repeats
    return dict(sorted(points.items()))


def samples_at(variants: Mapping[str, Sequence[Digest]], metric: str) -> dict[str, Samples]:
    """Return the samples of every variant that has a sound one at this point."""
    samples = {name: samples_of(repeats, metric) for name, repeats in variants.items()}
    return {name: own for name, own in samples.items() if own is not None}


def others(samples: Mapping[str, Samples], *pair: str) -> list[list[float]]:
    """Return the values of the variants outside ``pair``, for the noise only."""
    return [own.values for name, own in samples.items() if name not in pair]


def _comparison(test: _Test, p_adjusted: float | None) -> Comparison:
    outcome, why = judge(test.difference, p_adjusted, test.band, test.metric)
    if test.sessions == 1 and outcome in ("better", "worse"):
        why += "; one server start a side"
    return Comparison(
        workload=test.workload,
        level=test.level,
        metric=test.metric,
        variant=test.variant,
        ratio=test.difference.ratio,
        low=test.difference.low,
        high=test.difference.high,
        p_adjusted=p_adjusted,
        outcome=outcome,
        why=why,
    )


def judge(
    difference: Difference, p_adjusted: float | None, band: float, metric: str
) -> tuple[Outcome, str]:
    """Return what a difference amounts to, and why."""
    if p_adjusted is None or difference.low is None or difference.high is None:
        runs = min(difference.runs)
        shows = "1 run a side shows" if runs == 1 else f"{runs} runs a side show"
        return "undecided", (
            f"{shows} too little of the spread; {MIN_RUNS_FOR_INTERVAL} repeats are needed to "
            "tell a difference from noise"
        )
    limits = (1 / (1 + band), 1 + band)
    ratio = difference.ratio
    significant = p_adjusted < ALPHA
    if significant and not limits[0] <= ratio <= limits[1]:
        better = (ratio > 1) == is_higher_better(metric)
        return "better" if better else "worse", (
            f"ratio {ratio:.3f} [{difference.low:.3f}, {difference.high:.3f}], "
            f"p = {p_adjusted:.2g} after Holm's correction, beyond the {band:.0%} band"
        )
    if limits[0] <= difference.low and difference.high <= limits[1]:
        return "tie", (
            f"the interval [{difference.low:.3f}, {difference.high:.3f}] lies inside the "
            f"{band:.0%} that equal servers may differ by"
        )
    reason = (
        f"ratio {ratio:.3f} is inside the {band:.0%} that equal servers may differ by"
        if significant
        else f"p = {p_adjusted:.2g} after Holm's correction"
    )
    return "undecided", (
        f"{reason}; the interval [{difference.low:.3f}, {difference.high:.3f}] allows more: "
        "more repetitions or sessions would tell"
    )


def noise_floor(study: Study, digests: Sequence[Digest]) -> dict[str, Value]:
    """Return how far the baseline differs from itself: relative spread of repeats, per metric.

    The spread (standard deviation of the logarithms) is pooled over the load points. Where
    there are several sessions it is that between single runs of all of them.
    """
    chosen = [
        select(repeats)
        for key, repeats in group_digests(digests).items()
        if key[0] == study.baseline
    ]
    groups = [selection.used for selection in chosen if selection.valid]
    return {metric: spread_value(_values(groups, metric)) for metric in compared_metrics(digests)}


def _values(groups: Sequence[Sequence[Digest]], metric: str) -> list[list[float]]:
    values = [[run_value(d, metric) for d in group] for group in groups]
    return [[v for v in group if v is not None and v > 0] for group in values]
