"""What the time series say about the window of one load point.

A counter's growth over a window is its value at the window's end less that at its start, both
interpolated between the samples around them. Peaks and means use the samples inside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pandas as pd

from scripts.lib.analysis.statistics import Floats
from scripts.lib.analysis.summary import Value

NO_SERIES = "no /metrics time series"
NO_GPU = "no GPU time series"
NOT_REPORTED = "this engine or GPU does not report it"
NO_SAMPLE = "no sample inside the point's window"

POWER_REASONS = 0x4 | 0x80
THERMAL_REASONS = 0x20 | 0x40
THROTTLE_REASONS = POWER_REASONS | THERMAL_REASONS | 0x8
"""Bits of NVML's clocks-event reasons that lower the clock under load (nvml.h: SwPowerCap,
HwPowerBrakeSlowdown; Sw- and HwThermalSlowdown; HwSlowdown). Idle and user settings do not count.
"""

ENGINE_KEYS = (
    "kv_usage_peak",
    "kv_usage_mean",
    "running_peak",
    "waiting_peak",
    "waiting_mean",
    "preemptions",
    "queue_mean_ms",
    "queue_p95_ms",
    "prefix_hit_share",
    "speculative_accept_share",
)
GPU_KEYS = (
    "gpu_memory_peak_mib",
    "gpu_utilisation_mean",
    "power_mean_w",
    "energy_j",
    "sm_clock_mean_mhz",
    "throttled_share",
    "thermal_throttled_share",
    "power_throttled_share",
)
COVER_S, COVER_SHARE = 1.5, 0.05
"""A window may stick out of the samples by the smaller of these (s; share of the window)."""

Values = dict[str, Value]
Reduce = Callable[[Floats], float]


def engine_window(metrics: pd.DataFrame | None, start_s: float, end_s: float) -> Values:
    """Return peaks and rates of the engine's own metrics between two times.

    Args:
        metrics: As :func:`records.load_run` gives it; None if there is none.
        start_s: Start on the session's clock.
        end_s: End on the session's clock.

    Returns:
        ``kv_usage_peak`` and ``kv_usage_mean`` (0 to 1), ``running_peak``, ``waiting_peak``,
        ``waiting_mean``, ``preemptions``, ``queue_mean_ms``, ``queue_p95_ms`` (which the samples
        never hold: only others' results do), ``prefix_hit_share``, ``speculative_accept_share``;
        each with a value or the reason why there is none.
    """
    if metrics is None or metrics.empty:
        return dict.fromkeys(ENGINE_KEYS, Value(missing=NO_SERIES))
    times: Floats = metrics["t_s"].to_numpy(float)
    inside = _slice(times, start_s, end_s)

    def over(column: str, reduce: Reduce) -> Value:
        return _over(metrics[column].to_numpy(float)[inside], reduce)

    def growth(column: str) -> Value:
        return counter_growth(times, metrics[column].to_numpy(float), start_s, end_s)

    return {
        "kv_usage_peak": over("kv_cache_usage", np.nanmax),
        "kv_usage_mean": over("kv_cache_usage", np.nanmean),
        "running_peak": over("running", np.nanmax),
        "waiting_peak": over("waiting", np.nanmax),
        "waiting_mean": over("waiting", np.nanmean),
        "preemptions": growth("preemptions"),
        "queue_mean_ms": _share(
            growth("queue_time_sum_s"), growth("queue_time_count"), 1000, "no request left a queue"
        ),
        "queue_p95_ms": Value(missing="the samples of /metrics give the mean only"),
        "prefix_hit_share": _share(
            growth("prefix_cache_hits"),
            growth("prefix_cache_queries"),
            1,
            "the prefix cache was not asked",
        ),
        "speculative_accept_share": _share(
            growth("spec_decode_accepted"), growth("spec_decode_draft"), 1, "no token was drafted"
        ),
    }


def gpu_window(gpu: pd.DataFrame | None, start_s: float, end_s: float) -> Values:
    """Return memory, power, clocks, throttling and energy of all GPUs between two times.

    Returns:
        ``gpu_memory_peak_mib`` (of the fullest GPU), ``gpu_utilisation_mean`` (0 to 1),
        ``power_mean_w`` and ``energy_j`` (GPUs added up), ``sm_clock_mean_mhz``, and the share
        of samples with a lowered clock: ``throttled_share``, ``thermal_throttled_share``,
        ``power_throttled_share``.
    """
    if gpu is None or gpu.empty:
        return dict.fromkeys(GPU_KEYS, Value(missing=NO_GPU))
    inside = _slice(gpu["t_s"].to_numpy(float), start_s, end_s)

    def over(column: str, reduce: Reduce) -> Value:
        return _over(gpu[column].to_numpy(float)[inside], reduce)

    reasons = gpu["throttle_reasons"].iloc[inside]
    return {
        "gpu_memory_peak_mib": over("memory_mib", np.nanmax),
        "gpu_utilisation_mean": _scaled(over("utilization", np.nanmean), 0.01),
        **_added_up(gpu, start_s, end_s),
        "sm_clock_mean_mhz": over("sm_clock_mhz", np.nanmean),
        "throttled_share": _throttled(reasons, THROTTLE_REASONS),
        "thermal_throttled_share": _throttled(reasons, THERMAL_REASONS),
        "power_throttled_share": _throttled(reasons, POWER_REASONS),
    }


def _added_up(gpu: pd.DataFrame, start_s: float, end_s: float) -> Values:
    """Return mean power and energy of all GPUs together; unknown if one of them is."""
    power, energy = [], []
    device = gpu["gpu"].to_numpy()
    columns = [gpu[name].to_numpy(float) for name in ("t_s", "power_w", "energy_j")]
    for one in pd.unique(device):
        times, watts, joules = (values[device == one] for values in columns)
        power.append(_over(watts[_slice(times, start_s, end_s)], np.nanmean))
        energy.append(counter_growth(times, joules, start_s, end_s))
    return {"power_mean_w": _sum(power), "energy_j": _sum(energy)}


def _slice(times: Floats, start_s: float, end_s: float) -> slice:
    """Return where the samples of a window lie among ascending times."""
    first, last = np.searchsorted(times, start_s, "left"), np.searchsorted(times, end_s, "right")
    return slice(int(first), int(last))


def counter_growth(times: Floats, counter: Floats, start_s: float, end_s: float) -> Value:
    """Return how much a counter grew between two times, or why that cannot be said.

    A counter that fell (a restart, a wrap) makes the window's growth unknown, never a number.
    """
    known = ~np.isnan(counter)
    t, c = times[known], counter[known]
    if len(t) == 0:
        return Value(missing=NOT_REPORTED)
    slack = min(COVER_S, COVER_SHARE * (end_s - start_s))
    if t[0] > start_s + slack or t[-1] < end_s - slack:
        return Value(missing="the samples do not cover the point's window")
    around = c[max(0, np.searchsorted(t, start_s) - 1) : np.searchsorted(t, end_s) + 1]
    if (np.diff(around) < 0).any():
        return Value(missing="the counter was reset inside the point's window")
    before, after = np.interp([start_s, end_s], t, c)
    return Value(value=float(after - before))


def _over(values: Floats, reduce: Reduce) -> Value:
    if len(values) == 0:
        return Value(missing=NO_SAMPLE)
    if np.isnan(values).all():
        return Value(missing=NOT_REPORTED)
    return Value(value=float(reduce(values)))


def _share(part: Value, whole: Value, scale: float, when_none: str) -> Value:
    if part.value is None:
        return part
    if whole.value is None:
        return whole
    if whole.value <= 0:
        return Value(missing=when_none)
    return Value(value=scale * part.value / whole.value)


def _sum(values: list[Value]) -> Value:
    total = 0.0
    for value in values:
        if value.value is None:
            return value
        total += value.value
    return Value(value=total)


def _scaled(value: Value, factor: float) -> Value:
    return value if value.value is None else Value(value=value.value * factor)


def _throttled(reasons: pd.Series[str], mask: int) -> Value:
    if len(reasons) == 0:
        return Value(missing=NO_SAMPLE)
    counts = Counter(str(reason) for reason in reasons.dropna())
    if not counts:
        return Value(missing=NOT_REPORTED)
    try:
        lowered = sum(n for reason, n in counts.items() if int(reason, 0) & mask)
    except ValueError:
        return Value(missing="the throttle reasons are not a bit mask")
    return Value(value=lowered / counts.total())
