"""Where between the last load that keeps the SLO and the first that does not is the boundary?"""

from __future__ import annotations

from collections.abc import Mapping

from scripts.lib.study.models import SloSearch


def next_level(passed: Mapping[int, bool | None], search: SloSearch, tried: int) -> int | None:
    """Return the next concurrency to try, or None when the boundary is known well enough.

    Halves the gap between the highest level below every failure that passed and the lowest
    that failed. A level without a verdict is not tried again, but its neighbour is.

    Args:
        passed: Concurrency -> kept the SLO; None: could not be judged.
        search: The resolution and the largest number of extra points.
        tried: Extra points so far.
    """
    failed = [level for level, ok in passed.items() if ok is False]
    if not failed or tried >= search.max_points:
        return None
    first_fail = min(failed)
    below = [level for level, ok in passed.items() if ok and level < first_fail]
    last_pass = max(below, default=0)
    if first_fail - last_pass <= search.resolution:
        return None
    middle = _rounded((last_pass + first_fail) // 2, search.resolution, last_pass, first_fail)
    untried = [level for level in range(last_pass + 1, first_fail) if level not in passed]
    return min(untried, key=lambda level: abs(level - middle), default=None)


def _rounded(level: int, step: int, low: int, high: int) -> int:
    """Prefer a multiple of the resolution strictly inside the gap."""
    nearest = round(level / step) * step
    return nearest if low < nearest < high else level


def all_agree(verdicts: list[bool | None]) -> bool | None:
    """Join repetitions: one failure fails the level, one unknown leaves it open."""
    if False in verdicts:
        return False
    return None if None in verdicts or not verdicts else True
