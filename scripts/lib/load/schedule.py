"""Which points a session runs, in which order, with how many requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scripts.lib.load.arrivals import arrival_offsets, ramp_offsets
from scripts.lib.load.points import Level
from scripts.lib.load.samples import Sample
from scripts.lib.study.models import Workload


def planned_levels(workload: Workload) -> list[Level]:
    """Return the levels of one repetition: closed loop, open loop, then ramp or trace."""
    levels = [Level(0, 1, concurrency=c) for c in workload.concurrency]
    cap = workload.max_concurrency
    levels += [Level(0, 1, rate=rate, max_concurrency=cap) for rate in workload.rate]
    if workload.ramp or workload.dataset.trace:
        levels.append(Level(0, 1, max_concurrency=cap))
    return [replace(level, workload_point=index) for index, level in enumerate(levels)]


def rotated(levels: Sequence[Level], repetition: int) -> list[Level]:
    """Return the levels of a repetition (1-based), begun one place later each time.

    So no level always comes first (cold) or last (warm, or throttled).
    """
    shift = (repetition - 1) % len(levels) if levels else 0
    order = [*levels[shift:], *levels[:shift]]
    return [replace(level, repetition=repetition) for level in order]


def requests_of(workload: Workload, level: Level) -> int | None:
    """Return how many requests a level sends; None: as many as the trace has."""
    if level.origin == "slo_search":
        return _searched_requests(workload, level.concurrency or 1)
    count = workload.requests_at(level.workload_point)
    if count is None and workload.ramp is not None:
        return workload.ramp.requests
    return count


def _searched_requests(workload: Workload, concurrency: int) -> int:
    """Scale like the planned levels: by the ratio of the nearest one."""
    nearest = min(
        range(len(workload.concurrency)),
        key=lambda index: abs(workload.concurrency[index] - concurrency),
    )
    planned = workload.requests_at(nearest)
    assert planned is not None
    return max(concurrency, round(planned * concurrency / workload.concurrency[nearest]))


def most_requests(workload: Workload) -> int | None:
    """Return the largest number of requests of any planned point; None for a trace."""
    counts = [requests_of(workload, level) for level in planned_levels(workload)]
    return None if None in counts or not counts else max(c for c in counts if c is not None)


def offsets_of(workload: Workload, level: Level, samples: Sequence[Sample]) -> list[float] | None:
    """Return the intended send times of an open-loop point; None for a closed loop."""
    if level.concurrency is not None:
        return None
    seed = workload.seed + 1000 * level.repetition + level.workload_point
    if level.rate is not None:
        return list(arrival_offsets(workload.arrival, level.rate, len(samples), seed))
    if workload.ramp is not None:
        return list(ramp_offsets(workload.ramp, workload.arrival, seed))
    return [sample.at_s or 0.0 for sample in samples]


def expected_streams(workload: Workload) -> int:
    """Return how many streams the heaviest point may hold open, to size the client."""
    streams = list(workload.concurrency)
    cap = workload.max_concurrency
    rates = [*workload.rate, *([workload.ramp.end_rate] if workload.ramp else [])]
    streams += [min(cap or 10**9, round(rate * 10)) for rate in rates]  # 10 s an answer
    if workload.dataset.trace:
        streams.append(cap or 64)
    return max(streams, default=1)


def default_warmup(workload: Workload) -> int:
    """Return 2 x the highest concurrency; for an open loop 2 s of its highest rate."""
    if workload.warmup_requests is not None:
        return workload.warmup_requests
    if workload.concurrency:
        return 2 * max(workload.concurrency)
    rates = [*workload.rate, *([workload.ramp.end_rate] if workload.ramp else [])]
    return max(2, round(2 * max(rates, default=1.0)))


def warmup_concurrency(workload: Workload) -> int:
    """Return how many warm-up requests run at a time: the heaviest planned load, at most 64."""
    if workload.concurrency:
        return max(workload.concurrency)
    return max(1, min(workload.max_concurrency or 64, 64, default_warmup(workload)))
