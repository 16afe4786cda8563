"""How many probe items more would settle an undecided quality."""

from __future__ import annotations

from scripts.lib.analysis.comparison.paired import Paired, difference_interval
from scripts.lib.analysis.summary import QualityView
from scripts.lib.study.models import Quality

MOST_ITEMS = 1_000_000


def is_compared(view: QualityView) -> bool:
    """Return whether the answers were held against the baseline's.

    They are not where both were asked in different ways, which is undecided whatever the number
    of items.
    """
    return any(axis.baseline_passed is not None for axis in view.axes)


def compared_items(view: QualityView) -> int:
    """Return how many items have a grade on both sides, those that were lost or gained among them.

    Summaries that do not tell it count the variant's own graded items.
    """
    return sum(axis.items for axis in view.axes) if view.paired is None else view.paired


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


def more_items(view: QualityView, quality: Quality) -> int | None:
    """Return how many more items an undecided variant needs; None: more would not prove it."""
    if not is_compared(view):
        return None
    items = compared_items(view)
    pair = Paired(items, view.lost, view.gained)
    needed = items_for_proof(pair, quality.non_inferiority_margin) if items else None
    return None if needed is None else max(1, needed - items)


def need_words(view: QualityView, quality: Quality) -> str:
    """Return in words how many more items an undecided variant needs."""
    margin = f"{100 * quality.non_inferiority_margin:g} points"
    more = more_items(view, quality)
    if more is None:
        return f"more items of the same kind would not prove it at a margin of {margin}"
    return (
        f"about {more:,} more probe items would prove it at a margin of {margin} if the share of "
        "flips stays as it is"
    )
