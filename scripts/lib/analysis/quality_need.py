"""How many probe items more would settle an undecided quality."""

from __future__ import annotations

from scripts.lib.analysis.paired import Paired, difference_interval
from scripts.lib.analysis.summary import QualityView
from scripts.lib.study.models import Quality

MOST_ITEMS = 1_000_000


def items_for_proof(pair: Paired, margin: float) -> int | None:
    """Return how many items in all would prove non-inferiority if the shares stayed as seen.

    The smallest N at which the lower end of Tango's interval, with the flips grown in
    proportion, stays above -margin. None: the loss seen is beyond the margin already, or a
    million items would not do.
    """
    if pair.items <= 0 or margin <= 0 or pair.difference <= -margin:
        return None
    low, high = pair.items, MOST_ITEMS
    if not _proven(pair, high, margin):
        return None
    while low < high:
        middle = (low + high) // 2
        if _proven(pair, middle, margin):
            high = middle
        else:
            low = middle + 1
    return low


def _proven(pair: Paired, items: int, margin: float) -> bool:
    growth = items / pair.items
    grown = Paired(items, round(pair.lost * growth), round(pair.gained * growth))
    return difference_interval(grown)[0] > -margin


def more_items(view: QualityView, quality: Quality) -> str:
    """Return in words how many more items an undecided variant needs."""
    items = sum(axis.items for axis in view.axes)
    margin = quality.non_inferiority_margin
    needed = items_for_proof(Paired(items, view.lost, view.gained), margin) if items else None
    if needed is None:
        return (
            f"with {view.lost} lost and {view.gained} gained of {items} items, more items of the "
            f"same kind would not prove it at a margin of {100 * margin:g} points"
        )
    more = max(1, needed - items)
    return (
        f"about {more:,} more probe items ({needed:,} in all) would prove it at a margin of "
        f"{100 * margin:g} points if the share of flips stays as it is"
    )
