"""Does a load point keep the SLO? The one judge: of the boundary search and of the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scripts.lib.base.counts import total
from scripts.lib.judging.repeats import PER_REQUEST, Selection, sample_statistic, select
from scripts.lib.load.requests import Floats, Requests
from scripts.lib.load.results import Point
from scripts.lib.study.slo import Slo


@dataclass(frozen=True)
class Trial:
    """One run of a load point as the SLO sees it. None: not measured."""

    point: Point
    samples: Mapping[str, Floats] | None
    """``ttft``, ``tpot``, ``e2el`` of the completed requests in ms; None: no records."""
    kv_usage_peak: float | None
    """0 to 1."""
    preemptions: float | None
    oom: int | None
    """Out-of-memory errors."""


@dataclass(frozen=True)
class Judgement:
    """The verdict on one load point over all its runs.

    ``passed`` is None where something kept it from being judged. ``missed`` has a sentence for
    each limit that was missed, ``unjudged`` one for each whose value was not measured.
    """

    passed: bool | None
    missed: list[str] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Held:
    """One limit beside what was measured."""

    key: str
    limit: float
    value: float | None
    unit: str = ""
    at_least: bool = False

    @property
    def sentence(self) -> str | None:
        """What was missed, or None: the limit is kept, or its value not known."""
        if self.value is None:
            return None
        if not (self.value < self.limit if self.at_least else self.value > self.limit):
            return None
        word = "below" if self.at_least else "above"
        value, limit = f"{_number(self.value)}{self.unit}", f"{self.limit:g}{self.unit}"
        return f"{self.key}: {value} is {word} the limit {limit}"


def judge(slo: Slo, runs: Sequence[Trial]) -> Judgement:
    """Hold one load point against the limits, over all its runs.

    A limit is judged by the sample's own statistic even where a table withholds it for want of
    samples. Runs that the client spoiled are left out (:func:`repeats.select`); where too few
    sound ones remain, the point cannot pass, and it fails only by what its own failures prove
    (success rate, out of memory): latencies taken by a client that was itself too slow say
    nothing about the server. Where no limit is set, nothing passes and nothing fails.
    """
    if not slo.limits_anything:
        return Judgement(None)
    chosen = select(runs)
    held = [*_counts(slo, chosen), *(_sizes(slo, chosen) if chosen.enough else ())]
    missed = [sentence for one in held if (sentence := one.sentence)]
    unjudged = [
        f"{one.key}: not measured, so its limit was not judged" for one in held if one.value is None
    ]
    if missed:
        return Judgement(False, missed, unjudged)
    return Judgement(True if chosen.enough and not unjudged else None, missed, unjudged)


def _counts(slo: Slo, chosen: Selection[Trial]) -> Iterator[_Held]:
    """Yield the limits on numbers of requests, which no slow client disturbs."""
    if slo.success_rate is not None:
        rate = success_rate([run.point for run in chosen.counted])
        yield _Held("success_rate", slo.success_rate, rate, at_least=True)
    if slo.oom is not None:
        yield _Held("oom", slo.oom, total(run.oom for run in chosen.counted))


def _sizes(slo: Slo, chosen: Selection[Trial]) -> Iterator[_Held]:
    for limit in slo.latency_limits:
        value = sample_statistic(chosen.used, limit.metric, limit.statistic)
        yield _Held(limit.key, limit.limit_ms, value, " ms")
    if slo.kv_usage_max is not None:
        peak = _worst(chosen.used, lambda run: run.kv_usage_peak)
        yield _Held("kv_usage_max", slo.kv_usage_max, peak)
    if slo.preemptions_max is not None:
        most = _worst(chosen.used, lambda run: run.preemptions)
        yield _Held("preemptions_max", slo.preemptions_max, most)


def success_rate(points: Sequence[Point]) -> float | None:
    """Return completed / sent over several runs; None: not known, or none was sent."""
    sent = total(point.sent for point in points)
    completed = total(point.completed for point in points)
    return completed / sent if sent and completed is not None else None


def _worst(runs: Sequence[Trial], read: Callable[[Trial], float | None]) -> float | None:
    return max((value for run in runs if (value := read(run)) is not None), default=None)


def _number(value: float) -> str:
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4g}"


def count_oom(point: Point) -> int | None:
    """Return how many requests of a point ended with an out-of-memory error.

    None where nobody says so and requests failed for reasons, or in a number, not recorded.
    """
    told = [n for message, n in point.errors.items() if is_oom(message)]
    if told:
        return sum(told)
    explained = sum(point.errors.values())
    return 0 if point.failed is not None and explained >= point.failed else None


def is_oom(text: str) -> bool:
    """Return whether an error message, or a failure's kind, is one of memory."""
    lowered = text.lower()
    return lowered == "oom" or "out of memory" in lowered or "outofmemory" in lowered


def request_limits(slo: Slo) -> dict[str, float]:
    """Return what one request must keep: per metric the limit of the highest percentile.

    A p99 limit is one that nearly every request must keep; a mean or a lower percentile of the
    same metric says nothing about a single request. ITL is pooled over requests and left out.
    """
    limits: dict[str, float] = {}
    for limit in slo.latency_limits:  # ordered: the highest percentile comes last
        if limit.metric in PER_REQUEST and limit.statistic != "mean":
            limits[limit.metric] = limit.limit_ms
    return limits


@dataclass(frozen=True)
class Goodput:
    """How many requests were good, and over how many sent."""

    good: int
    sent: int
    good_output_tokens: float
    requests_per_s: float | None

    @property
    def share(self) -> float | None:
        """Good requests of all that were sent; errors count as bad."""
        return self.good / self.sent if self.sent else None


def goodput(requests: Requests, slo: Slo, duration_s: float | None) -> Goodput | None:
    """Count the requests that completed within every per-request limit.

    A request of one token has no TPOT, so no TPOT limit to miss.

    Args:
        requests: All requests that were sent, the failed ones too.
        slo: The limits, see :func:`request_limits`.
        duration_s: Wall time of the point; None: not known.

    Returns:
        None if the SLO has no per-request limit: not evaluated is not 0.
    """
    limits = request_limits(slo)
    if not limits:
        return None
    good = requests.ok.copy()
    for metric, limit_ms in limits.items():
        values: Floats = getattr(requests, f"{metric}_ms")
        good &= np.isnan(values) | (values <= limit_ms)
    count = int(good.sum())
    tokens = float(np.nansum(np.where(good, requests.output_tokens, 0)))
    return Goodput(count, len(requests), tokens, count / duration_s if duration_s else None)
