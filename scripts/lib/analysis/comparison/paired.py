"""Paired statistics for quality: the same items, answered by two variants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from scipy import optimize, special

PairedOutcome = Literal["non-inferior", "worse", "undecided"]

ALPHA = 0.05
CONFIDENCE = 0.90
"""Two-sided; its lower end is the one-sided 5 % bound that a non-inferiority test uses."""


@dataclass(frozen=True)
class Paired:
    """How the same items fared under a variant and under the baseline."""

    items: int
    lost: int
    """Baseline right, variant wrong."""
    gained: int
    """Baseline wrong, variant right."""

    @property
    def difference(self) -> float:
        """Share of items right under the variant less that under the baseline."""
        return (self.gained - self.lost) / self.items


def mcnemar_p(pair: Paired) -> float:
    """Return the two-sided exact McNemar p: do as many items flip one way as the other?

    The binomial test of the lost among the flipped (McNemar 1947; exact form). Without flips
    it is 1.
    """
    flipped = pair.lost + pair.gained
    return min(1.0, 2 * float(special.bdtr(min(pair.lost, pair.gained), flipped, 0.5)))


def difference_interval(pair: Paired, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return Tango's score interval of the paired difference of two shares.

    It keeps its coverage with few flips and with none, where the usual (Wald) interval has
    width zero (Tango, Statistics in Medicine 17, 1998).
    """
    z = float(special.ndtri((1 + confidence) / 2))

    def below(delta: float) -> float:
        return _score(pair, delta) - z

    def above(delta: float) -> float:
        return _score(pair, delta) + z

    return _root(below, -1.0, pair.difference), _root(above, pair.difference, 1.0)


def _score(pair: Paired, delta: float) -> float:
    """Return Tango's score statistic of the hypothesis that the difference is ``delta``."""
    n, gained, lost = pair.items, pair.gained, pair.lost
    numerator = gained - lost - n * delta
    a = 2 * n
    b = -gained - lost + (2 * n - gained + lost) * delta
    c = -lost * delta * (1 - delta)
    q = ((max(b * b - 4 * a * c, 0.0)) ** 0.5 - b) / (2 * a)
    variance = n * (2 * q + delta * (1 - delta))
    if variance <= 0:
        return 0.0 if numerator == 0 else float("inf") * (1 if numerator > 0 else -1)
    return float(numerator / variance**0.5)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    edge = 1e-9
    low, high = max(low, -1 + edge), min(high, 1 - edge)
    if function(low) * function(high) > 0:
        return round(low if low <= -1 + edge else high)
    return float(optimize.brentq(function, low, high, xtol=1e-9))


def judge_paired(pair: Paired, margin: float) -> tuple[PairedOutcome, float, tuple[float, float]]:
    """Return whether the loss is certainly below the margin, with p and the interval.

    Non-inferior: the one-sided 5 % bound of the difference stays above -margin. Worse: it does
    not, and significantly more items were lost than gained. Otherwise undecided: not
    significant is not the same as equivalent.
    """
    low, high = difference_interval(pair)
    p = mcnemar_p(pair)
    if low > -margin:
        return "non-inferior", p, (low, high)
    if p < ALPHA and pair.lost > pair.gained:
        return "worse", p, (low, high)
    return "undecided", p, (low, high)


def items_needed(margin: float) -> int:
    """Return how many items prove non-inferiority at ``margin`` if not a single one flips."""
    low, high = 1, 1_000_000
    while low < high:
        middle = (low + high) // 2
        if difference_interval(Paired(middle, 0, 0))[0] > -margin:
            high = middle
        else:
            low = middle + 1
    return low
