"""Sums and shares of counts of which some may not be known."""

from __future__ import annotations

from collections.abc import Iterable


def total(counts: Iterable[int | None]) -> int | None:
    """Add counts up; None as soon as one of them is not known: a part is not the whole."""
    added = 0
    for count in counts:
        if count is None:
            return None
        added += count
    return added


def share(part: float | None, whole: float | None) -> float | None:
    """Return part / whole; None where one of them is not known or there is no whole."""
    return part / whole if part is not None and whole else None
