"""How far two sets of repeats lie apart, how surely, and what they could have shown at all.

On the log scale, where a difference is a ratio and noise is relative. The distributions are those
of scipy.special: the same as in scipy.stats, which takes half a second to import.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import optimize, special

from scripts.lib.analysis.statistics import CONFIDENCE, MIN_RUNS_FOR_INTERVAL, Floats

RESOLUTION = 1e-6
"""Smallest relative spread of repeats that is believed: the resolution of the records."""

POOL_LEVEL = 0.25
"""Others lend their freedom unless the two sides are noisier than they at this level. A pre-test at
a quarter keeps the error rate near the nominal one (Bozivich, Bancroft and Hartley, Annals of
Mathematical Statistics 27, 1956)."""

ALIKE = 4.0
"""Only variants whose variance over the study is within this factor of both sides' lend theirs."""

MOST_APART = 1e4
"""Two variants' noises are never taken to be further apart: repeats that were rounded to the same
number do not have none."""

POWER = 0.9
"""A difference can be shown when so many of equal studies would call it."""

MOST_REPEATS = 200
_QUANTILES = (np.arange(100) + 0.5) / 100


@dataclass(frozen=True)
class Repeats:
    """The repeats of one variant at one point."""

    values: Sequence[float] | Floats
    """Positive, of one metric."""
    noise: float = 1.0
    """Variance of this variant's repeats over the whole study, relative to the others'."""

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the spread."""
        return len(self.values) - 1

    @property
    def variance(self) -> float:
        """Variance of the logarithms."""
        return float(np.var(np.log(self.values), ddof=1))


@dataclass(frozen=True)
class Difference:
    """The ratio of two sets of repeats. All but the ratio is None without enough repeats."""

    ratio: float
    low: float | None
    high: float | None
    p: float | None
    runs: tuple[int, int]
    error: float | None = None
    """Standard error of the ratio's logarithm ..."""
    freedom: float | None = None
    """... and its degrees of freedom."""


def compare_repeats(
    variant: Repeats,
    baseline: Repeats,
    others: Sequence[Repeats] = (),
    confidence: float = CONFIDENCE,
) -> Difference:
    """Compare two sets of positive repeats by a t-test on their logarithms.

    The ratio is that of the geometric means. Two equally noisy sides make it Student's test.
    Where one side is the noisier over the whole study, the freedom is Satterthwaite's for that
    ratio of variances: three repeats alone cannot tell it (Welch's test takes it from them and
    misses half of the differences for it). With fewer than three repeats on either side there
    is neither interval nor p.

    Args:
        variant: Its repeats.
        baseline: The repeats it is compared with.
        others: Repeats of further variants of the same point, for the noise only.
        confidence: Of the interval of the ratio.
    """
    means = [float(np.log(side.values).mean()) for side in (variant, baseline)]
    difference = means[0] - means[1]
    runs = (len(variant.values), len(baseline.values))
    if min(runs) < MIN_RUNS_FOR_INTERVAL:
        return Difference(float(np.exp(difference)), None, None, None, runs)
    error, freedom = _noise(variant, baseline, others)
    half = float(special.stdtrit(freedom, (1 + confidence) / 2)) * error
    return Difference(
        ratio=float(np.exp(difference)),
        low=float(np.exp(difference - half)),
        high=float(np.exp(difference + half)),
        p=float(2 * special.stdtr(freedom, -abs(difference) / error)),
        runs=runs,
        error=error,
        freedom=freedom,
    )


def _noise(variant: Repeats, baseline: Repeats, others: Sequence[Repeats]) -> tuple[float, float]:
    """Return the standard error of the difference of the means, and its freedom."""
    sides = (variant, baseline)
    own = sum(side.variance / len(side.values) for side in sides)
    own = max(own, RESOLUTION**2 * sum(1 / len(side.values) for side in sides))
    shares = [side.noise / len(side.values) for side in sides]
    freedom = sum(shares) ** 2 / sum(
        share**2 / side.freedom for share, side in zip(shares, sides, strict=True)
    )
    lenders = [
        other
        for other in others
        if other.freedom > 0
        and all(1 / ALIKE <= other.noise / side.noise <= ALIKE for side in sides)
    ]
    lent = sum(other.freedom for other in lenders)
    if lent:
        # What the sides' noise would be if this point were as noisy for them as for the others.
        level = sum(other.freedom * other.variance / other.noise for other in lenders) / lent
        theirs = level * sum(shares)
        if own < theirs * float(special.fdtri(freedom, lent, 1 - POOL_LEVEL)):
            own = (freedom * own + lent * theirs) / (freedom + lent)
            freedom += lent
    return float(own**0.5), float(freedom)


