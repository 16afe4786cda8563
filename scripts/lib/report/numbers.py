"""Numbers as people read them: grouped, rounded, with units; a reason where there is none."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from scripts.lib.analysis.summary import Value
from scripts.lib.study.slo import LATENCY_METRICS, STATISTICS

MINUS = "\N{MINUS SIGN}"
TIMES = "\N{MULTIPLICATION SIGN}"
EN_DASH = "\N{EN DASH}"

SHARE_SCALE = 100.0
"""By which a share of one is shown as a percentage."""

Better = Literal["higher", "lower", "neither"]


@dataclass(frozen=True)
class Metric:
    """How a metric is called, in which unit it stands, and which direction is good."""

    title: str
    unit: str
    better: Better = "neither"
    scale: float = 1.0


METRICS = {
    "output_throughput_tok_s": Metric("Output throughput", "tok/s", "higher"),
    "total_throughput_tok_s": Metric("Total throughput", "tok/s", "higher"),
    "request_throughput": Metric("Request throughput", "req/s", "higher"),
    "achieved_rate": Metric("Achieved rate", "req/s", "higher"),
    "goodput_req_s": Metric("Goodput", "req/s", "higher"),
    "goodput_share": Metric("Requests within the SLO", "%", "higher", 100),
    "good_output_tok_s": Metric("Output throughput of good requests", "tok/s", "higher"),
    "throughput_within_slo_tok_s": Metric("Throughput if the SLO is kept", "tok/s", "higher"),
    "success_rate": Metric("Requests completed", "%", "higher", 100),
    **{
        f"{latency}_{statistic}_ms": Metric(f"{latency.upper()} {statistic}", "ms", "lower")
        for latency in LATENCY_METRICS
        for statistic in STATISTICS
    },
    "queue_mean_ms": Metric("Queue time, mean (server)", "ms", "lower"),
    "running_peak": Metric("Running requests, peak", ""),
    "waiting_peak": Metric("Waiting requests, peak", ""),
    "waiting_mean": Metric("Waiting requests, mean", ""),
    "kv_usage_peak": Metric("KV cache usage, peak", "%", "lower", 100),
    "kv_usage_mean": Metric("KV cache usage, mean", "%", "lower", 100),
    "preemptions": Metric("Preemptions", "", "lower"),
    "oom": Metric("Out-of-memory errors", "", "lower"),
    "prefix_hit_share": Metric("Prefix cache hits", "%", "higher", 100),
    "speculative_accept_share": Metric("Accepted draft tokens", "%", "higher", 100),
    "usd_per_million_output_tokens": Metric("Cost per million output tokens", "USD", "lower"),
    "usd_per_million_good_tokens": Metric(
        "Cost per million tokens in good requests", "USD", "lower"
    ),
    "joules_per_output_token": Metric("GPU energy per output token", "J", "lower"),
    "joules_per_good_request": Metric("GPU energy per good request", "J", "lower"),
    "energy_j": Metric("GPU energy", "J", "lower"),
    "power_mean_w": Metric("GPU power, mean", "W", "lower"),
    "gpu_memory_peak_mib": Metric("GPU memory, peak (NVML)", "MiB", "lower"),
    "gpu_utilisation_mean": Metric("GPU utilisation, mean", "%", "neither", 100),
    "sm_clock_mean_mhz": Metric("SM clock, mean", "MHz", "higher"),
    "throttled_share": Metric("Time throttled", "%", "lower", 100),
    "power_throttled_share": Metric("Time throttled by power", "%", "lower", 100),
    "thermal_throttled_share": Metric("Time throttled by heat", "%", "lower", 100),
    "client_cpu_share": Metric("CPU of the busiest client process", "%", "lower", 100),
    "send_lag_p99_ms": Metric("Client's send lag p99", "ms", "lower"),
    "input_tokens_mean": Metric("Prompt tokens, mean", ""),
    "output_tokens_mean": Metric("Output tokens, mean", ""),
    "duration_s": Metric("Duration", "s"),
}
"""The known metrics, in the order in which a report lists them."""

_UNITS = (
    ("_tok_s", "tok/s", 1.0),
    ("_req_s", "req/s", 1.0),
    ("_share", "%", 100.0),
    ("_mib", "MiB", 1.0),
    ("_gib", "GiB", 1.0),
    ("_ms", "ms", 1.0),
    ("_s", "s", 1.0),
    ("_w", "W", 1.0),
)


def metric_of(key: str) -> Metric:
    """Return how the metric ``key`` is shown; a key of no known name is spelt out."""
    if key in METRICS:
        return METRICS[key]
    for suffix, unit, scale in _UNITS:
        if key.endswith(suffix):
            words = key.removesuffix(suffix).split("_")
            latency = words[0] in LATENCY_METRICS
            head = words[0].upper() if latency else words[0].capitalize()
            return Metric(
                " ".join([head, *words[1:]]), unit, "lower" if latency else "neither", scale
            )
    return Metric(key.replace("_", " ").capitalize(), "")


def in_order(keys: Iterable[str]) -> list[str]:
    """Return metric keys in the report's order; unknown ones at the end, as they came."""
    places = {key: place for place, key in enumerate(METRICS)}
    return sorted(dict.fromkeys(keys), key=lambda key: places.get(key, len(places)))


