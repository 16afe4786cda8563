"""How many probe items more would settle an undecided quality."""

from __future__ import annotations

import math

from scripts.lib.analysis.summary import QualityView
from scripts.lib.study.models import Quality

Z = 1.959964
"""Two-sided 95 %, as the interval of the difference."""


def items_needed(items: int, lost: int, gained: int, margin: float) -> int | None:
    """Return how many items in all would prove non-inferiority if the shares stayed as seen.

    Solves d - z * sqrt((q - d^2) / N) = -margin for N, where d = (gained - lost) / items is the
    difference and q = (lost + gained) / items the share of flips (variance of a paired
    difference). Without any flip: the N at which zero of N bounds the share of losses at 97.5 %
    by the margin, 1 - 0.025^(1/N) = margin. None: the loss seen exceeds the margin already, so
    more items of the same kind would not prove it.
    """
    if items <= 0 or margin <= 0:
        return None
    difference, flips = (gained - lost) / items, (lost + gained) / items
    if difference <= -margin:
        return None
    if flips == 0:
        return math.ceil(math.log(0.025) / math.log(1 - margin))
    variance = flips - difference**2
    needed = math.ceil(Z**2 * variance / (margin + difference) ** 2)
    return max(needed, math.ceil(math.log(0.025) / math.log(1 - margin)))


def more_items(view: QualityView, quality: Quality) -> str:
    """Return in words how many more items an undecided variant needs."""
    items = sum(axis.items for axis in view.axes)
    margin = quality.non_inferiority_margin
    needed = items_needed(items, view.lost, view.gained, margin)
    if needed is None:
        return (
            f"{view.lost} lost and {view.gained} gained of {items} items is a loss beyond the "
            f"margin of {100 * margin:g} %: more items will more likely show it worse"
        )
    more = max(1, needed - items)
    return f"about {more:,} more probe items are needed at a margin of {100 * margin:g} %"
