"""Time series of one session, thinned for small figures."""

from __future__ import annotations

import numpy as np
import pandas as pd

from scripts.lib.analysis.points.records import Run
from scripts.lib.analysis.statistics import Floats
from scripts.lib.analysis.summary import Timeline

MAX_SAMPLES = 120
GAUGES = {
    "running": "running",
    "waiting": "waiting",
    "kv_cache_usage": "kv_cache_usage",
}
COUNTERS = {
    "preemptions": "preemptions_per_s",
    "prompt_tokens": "prompt_tok_s",
    "generation_tokens": "generation_tok_s",
}
GPU_GAUGES = {
    "memory_mib": "gpu_memory_mib",
    "utilization": "gpu_utilisation_percent",
    "power_w": "gpu_power_w",
    "sm_clock_mhz": "gpu_sm_clock_mhz",
}
PEAKS = ("waiting", "kv_cache_usage", "running", "preemptions_per_s", "gpu_memory_mib")
"""Thinning keeps the highest sample of these: a queue of one second must stay visible."""


def build_timeline(run: Run) -> Timeline | None:
    """Return the session's time series on at most ``MAX_SAMPLES`` common times.

    Gauges of several GPUs are averaged (power is added up). Counters become rates per second;
    a reset is a gap. None where nothing was sampled or no point was measured.
    """
    if not run.load.points or (run.metrics is None and run.gpu is None):
        return None
    if run.load.origin_unix_s is None:
        return None  # imported: the points were laid out one after the other, nobody timed them
    edges = _edges(run)
    series: dict[str, list[float | None]] = {}
    if run.metrics is not None and len(run.metrics):
        series |= _engine_series(run.metrics, edges)
    if run.gpu is not None and len(run.gpu):
        series |= _gpu_series(run.gpu, edges)
    series = {name: values for name, values in series.items() if any(v is not None for v in values)}
    if not series:
        return None
    return Timeline(
        variant=run.variant,
        workload=run.workload,
        session=run.session,
        t_s=[round(float(t), 2) for t in (edges[:-1] + edges[1:]) / 2],
        series=series,
        points=[
            {
                "start_s": point.start_s,
                "end_s": point.end_s,
                "level": float(point.rate or point.concurrency or 0),
            }
            for point in run.load.points
        ],
    )


def _edges(run: Run) -> Floats:
    """Return the borders of the bins: the measured span, or fewer bins if samples are few."""
    start = min(point.start_s for point in run.load.points)
    end = max(point.end_s for point in run.load.points)
    table = run.metrics if run.metrics is not None and len(run.metrics) else run.gpu
    assert table is not None
    times = table["t_s"].drop_duplicates()
    inside = int(times.between(start, end).sum())
    return np.linspace(start, max(end, start + 1e-3), max(1, min(MAX_SAMPLES, inside)) + 1)


def _engine_series(metrics: pd.DataFrame, edges: Floats) -> dict[str, list[float | None]]:
    times = metrics["t_s"].to_numpy(float)
    series = {
        name: _binned(times, metrics[column].to_numpy(float), edges, name in PEAKS)
        for column, name in GAUGES.items()
    }
    seconds = np.diff(times)
    for column, name in COUNTERS.items():
        growth = np.diff(metrics[column].to_numpy(float))
        steady = (growth >= 0) & (seconds > 0)
        rate = np.full(len(growth), np.nan)
        np.divide(growth, seconds, out=rate, where=steady)
        series[name] = _binned(times[1:], rate, edges, name in PEAKS)
    return series


def _gpu_series(gpu: pd.DataFrame, edges: Floats) -> dict[str, list[float | None]]:
    series = {}
    for column, name in GPU_GAUGES.items():
        grouped = gpu.groupby("t_s")[column]
        table = grouped.sum(min_count=1) if column == "power_w" else grouped.mean()
        series[name] = _binned(
            table.index.to_numpy(float), table.to_numpy(float), edges, name in PEAKS
        )
    return series


def _binned(times: Floats, values: Floats, edges: Floats, peak: bool) -> list[float | None]:
    """Return the mean, or the peak, of the samples in each bin; None for an empty bin."""
    known = ~np.isnan(values) & (times >= edges[0]) & (times <= edges[-1])
    place = np.clip(np.searchsorted(edges, times[known], side="right") - 1, 0, len(edges) - 2)
    bins, kept = len(edges) - 1, values[known]
    counts = np.bincount(place, minlength=bins)
    if peak:
        reduced = np.full(bins, -np.inf)
        np.maximum.at(reduced, place, kept)
    else:
        reduced = np.bincount(place, kept, minlength=bins) / np.maximum(counts, 1)
    return [round(float(v), 4) if n else None for v, n in zip(reduced, counts, strict=True)]
