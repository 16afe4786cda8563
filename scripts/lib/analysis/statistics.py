"""Statistics of small samples: intervals, sample floors, the spread of repeats.

Everything positive (latencies, rates) is compared on the log scale, where a difference is a
ratio and noise is relative.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from scripts.lib.analysis.summary import Value
from scripts.lib.study.slo import PERCENTILE_FLOORS, QUANTILES

Floats = NDArray[np.float64]

CONFIDENCE = 0.95
MIN_RUNS_FOR_INTERVAL = 3
"""Repeats below which no interval over repeats is given: two points show no spread."""


def quantile_interval(
    ordered: Floats, quantile: float, confidence: float = CONFIDENCE
) -> tuple[float | None, float | None]:
    """Return the distribution-free confidence interval of a quantile.

    The interval runs between two order statistics whose ranks follow from the binomial
    distribution (Hahn and Meeker, Statistical Intervals, ch. 5).

    Args:
        ordered: The sample in ascending order.
        quantile: Between 0 and 1.
        confidence: Two-sided coverage, split evenly.

    Returns:
        Lower and upper end; None where the sample is too small to bound that side.
    """
    n = len(ordered)
    if n == 0:
        return None, None
    tail = (1 - confidence) / 2
    lower = _binomial_quantile(tail, n, quantile)
    upper = _binomial_quantile(1 - tail, n, quantile) + 1
    low = float(ordered[lower - 1]) if lower >= 1 else None
    high = float(ordered[upper - 1]) if upper <= n else None
    return low, high


def _binomial_quantile(share: float, n: int, p: float) -> int:
    """Return the least count whose cumulative probability reaches ``share``."""
    count = int(np.ceil(special.bdtrik(share, n, p)))
    below = max(count - 1, 0)  # the inverse is continuous and rounded: it may lie just above
    return below if special.bdtr(below, n, p) >= share else count


def percentile_value(samples: Floats, statistic: str) -> Value:
    """Return a percentile with its interval, or its interval alone below the sample floor.

    Args:
        samples: Unordered, in any unit.
        statistic: One of ``p50``, ``p90``, ``p95``, ``p99``. Interpolation between order
            statistics is linear, as in vLLM's benchmark.
    """
    n = len(samples)
    if n == 0:
        return Value(missing="no completed request has this value", n=0)
    ordered = np.sort(samples)
    low, high = quantile_interval(ordered, QUANTILES[statistic])
    floor = PERCENTILE_FLOORS[statistic]
    if n < floor:
        return Value(missing=too_few(n, statistic), low=low, high=high, n=n)
    value = float(np.quantile(ordered, QUANTILES[statistic]))
    return Value(value=value, low=low, high=high, n=n)


def too_few(n: int, statistic: str) -> str:
    """Say why a percentile is withheld, e.g. ``too few: n=30, p99 needs 662``."""
    return f"too few: n={n}, {statistic} needs {PERCENTILE_FLOORS[statistic]}"


def share_value(count: int, n: int, confidence: float = CONFIDENCE) -> Value:
    """Return ``count`` of ``n`` (at least 1) with Wilson's interval of a proportion."""
    share, z = count / n, float(special.ndtri((1 + confidence) / 2))
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    # Rounding must not put an end on the wrong side of the share itself.
    low, high = min(max(middle - half, 0.0), share), max(min(middle + half, 1.0), share)
    return Value(value=share, low=low, high=high, n=n)


def mean_interval(
    values: Sequence[float] | Floats, confidence: float = CONFIDENCE
) -> tuple[float | None, float | None]:
    """Return the t-interval of the mean over repeats; (None, None) below three of them."""
    n = len(values)
    if n < MIN_RUNS_FOR_INTERVAL:
        return None, None
    half = half_width(values, confidence)
    mean = float(np.mean(values))
    return mean - half, mean + half


def half_width(values: Sequence[float] | Floats, confidence: float = CONFIDENCE) -> float:
    """Return half the t-interval of the mean of at least two repeats."""
    n = len(values)
    error = float(np.std(values, ddof=1)) / float(n**0.5)
    return float(special.stdtrit(n - 1, (1 + confidence) / 2)) * error


def mean_value(values: Sequence[float | None], missing: str) -> Value:
    """Return the mean over repeats with its t-interval.

    A mean is only given when every repeat has the value: a mean over the repeats that
    happened to have one would be another quantity.

    Args:
        values: One per repeat.
        missing: The reason to give when there is none.
    """
    known = [value for value in values if value is not None]
    if not known:
        return Value(missing=missing, n=0)
    if len(known) < len(values):
        return Value(missing=f"{missing} in {len(values) - len(known)} of {len(values)} runs")
    low, high = mean_interval(known)
    return Value(value=float(np.mean(known)), low=low, high=high, n=len(known))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number by Holm's step-down method.

    The same as ``statsmodels.stats.multitest.multipletests(method="holm")``, which collects
    the interpreter's garbage at each call: a fifth of a second, for a handful of numbers.
    """
    p = np.asarray(p_values, float)
    order = np.argsort(p)
    stepped = np.maximum.accumulate((len(p) - np.arange(len(p))) * p[order])
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(stepped, 1)
    return [float(value) for value in adjusted]


def pooled_spread(groups: Sequence[Sequence[float] | Floats]) -> tuple[float, int] | None:
    """Return the relative standard deviation within groups of repeats, and its freedom.

    Args:
        groups: Each the repeats of one and the same measurement, positive.

    Returns:
        (spread, degrees of freedom), pooled over the groups; None if no group has two.
    """
    squares, freedom = 0.0, 0
    for group in groups:
        if len(group) >= 2:
            logs = np.log(np.asarray(group, float))
            squares += float(((logs - logs.mean()) ** 2).sum())
            freedom += len(group) - 1
    if freedom == 0:
        return None
    return float((squares / freedom) ** 0.5), freedom


def spread_value(groups: Sequence[Sequence[float]]) -> Value:
    """Return :func:`pooled_spread` with its chi-square interval; n counts the repeats."""
    pooled = pooled_spread(groups)
    if pooled is None:
        return Value(missing="no load point has two valid runs to compare")
    spread, freedom = pooled
    tail = (1 - CONFIDENCE) / 2
    return Value(
        value=spread,
        low=spread * float((freedom / special.chdtri(freedom, tail)) ** 0.5),
        high=spread * float((freedom / special.chdtri(freedom, 1 - tail)) ** 0.5),
        n=sum(len(group) for group in groups if len(group) >= 2),
    )
