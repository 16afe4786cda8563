"""Where between the last load that keeps the SLO and the first that does not is the boundary?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from scripts.lib.judging.repeats import latencies
from scripts.lib.judging.slo import Trial, count_oom, judge
from scripts.lib.load.requests import Requests
from scripts.lib.load.results import Point
from scripts.lib.study.models import Slo, SloSearch

KvUsagePeak = Callable[[float, float], float | None]
"""Start and end on the session's clock -> highest KV-cache usage sampled in between, 0 to 1."""


class BoundarySearch:
    """Remembers what each concurrency showed, and says which one to try next.

    A concurrency is judged by the judge of the tables over all its runs of this session, so that
    points are added where the report sees the boundary. With several sessions the report judges
    over the runs of all of them, and may see it elsewhere.
    """

    def __init__(self, slo: Slo, search: SloSearch) -> None:
        self._slo = slo
        self._search = search
        self._runs: dict[int, list[Trial]] = {}
        self.tried = 0

    def remember(self, concurrency: int, point: Point, requests: Requests) -> None:
        """Note one run of a concurrency, planned or tried."""
        trial = Trial(
            point=point,
            samples=latencies(requests),
            kv_usage_peak=None,  # asked when judging, see verdicts
            preemptions=point.server.preemptions if point.server else None,
            oom=count_oom(point),
        )
        self._runs.setdefault(concurrency, []).append(trial)

    def verdicts(self, kv_usage_peak: KvUsagePeak) -> dict[int, bool | None]:
        """Return for each concurrency whether it keeps the SLO; None: it could not be judged."""
        return {
            concurrency: judge(self._slo, [_with_peak(run, kv_usage_peak) for run in runs]).passed
            for concurrency, runs in self._runs.items()
        }

    def next_level(self, kv_usage_peak: KvUsagePeak) -> int | None:
        """Return the next concurrency, which counts as tried; None: the search has ended."""
        level = next_level(self.verdicts(kv_usage_peak), self._search, self.tried)
        self.tried += level is not None
        return level


def _with_peak(run: Trial, kv_usage_peak: KvUsagePeak) -> Trial:
    return replace(run, kv_usage_peak=kv_usage_peak(run.point.start_s, run.point.end_s))


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
