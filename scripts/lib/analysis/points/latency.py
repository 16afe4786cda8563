"""The latencies of one load point over its repeats."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scripts.lib.analysis.counts import total
from scripts.lib.analysis.points.digest import Digest
from scripts.lib.analysis.statistics import (
    MIN_RUNS_FOR_INTERVAL,
    Floats,
    half_width,
    mean_value,
    percentile_value,
    too_few,
)
from scripts.lib.analysis.summary import Value
from scripts.lib.load.results import Latency
from scripts.lib.study.models import Study
from scripts.lib.study.slo import LATENCY_METRICS, PERCENTILE_FLOORS, QUANTILES

NO_LATENCY = "the load result does not say"


def latency_metrics(repeats: Sequence[Digest]) -> dict[str, Value]:
    """Return mean and percentiles of every latency of one point, in ms."""
    metrics: dict[str, Value] = {}
    for metric in LATENCY_METRICS:
        metrics[f"{metric}_mean_ms"] = mean_value(
            [run_statistic(d, metric, "mean") for d in repeats], NO_LATENCY
        )
        for statistic in QUANTILES:
            metrics[f"{metric}_{statistic}_ms"] = _percentile(repeats, metric, statistic)
    return metrics


def _percentile(repeats: Sequence[Digest], metric: str, statistic: str) -> Value:
    pooled = pooled_samples(repeats, metric)
    if pooled is None:
        return _reported_percentile(repeats, metric, statistic)
    value = percentile_value(pooled, statistic)
    if value.value is None or len(repeats) < MIN_RUNS_FOR_INTERVAL:
        return value
    per_run = [d.samples[metric] for d in repeats if d.samples is not None]
    if min(len(samples) for samples in per_run) < PERCENTILE_FLOORS[statistic]:
        return value
    half = half_width([float(np.quantile(s, QUANTILES[statistic])) for s in per_run])
    return value.model_copy(update={"low": value.value - half, "high": value.value + half})


def pooled_samples(repeats: Sequence[Digest], metric: str) -> Floats | None:
    """Return one latency of all requests of all repeats in ms; None without records."""
    samples = [d.samples.get(metric) for d in repeats if d.samples is not None]
    if len(samples) < len(repeats):
        return None
    known = [s for s in samples if s is not None]
    return np.concatenate(known) if len(known) == len(repeats) else None


def _reported_percentile(repeats: Sequence[Digest], metric: str, statistic: str) -> Value:
    """Return a percentile as the load results give it, where no requests lie behind it.

    ITL is pooled over gaps between chunks, which are not kept one by one; results of other
    tools may hold no requests at all. A count below the floor withholds our own number but not
    one that somebody else published, which is passed on with a warning.
    """
    told = [getattr(_latency(d, metric), statistic) for d in repeats]
    count = total(_latency(d, metric).n for d in repeats)
    value = mean_value(told, NO_LATENCY)
    ours = all(d.samples is not None for d in repeats)
    few = count is not None and count < PERCENTILE_FLOORS[statistic]
    if count is not None and value.value is not None and ours and few:
        return Value(missing=too_few(count, statistic), n=count)
    return value.model_copy(update={"n": count})


def _latency(digest: Digest, metric: str) -> Latency:
    latency: Latency = getattr(digest.point, f"{metric}_ms")
    return latency


def run_statistic(digest: Digest, metric: str, statistic: str) -> float | None:
    """Return mean, p50, … of one latency in one run in ms, from its requests where kept."""
    samples = None if digest.samples is None else digest.samples.get(metric)
    if samples is None:
        told: float | None = getattr(_latency(digest, metric), statistic)
        return told
    if len(samples) == 0:
        return None
    if statistic == "mean":
        return float(samples.mean())
    return float(np.quantile(samples, QUANTILES[statistic]))


def sample_statistic(repeats: Sequence[Digest], key: str) -> float | None:
    """Return a statistic such as ``ttft_p95_ms`` of the pooled requests, floor or no floor."""
    metric, statistic, _ = key.split("_")
    if statistic == "mean":
        return mean_value([run_statistic(d, metric, statistic) for d in repeats], "").value
    pooled = pooled_samples(repeats, metric)
    if pooled is None:
        return mean_value([run_statistic(d, metric, statistic) for d in repeats], "").value
    return float(np.quantile(pooled, QUANTILES[statistic])) if len(pooled) else None


def sample_warnings(study: Study, repeats: Sequence[Digest]) -> list[str]:
    """Say which SLO percentiles rest on fewer samples than their floor."""
    warnings = []
    for limit in study.slo.latency_limits:
        floor = PERCENTILE_FLOORS.get(limit.statistic, 0)
        n = total(_sample_count(d, limit.metric) for d in repeats)
        if n and n < floor:
            warnings.append(
                f"{limit.key} is judged from {n} samples; {limit.statistic} needs {floor} "
                "to be trusted"
            )
    return warnings


def _sample_count(digest: Digest, metric: str) -> int | None:
    samples = None if digest.samples is None else digest.samples.get(metric)
    return _latency(digest, metric).n if samples is None else len(samples)
