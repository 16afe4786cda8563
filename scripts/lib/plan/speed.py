"""How fast a variant decodes against the baseline: a hint for the verdict."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from scripts.lib.load.results import LoadResult, Point


def speed_ratio(own: Iterable[LoadResult], baseline: Iterable[LoadResult]) -> float | None:
    """Return mean TPOT over the baseline's at the lowest concurrency that both measured.

    Only valid points of the same workload count, averaged over repetitions and sessions; at low
    load a step is bound by reading the weights, so equal weights show as equal speed. None:
    nothing comparable was measured.
    """
    mine, theirs = _by_level(own), _by_level(baseline)
    common = sorted(mine.keys() & theirs.keys())
    if not common:
        return None
    return fmean(mine[common[0]]) / fmean(theirs[common[0]])


def _by_level(results: Iterable[LoadResult]) -> dict[tuple[int, str], list[float]]:
    found: dict[tuple[int, str], list[float]] = {}
    for result in results:
        for point in result.points:
            tpot = point.tpot_ms.mean
            if _counts(point) and point.concurrency is not None and tpot:
                found.setdefault((point.concurrency, result.workload or ""), []).append(tpot)
    return found


def _counts(point: Point) -> bool:
    return point.valid and not point.failed
