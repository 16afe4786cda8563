"""Does a load point keep the SLO? From per-request records, not from the engine's flags."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from scripts.lib.load.requests import Floats, Requests
from scripts.lib.load.results import Latency, Point
from scripts.lib.study.slo import PERCENTILE_FLOORS, QUANTILES, LatencyLimit, Slo

PER_REQUEST = ("ttft", "tpot", "e2el")


@dataclass(frozen=True)
class Judgement:
    """The verdict on one point.

    ``missed``: each limit that was missed, as a sentence. ``unproven``: limits kept (or missed)
    by too few requests for that percentile, as sentences; the verdict stands on what was seen.
    ``unknown``: limits whose value was not measured. ``passed`` is None for an invalid point.
    """

    passed: bool | None
    missed: list[str] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def judge(
    point: Point, requests: Requests | None, slo: Slo, *, kv_usage_peak: float | None = None
) -> Judgement:
    """Hold one point against the limits.

    Args:
        point: The point; its aggregates are used where ``requests`` is None, and for ITL.
        requests: Its per-request records.
        slo: The limits. ``oom`` concerns the server, not a point, and is left to the caller.
        kv_usage_peak: Highest KV-cache usage during the point, 0 to 1, if sampled.

    Returns:
        The verdict. A point with failures is judged by ``success_rate`` first: failed requests
        have no latency, so its percentiles flatter it. An invalid point only keeps its verdict
        when all that is wrong with it are failed requests.
    """
    missed: list[str] = []
    unproven: list[str] = []
    unknown: list[str] = []
    if slo.success_rate is not None:
        _judge_success(point, slo.success_rate, missed, unknown)
    for limit in slo.latency_limits:
        _judge_latency(limit, point, requests, missed, unproven, unknown)
    _judge_count("kv_usage_max", kv_usage_peak, slo.kv_usage_max, missed, unknown)
    preemptions = point.server.preemptions if point.server else None
    _judge_count("preemptions_max", preemptions, slo.preemptions_max, missed, unknown)
    return Judgement(not missed if point.judgeable else None, missed, unproven, unknown)


def _judge_success(point: Point, limit: float, missed: list[str], unknown: list[str]) -> None:
    if point.sent is None or point.completed is None:
        unknown.append("success_rate: how many requests were sent and completed is not known")
    elif point.sent and point.completed / point.sent < limit:
        missed.append(
            f"success_rate: {point.completed} of {point.sent} requests completed "
            f"({point.completed / point.sent:.1%}), limit {limit:.1%}"
        )


def _judge_latency(
    limit: LatencyLimit,
    point: Point,
    requests: Requests | None,
    missed: list[str],
    unproven: list[str],
    unknown: list[str],
) -> None:
    value, n = _observed(limit, point, requests)
    if value is None:
        unknown.append(f"{limit.key}: no completed request has this value")
        return
    if value > limit.limit_ms:
        missed.append(f"{limit.key}: {value:.5g} ms, limit {limit.limit_ms:g} ms")
    floor = PERCENTILE_FLOORS.get(limit.statistic, 1)
    if n is not None and n < floor:
        unproven.append(f"{limit.key}: too few: n={n}, {limit.statistic} needs {floor}")


def _observed(
    limit: LatencyLimit, point: Point, requests: Requests | None
) -> tuple[float | None, int | None]:
    aggregate: Latency = getattr(point, f"{limit.metric}_ms")
    if requests is None or limit.metric == "itl":
        return getattr(aggregate, limit.statistic), aggregate.n
    values = requests.latency(limit.metric)
    return statistic(values, limit.statistic), len(values)


def _judge_count(
    key: str,
    value: float | None,
    limit: float | None,
    missed: list[str],
    unknown: list[str],
) -> None:
    if limit is None:
        return
    if value is None:
        unknown.append(f"{key}: not measured")
    elif value > limit:
        missed.append(f"{key}: {value:.3g}, limit {limit:g}")


def statistic(values: Floats, name: str) -> float | None:
    """Return ``mean`` or a percentile (linear interpolation); None without values."""
    if not len(values):
        return None
    return float(np.mean(values) if name == "mean" else np.quantile(values, QUANTILES[name]))


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
