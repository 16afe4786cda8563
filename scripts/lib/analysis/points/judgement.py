"""Judges a load point against the SLO."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scripts.lib.analysis.summary import Value
from scripts.lib.study.models import Slo

Estimate = Callable[[str], float | None]


def judge_point(
    slo: Slo,
    metrics: Mapping[str, Value],
    estimate: Estimate,
    *,
    judgeable: bool,
) -> tuple[bool | None, list[str], list[str]]:
    """Return whether a point keeps the SLO, the limits it missed, and what could not be judged.

    A limit is judged by the sample's own statistic even where the table withholds it for want
    of samples; the point then carries a warning. A point that is not judgeable cannot pass, and
    it fails only by what its own failures prove (success rate, out of memory): latencies taken
    by a client that was itself too slow say nothing about the server. Where no limit is set,
    nothing passes and nothing fails.

    Args:
        slo: The limits.
        metrics: The point's row, for what is not a latency.
        estimate: Key such as ``ttft_p95_ms`` -> the sample's statistic; None: not measured.
        judgeable: Whether the measurement is sound, apart from requests that failed.

    Returns:
        (True, False or None; a sentence per missed limit; a sentence per limit not judged).
    """
    if not slo.limits_anything:
        return None, [], []
    missed: list[str] = []
    unjudged: list[str] = []
    for key, limit, value, unit, at_least in _limits(slo, metrics, estimate, judgeable):
        if value is None:
            unjudged.append(f"{key}: not measured, so its limit was not judged")
        elif (value < limit) if at_least else (value > limit):
            word = "below" if at_least else "above"
            missed.append(f"{key}: {_number(value)}{unit} is {word} the limit {limit:g}{unit}")
    if missed:
        return False, missed, unjudged
    if not judgeable or unjudged:
        return None, missed, unjudged
    return True, missed, unjudged


def _limits(
    slo: Slo, metrics: Mapping[str, Value], estimate: Estimate, judgeable: bool
) -> list[tuple[str, float, float | None, str, bool]]:
    def known(key: str) -> float | None:
        return metrics[key].value if key in metrics else None

    limits: list[tuple[str, float, float | None, str, bool]] = []
    if slo.success_rate is not None:
        limits.append(("success_rate", slo.success_rate, known("success_rate"), "", True))
    if slo.oom is not None:
        limits.append(("oom", slo.oom, known("oom"), "", False))
    if not judgeable:
        return limits
    for latency in slo.latency_limits:
        limits.append((latency.key, latency.limit_ms, estimate(latency.key), " ms", False))
    if slo.kv_usage_max is not None:
        limits.append(("kv_usage_max", slo.kv_usage_max, known("kv_usage_peak"), "", False))
    if slo.preemptions_max is not None:
        limits.append(("preemptions_max", slo.preemptions_max, known("preemptions"), "", False))
    return limits


def _number(value: float) -> str:
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4g}"