def relative_noise(
    points: Sequence[Mapping[str, Sequence[float]]], baseline: str
) -> dict[str, float]:
    """Return how noisy each variant is over a study: its variance relative to the baseline's.

    The geometric mean, over all points and metrics that both have, of the ratio of the two
    variances. One point's ratio says next to nothing; a dozen show a disturbed session.

    Args:
        points: Per point and metric: variant -> its repeats.
        baseline: The variant whose noise counts as 1.
    """
    ratios: dict[str, list[float]] = {}
    for samples in points:
        logs = {name: _log_variance(values) for name, values in samples.items()}
        reference = logs.get(baseline)
        for name, own in logs.items():
            if own is not None and reference is not None:
                ratios.setdefault(name, []).append(own - reference)
    return {
        name: float(np.clip(np.exp(np.mean(found)), 1 / MOST_APART, MOST_APART))
        for name, found in ratios.items()
    }


def _log_variance(values: Sequence[float]) -> float | None:
    """Return the logarithm of the variance without the bias of few repeats; None: no spread."""
    own = Repeats(values)
    if own.freedom < 1 or own.variance <= RESOLUTION**2:
        return None
    half = own.freedom / 2
    return float(np.log(own.variance) - special.digamma(half) + np.log(half))


@dataclass(frozen=True)
class Reach:
    """What a comparison with this noise can show."""

    detectable: float
    """Smallest relative increase that nine of ten equal studies would call.

    A fall of equal size on the log scale is smaller in percent: 14 % up is 12 % down.
    """
    repeats_needed: int | None
    """Repeats a side that would show the difference asked for; None: beyond 200."""


def reach_of(difference: Difference, alpha: float, band: float, wanted: float) -> Reach | None:
    """Return which difference the repeats could have shown; None without an interval.

    Args:
        difference: The comparison.
        alpha: The level its p is held against.
        band: Relative difference inside which nothing is called.
        wanted: Relative difference, beyond the band, for which the repeats are counted.
    """
    if difference.error is None or difference.freedom is None:
        return None
    error, freedom = difference.error, difference.freedom
    runs = 2 / sum(1 / n for n in difference.runs)
    limits = _limits(error, freedom, alpha, band)
    far = float(np.log1p(band)) + error
    while _power(far, error, limits) < POWER:
        far *= 2
    found = float(
        optimize.brentq(lambda effect: _power(effect, error, limits) - POWER, 0.0, far, xtol=1e-4)
    )

    def shown(repeats: int) -> bool:
        longer = error * (runs / repeats) ** 0.5
        freer = freedom * (repeats - 1) / (runs - 1)
        found = _power(float(np.log1p(wanted)), longer, _limits(longer, freer, alpha, band))
        return found >= POWER

    few, many = MIN_RUNS_FOR_INTERVAL, MOST_REPEATS
    if not shown(many):
        return Reach(float(np.expm1(found)), None)
    while few < many:
        middle = (few + many) // 2
        few, many = (few, middle) if shown(middle) else (middle + 1, many)
    return Reach(float(np.expm1(found)), few)


def _limits(error: float, freedom: float, alpha: float, band: float) -> Floats:
    """Return the log ratios from which a difference is called: significant, and beyond the band.

    One for each quantile of what the spread of the repeats may turn out to be.
    """
    critical = special.stdtrit(freedom, 1 - alpha / 2)
    limits: Floats = np.maximum(critical * error * _spreads(freedom), np.log1p(band))
    return limits


@lru_cache(maxsize=1024)
def _spreads(freedom: float) -> Floats:
    """Return quantiles of an observed spread, in multiples of the true one."""
    spreads: Floats = np.sqrt(2 * special.gammaincinv(freedom / 2, _QUANTILES) / freedom)
    return spreads


def _power(effect: float, error: float, limits: Floats) -> float:
    """Return how probably a true log ratio is called."""
    return float(special.ndtr((effect - limits) / error).mean())
