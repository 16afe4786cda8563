"""Is a variant really faster or slower than the baseline, or is it noise?

The unit of a sample is a repeat (one run of a point), never a request. A difference is called
one only when it is significant after correction for all comparisons of the study *and* larger
than what starting the same server again can do; a tie is only called when the whole interval
lies inside that band. Everything else is undecided. Each comparison says which difference its
repeats could have shown at all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from scripts.lib.analysis.comparison.difference import (
    Difference,
    Reach,
    Repeats,
    compare_repeats,
    reach_of,
    relative_noise,
)
from scripts.lib.analysis.points.digest import Digest
from scripts.lib.analysis.points.rows import group_digests
from scripts.lib.analysis.statistics import (
    MIN_RUNS_FOR_INTERVAL,
    holm,
    spread_value,
)
from scripts.lib.analysis.summary import Comparison, Value
from scripts.lib.analysis.thresholds import ASSUMED_NOISE
from scripts.lib.analysis.wording import percent, reach_words
from scripts.lib.judging.repeats import run_statistic, select
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
COMPARISON_WORDS = (
    "t-test on the logarithms of the repeats of both sides, Holm's correction over all comparisons "
    f"of the study; better or worse when p is below {ALPHA:g} and the difference beyond a band of "
    f"{percent(RESTART_BAND)}, by which equal servers may differ ({percent(MANY_SESSIONS_BAND)} "
    f"from {MIN_RUNS_FOR_INTERVAL} sessions a side, whose means are then the repeats); a tie when "
    "the whole interval lies within the band; else undecided"
)
"""How an outcome is found, for a reader of the report."""
WANTED = 0.10
"""The relative difference for which a comparison says how many repeats would show it."""

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
    """The repeats of one variant at one point and metric."""

    by_session: list[list[float]]

    @property
    def sessions(self) -> int:
        """How many servers stand behind the runs."""
        return len(self.by_session)

    @property
    def runs(self) -> list[float]:
        """Every run."""
        return [value for values in self.by_session for value in values]

    @property
    def values(self) -> list[float]:
        """The repeats: with three sessions the sessions' (geometric) means, else single runs.

        Repetitions inside one session share a server; where there are enough servers, they are
        the sample.
        """
        if self.sessions < MIN_RUNS_FOR_INTERVAL:
            return self.runs
        return [float(np.exp(np.mean(np.log(values)))) for values in self.by_session]


def samples_of(repeats: Sequence[Digest], metric: str) -> Samples | None:
    """Return the values to compare; None if the point is invalid or a run has no such number.

    Runs that the tables leave out are left out here too.
    """
    chosen = select(repeats)
    if not chosen.valid:
        return None
    by_session: dict[int, list[float]] = {}
    for digest in chosen.used:
        value = run_value(digest, metric)
        if value is None or not math.isfinite(value) or value <= 0:
            return None
        by_session.setdefault(digest.session, []).append(value)
    return Samples(list(by_session.values()))


def _of_sessions(*pair: Samples) -> bool:
    """Return whether two sides are compared by their sessions: both must have enough of them."""
    return min(own.sessions for own in pair) >= MIN_RUNS_FOR_INTERVAL


def _repeats(of_sessions: bool, *samples: Samples) -> list[list[float]]:
    """Return the repeats of several samples in one and the same unit."""
    return [own.values if of_sessions else own.runs for own in samples]


def band_of(a: Samples, b: Samples) -> float:
    """Return the relative difference below which nothing is called between two samples."""
    return MANY_SESSIONS_BAND if _of_sessions(a, b) else RESTART_BAND


def noise_of_variants(points: Iterable[Mapping[str, Samples]], baseline: str) -> dict[str, float]:
    """Return :func:`relative_noise` of the variants over all points and metrics given.

    It is relative to the baseline or, where that was not measured at any of them, to the first
    of the variants that were measured at most of them: only ratios of noises are ever used.
    """
    places = list(points)
    counts = Counter(name for samples in places for name in samples)
    reference = baseline if baseline in counts else max(counts, key=counts.__getitem__, default="")
    pairs = []
    for samples in places:
        for name, own in samples.items():
            if name != reference and reference in samples:
                units = _repeats(_of_sessions(own, samples[reference]), own, samples[reference])
                pairs.append(dict(zip((name, reference), units, strict=True)))
    return relative_noise(pairs, reference)


def difference_of(
    samples: Mapping[str, Samples], noise: Mapping[str, float], variant: str, reference: str
) -> Difference:
    """Compare two variants at one point and metric, in the same unit on both sides.

    Args:
        samples: Variant -> its repeats; those outside the pair only tell the noise.
        noise: :func:`noise_of_variants`.
        variant: One side.
        reference: The other.
    """
    of_sessions = _of_sessions(samples[variant], samples[reference])
    others = [
        name
        for name, own in samples.items()
        if name not in (variant, reference) and (not of_sessions or _of_sessions(own))
    ]
    names = [variant, reference, *others]
    values = _repeats(of_sessions, *(samples[name] for name in names))
    own, base, *rest = [
        Repeats(repeats, noise.get(name, 1.0)) for name, repeats in zip(names, values, strict=True)
    ]
    return compare_repeats(own, base, rest)


@dataclass(frozen=True)
class _Test:
    workload: str
    level: float
    metric: str
    variant: str
    difference: Difference
    band: float
    sessions: int
    of_sessions: bool


def compare(study: Study, digests: Sequence[Digest]) -> list[Comparison]:
    """Compare every variant with the baseline at every load point.

    A t-test on the logarithms of the repeats, see :mod:`difference`; p-values are corrected by
    Holm's method over all comparisons of the study. Points where one side was not measured, or
    is invalid, are left out.
    """
    tests = _tests(study, digests)
    p_values = [t.difference.p for t in tests if t.difference.p is not None]
    adjusted = holm(p_values)
    # A further difference would have been tested at this level, the last that Holm reached.
    unresolved = sum(p >= ALPHA for p in adjusted)
    each = iter(adjusted)
    return [
        _comparison(t, None if t.difference.p is None else next(each), unresolved) for t in tests
    ]


def _tests(study: Study, digests: Sequence[Digest]) -> list[_Test]:
    points = [
        (workload, level, metric, samples_at(variants, metric))
        for (workload, _, level), variants in points_of(digests).items()
        for metric in compared_metrics(digests)
    ]
    noise = noise_of_variants((samples for *_, samples in points), study.baseline)
    return [
        _Test(
            workload=workload,
            level=level,
            metric=metric,
            variant=name,
            difference=difference_of(samples, noise, name, study.baseline),
            band=band_of(own, samples[study.baseline]),
            sessions=min(own.sessions, samples[study.baseline].sessions),
            of_sessions=_of_sessions(own, samples[study.baseline]),
        )
        for workload, level, metric, samples in points
        if study.baseline in samples
        for name, own in samples.items()
        if name != study.baseline
    ]


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


def _comparison(test: _Test, p_adjusted: float | None, unresolved: int) -> Comparison:
    outcome, why = judge(test.difference, p_adjusted, test.band, test.metric)
    if test.sessions == 1 and outcome in ("better", "worse"):
        why += "; one server start a side"
    found = Comparison(
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
        repeats=min(test.difference.runs),
        repeats_of="sessions" if test.of_sessions else "repetitions",
    )
    reach = _reach(test, p_adjusted, unresolved)
    if reach is not None:
        found = found.model_copy(
            update={"detectable": reach.detectable, "repeats_needed": reach.repeats_needed}
        )
    words = reach_words(found)
    return found.model_copy(update={"why": f"{why}; {words}"}) if words else found


def _reach(test: _Test, p_adjusted: float | None, unresolved: int) -> Reach | None:
    if p_adjusted is None:
        return None
    tested = unresolved + (p_adjusted < ALPHA)
    return reach_of(test.difference, ALPHA / tested, test.band, WANTED)


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
        f"{reason}; the interval [{difference.low:.3f}, {difference.high:.3f}] allows more"
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
