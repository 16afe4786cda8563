"""The SLO part of a study file."""

from __future__ import annotations

from itertools import product
from typing import Annotated, Literal, get_args

from pydantic import Field

from scripts.lib.base.schema import Strict

Statistic = Literal["mean", "p50", "p90", "p95", "p99"]
LatencyMetric = Literal["ttft", "tpot", "itl", "e2el"]

STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
LATENCY_METRICS: tuple[LatencyMetric, ...] = get_args(LatencyMetric)

QUANTILES = {"p50": 0.50, "p90": 0.90, "p95": 0.95, "p99": 0.99}

PERCENTILE_FLOORS = {"p50": 1, "p90": 64, "p95": 130, "p99": 662}
"""Requests below which a percentile is withheld: 99 % confidence, the early-stopping bound of
MLPerf's endpoints."""


class LatencyLimit(Strict):
    """One latency limit of an SLO."""

    metric: LatencyMetric
    statistic: Statistic
    limit_ms: float

    @property
    def key(self) -> str:
        """The key in the study file, e.g. ``ttft_p95_ms``."""
        return f"{self.metric}_{self.statistic}_ms"


Limit = Annotated[float, Field(gt=0)]


class Slo(Strict):
    """The limits a load point must keep. Latencies in ms at the named statistic."""

    success_rate: float | None = Field(
        default=1.0, ge=0, le=1, description="Completed of all sent, 0 to 1."
    )
    ttft_mean_ms: Limit | None = None
    ttft_p50_ms: Limit | None = None
    ttft_p90_ms: Limit | None = None
    ttft_p95_ms: Limit | None = None
    ttft_p99_ms: Limit | None = None
    tpot_mean_ms: Limit | None = None
    tpot_p50_ms: Limit | None = None
    tpot_p90_ms: Limit | None = None
    tpot_p95_ms: Limit | None = None
    tpot_p99_ms: Limit | None = None
    itl_mean_ms: Limit | None = None
    itl_p50_ms: Limit | None = None
    itl_p90_ms: Limit | None = None
    itl_p95_ms: Limit | None = None
    itl_p99_ms: Limit | None = None
    e2el_mean_ms: Limit | None = None
    e2el_p50_ms: Limit | None = None
    e2el_p90_ms: Limit | None = None
    e2el_p95_ms: Limit | None = None
    e2el_p99_ms: Limit | None = None
    kv_usage_max: float | None = Field(
        default=None, gt=0, le=1, description="Highest use of the KV cache, 0 to 1."
    )
    preemptions_max: int | None = Field(
        default=None, ge=0, description="Requests that the engine put back for want of KV cache."
    )
    oom: int | None = Field(default=0, ge=0, description="Out-of-memory errors.")

    @property
    def limits_anything(self) -> bool:
        """Whether any limit is set; without one no point passes or fails."""
        others = (self.success_rate, self.kv_usage_max, self.preemptions_max, self.oom)
        return bool(self.latency_limits) or any(limit is not None for limit in others)

    @property
    def latency_limits(self) -> list[LatencyLimit]:
        """The latency limits that are set, in the order of the keys above."""
        limits = []
        for metric, statistic in product(LATENCY_METRICS, STATISTICS):
            value = getattr(self, f"{metric}_{statistic}_ms")
            if value is not None:
                limits.append(LatencyLimit(metric=metric, statistic=statistic, limit_ms=value))
        return limits


class SloSearch(Strict):
    """Extra points between the last pass and the first fail."""

    resolution: int = Field(default=4, gt=0, description="Stop when the gap is this small.")
    max_points: int = Field(default=6, gt=0)