def number(value: float, digits: int = 3) -> str:
    """Return ``value`` with ``digits`` significant digits, integers whole, thousands grouped."""
    if math.isnan(value) or math.isinf(value):
        return str(value)
    if value == 0:
        return "0"
    if float(value).is_integer() or abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}".replace("-", MINUS)
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    if decimals > 9:
        return f"{value:.{digits - 1}e}".replace("-", MINUS)
    return f"{value:,.{decimals}f}".replace("-", MINUS)


def tidy(value: float) -> str:
    """Return a number without trailing zeros: for axes and settings, not for measurements."""
    text = number(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def with_unit(value: float, unit: str, digits: int = 3) -> str:
    """Return a number and its unit."""
    return f"{number(value, digits)} {unit}".strip()


def shown(value: Value, key: str, digits: int = 3) -> str:
    """Return a metric's value with its unit, or the reason why there is none."""
    if value.value is None:
        return value.missing or "not measured"
    metric = metric_of(key)
    return with_unit(value.value * metric.scale, metric.unit, digits)


def interval(value: Value, scale: float = 1.0) -> str | None:
    """Return the confidence interval as ``low-high``; None where there is none.

    None too where both ends read the same. The interval of a share (``scale`` 100), which the
    t-distribution knows nothing of, ends at 0 and 100 %.
    """
    if value.low is None or value.high is None:
        return None
    low, high = value.low, value.high
    if scale == SHARE_SCALE and value.value is not None:
        low = min(max(low, 0.0), value.value)
        high = max(min(high, 1.0), value.value)
    low, high = low * scale, high * scale
    return None if tidy(low) == tidy(high) else f"{number(low)}{EN_DASH}{number(high)}"


def times(ratio: float) -> str:
    """Return a ratio as ``x1.62``."""
    return f"{TIMES}{ratio:.2f}"


def change(ratio: float) -> str:
    """Return a ratio as a percentage of change, e.g. ``+24 %``."""
    percent = round((ratio - 1) * 100)
    if percent == 0:
        return "\N{PLUS-MINUS SIGN}0 %"
    return f"{'+' if percent > 0 else MINUS}{abs(percent)} %"


def share(value: float, digits: int = 3) -> str:
    """Return a share of one as a percentage."""
    return f"{number(round(value * 100, 6), digits)} %"


def size(count: int | float | None) -> str:
    """Return a number of bytes in the binary unit that suits it."""
    if count is None:
        return "unknown"
    value = float(count)
    for unit in ("bytes", "KiB", "MiB"):
        if abs(value) < 1024:
            return with_unit(value, unit)
        value /= 1024
    return with_unit(value, "GiB")


def sentence(text: str) -> str:
    """Return a text with a full stop, unless it ends as a sentence does."""
    text = text.strip()
    return text if text.endswith((".", "!", "?", ":", "。")) else f"{text}."


def plural(count: int, noun: str, plural_noun: str | None = None) -> str:
    """Return a count and its noun: ``1 request``, ``2 requests``."""
    return f"{count:,} {noun if count == 1 else plural_noun or noun + 's'}"
