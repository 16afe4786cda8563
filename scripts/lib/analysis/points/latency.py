"""The latencies of one load point over its repeats."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scripts.lib.analysis.points.digest import Digest
from scripts.lib.analysis.statistics import (
    MIN_RUNS_FOR_INTERVAL,
    half_width,
    mean_value,
    percentile_value,
    too_few,
)
from scripts.lib.analysis.summary import Value
from scripts.lib.base.counts import total
from scripts.lib.judging.repeats import pooled_samples, reported, run_statistic
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


def _reported_percentile(repeats: Sequence[Digest], metric: str, statistic: str) -> Value:
    """Return a percentile as the load results give it, where no requests lie behind it.

    ITL is pooled over gaps between chunks, which are not kept one by one; results of other
    tools may hold no requests at all. A count below the floor withholds our own number but not
    one that somebody else published, which is passed on with a warning.
    """
    told = [getattr(reported(d, metric), statistic) for d in repeats]
    count = total(reported(d, metric).n for d in repeats)
    value = mean_value(told, NO_LATENCY)
    ours = all(d.samples is not None for d in repeats)
    few = count is not None and count < PERCENTILE_FLOORS[statistic]
    if count is not None and value.value is not None and ours and few:
        return Value(missing=too_few(count, statistic), n=count)
    return value.model_copy(update={"n": count})


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
    return reported(digest, metric).n if samples is None else len(samples)
