"""How numbers and loads are put into words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scripts.lib.analysis.summary import Comparison, PointRow, Value
from scripts.lib.study.slo import LATENCY_METRICS


def number(value: float) -> str:
    """Return ``value`` with three significant digits and thousands separators, without e-05."""
    if value == 0:
        return "0"
    if abs(value) >= 1000 or float(value).is_integer():
        return f"{value:,.0f}"
    decimals = 2 if abs(value) >= 1 else 3
    if abs(value) >= 100:
        decimals = 1
    text = f"{value:.{decimals}f}" if abs(value) >= 0.001 else f"{value:.2g}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def percent(share: float) -> str:
    """Return a share (0 to 1) as a percentage."""
    return f"{number(round(100 * share, 1))} %"


def load_words(kind: str, level: float) -> str:
    """Return a load point in words, e.g. ``concurrency 8``."""
    return {
        "concurrency": f"concurrency {number(level)}",
        "rate": f"{number(level)} requests/s",
    }.get(kind, f"the {kind}")


def at(row: PointRow) -> str:
    """Return the load of a row in words."""
    return load_words(row.kind, row.level)


def value_of(row: PointRow, metric: str) -> float | None:
    """Return a metric of a row; None where it was not measured or withheld."""
    found = row.metrics.get(metric)
    return None if found is None else found.value


def interval(value: Value) -> str:
    """Return a value with its confidence interval, where there is one."""
    assert value.value is not None
    if value.low is None or value.high is None:
        return number(value.value)
    return f"{number(value.value)} (95 % interval {number(value.low)} to {number(value.high)})"


def listed(names: Sequence[str], word: str = "and") -> str:
    """Return ``a, b and c``."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


METRIC_WORDS = {
    "usd_per_million_good_tokens": "USD per million tokens of requests that met the SLO",
    "usd_per_million_output_tokens": "USD per million output tokens",
    "goodput_req_s": "requests/s that met the SLO",
    "good_output_tok_s": "output tokens/s of requests that met the SLO",
    "output_throughput_tok_s": "output tokens/s",
    "total_throughput_tok_s": "total (input and output) tokens/s",
    "request_throughput": "requests/s",
    "queue_mean_ms": "mean queue time (ms)",
    "queue_p95_ms": "queue time p95 (ms)",
    "kv_usage_peak": "peak KV-cache usage",
    "waiting_peak": "peak waiting requests",
    "goodput_share": "share of requests that met the SLO",
}
"""How metrics are called in sentences."""


def metric_words(metric: str) -> str:
    """Return a metric's name for a sentence, e.g. ``TTFT p95 (ms)``."""
    if metric in METRIC_WORDS:
        return METRIC_WORDS[metric]
    parts = metric.split("_")
    if parts[0] in LATENCY_METRICS and parts[-1] == "ms":
        return f"{parts[0].upper()} {' '.join(parts[1:-1])} (ms)"
    return metric.replace("_", " ")


def reach_words(found: Comparison) -> str:
    """Say which difference a tie or an undecided comparison may have missed; else nothing.

    E.g. ``with 3 repetitions a difference under 14 % can go unseen; 9 would show one of 10 %``.
    """
    if found.outcome in ("better", "worse") or found.detectable is None:
        return ""
    share = math.ceil(100 * found.detectable)
    factor = f"even a factor of {1 + share / 100:.0f}"
    unseen = f"a difference under {share} %" if share < 100 else factor
    words = f"{_repeats_words(found)}{unseen} can go unseen"
    if share <= 10:
        return words
    needed = "over 200" if found.repeats_needed is None else f"{found.repeats_needed}"
    return f"{words}; {needed} would show one of 10 %"


def _repeats_words(found: Comparison) -> str:
    if found.repeats is None:
        return ""
    unit = found.repeats_of if found.repeats != 1 else found.repeats_of.removesuffix("s")
    return f"with {found.repeats} {unit} "
