"""When to go back: conditions from the SLO and from what was measured at the operating point.

Each condition is a sentence, and where vLLM exports the metric, a Prometheus expression that is
true while the condition holds. Expressions keep the label ``instance``, so that one rule file
serves many servers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scripts.lib.analysis.comparison.quality_need import compared_items, is_compared
from scripts.lib.analysis.material import Material
from scripts.lib.analysis.summary import PointRow, Rollback
from scripts.lib.analysis.thresholds import ASSUMED_NOISE
from scripts.lib.analysis.wording import at, number, percent, value_of
from scripts.lib.study.models import LatencyLimit
from scripts.lib.telemetry.metric_names import (
    ERRORS_COUNTED_SINCE,
    HTTP_REQUESTS,
    PROCESS_START,
    exported_name,
    version_tuple,
)

WINDOW = "5m"
"""Rates look back over five minutes: a scrape every 15 s leaves 20 samples."""

DRIFT_MARGIN = 0.20
"""How far above the measured interval's upper end the mean latency must rise to count as drift:
several times the noise between equal runs (7 %), so that noise alone does not wake anybody."""

KV_HEADROOM = 0.10
"""Rise of the peak KV usage over the measured one from which the traffic is another."""


def rollback_conditions(
    material: Material, variant: str, rows: Mapping[str, PointRow]
) -> list[Rollback]:
    """Return the conditions for ``variant`` served at its operating points (by workload).

    Limits of the SLO come first, then signs that the server no longer behaves as measured, then
    what no metric tells (kernel path, quality).
    """
    version = _version(material, variant)
    conditions = [*_latency_limits(material, rows, version), *_success(material, version)]
    conditions += _kv_limit(material, rows, version)
    for workload, row in rows.items():
        suffix = f" ({workload})" if len(rows) > 1 else ""
        conditions += _drift(row, version, suffix)
        conditions += _queue(row, version, suffix)
    conditions += _preemptions(material, rows, version)
    conditions += [*_restart(version), *_kernel(material, variant), *_quality(material, variant)]
    return conditions


def _version(material: Material, variant: str) -> str | None:
    startup = material.startups.get(variant)
    return startup.facts.vllm_version if startup else None


def _latency_limits(
    material: Material, rows: Mapping[str, PointRow], version: str | None
) -> Iterator[Rollback]:
    for limit in material.study.slo.latency_limits:
        name = f"{limit.metric.upper()} {limit.statistic}"
        yield Rollback(
            name=f"{name} over the SLO",
            words=f"{name} stays above {number(limit.limit_ms)} ms for 5 minutes.",
            expression=f"{latency_expression(limit, version)} > {_seconds(limit.limit_ms)}",
            for_="5m",
            from_=f"slo.{limit.key} = {number(limit.limit_ms)}; {_measured(rows, limit.key)}",
        )


def _measured(rows: Mapping[str, PointRow], metric: str) -> str:
    words = []
    for workload, row in rows.items():
        found = row.metrics.get(metric)
        if found is None or found.value is None:
            why = found.missing if found and found.missing else "not measured"
            words.append(f"{workload}, {at(row)}: {why}")
        else:
            words.append(f"measured {number(found.value)} on {workload}, {at(row)}")
    return "; ".join(words) or "no operating point"


def latency_expression(limit: LatencyLimit, version: str | None) -> str:
    """Return the PromQL of a latency at a statistic, in seconds."""
    name = exported_name(limit.metric, version)
    if limit.statistic == "mean":
        return mean_expression(name)
    quantile = int(limit.statistic[1:]) / 100
    return (
        f"histogram_quantile({quantile:g}, sum by (le, instance) (rate({name}_bucket[{WINDOW}])))"
    )


def mean_expression(name: str) -> str:
    """Return the PromQL of a histogram's mean over the window."""
    total = f"sum by (instance) (rate({name}_sum[{WINDOW}]))"
    return f"{total} / sum by (instance) (rate({name}_count[{WINDOW}]))"


def _seconds(ms: float) -> str:
    return f"{ms / 1000:.6g}"


def _success(material: Material, version: str | None) -> Iterator[Rollback]:
    rate = material.study.slo.success_rate
    if rate is None:
        return
    some = f"More than {percent(1 - rate)} of requests end" if rate < 1 else "A request ends"
    answers = f"More than {percent(1 - rate)} of answers are" if rate < 1 else "An answer is"
    source = f"slo.success_rate = {rate:g}"
    if version_tuple(version) >= ERRORS_COUNTED_SINCE:
        # Aborts are left out: mostly they are clients that hang up.
        finished = exported_name("finished_requests", version)
        yield Rollback(
            name="Requests end in an error",
            words=f"{some} in an error inside the engine.",
            expression=_share_above(f'{finished}{{finished_reason="error"}}', finished, 1 - rate),
            for_="5m",
            from_=source,
        )
    yield Rollback(
        name="HTTP errors",
        words=f"{answers} an HTTP 5xx error.",
        expression=_share_above(f'{HTTP_REQUESTS}{{status="5xx"}}', HTTP_REQUESTS, 1 - rate),
        for_="5m",
        from_=source,
    )


def _share_above(part: str, whole: str, limit: float) -> str:
    rates = [f"sum by (instance) (rate({series}[{WINDOW}]))" for series in (part, whole)]
    return f"{rates[0]} / {rates[1]} > {max(0.0, limit):.6g}"


def _kv_limit(
    material: Material, rows: Mapping[str, PointRow], version: str | None
) -> Iterator[Rollback]:
    limit = material.study.slo.kv_usage_max
    peaks = [v for row in rows.values() if (v := value_of(row, "kv_usage_peak")) is not None]
    measured = _measured(rows, "kv_usage_peak")
    if limit is not None:
        threshold, source = limit, f"slo.kv_usage_max = {limit:g}; {measured}"
        name = "KV cache nearly full"
    elif peaks and max(peaks) + KV_HEADROOM < 1:
        threshold, source = max(peaks) + KV_HEADROOM, f"{measured}, plus {percent(KV_HEADROOM)}"
        name = "KV cache fuller than measured"
    else:
        return
    usage = exported_name("kv_cache_usage", version)
    yield Rollback(
        name=name,
        words=f"KV-cache usage stays above {percent(threshold)} for 5 minutes.",
        expression=f"max by (instance) ({usage}) > {threshold:.4g}",
        for_="5m",
        from_=source,
    )


def _drift(row: PointRow, version: str | None, suffix: str) -> Iterator[Rollback]:
    """Slower than measured, at no more than the measured load."""
    for metric in ("tpot", "ttft"):
        found = row.metrics.get(f"{metric}_mean_ms")
        if found is None or found.value is None or row.kind != "concurrency":
            continue
        upper = found.high if found.high is not None else found.value * (1 + ASSUMED_NOISE)
        threshold = upper * (1 + DRIFT_MARGIN)
        name = exported_name(metric, version)
        running = exported_name("running", version)
        idle = f"sum by (instance) ({running}) <= {row.level:g}"
        noise = f"{percent(ASSUMED_NOISE)} for noise"
        basis = "upper end of its interval" if found.high is not None else noise
        yield Rollback(
            name=f"{metric.upper()} drifts from what was measured{suffix}",
            words=f"Mean {metric.upper()} stays above {number(threshold)} ms while no more than "
            f"{number(row.level)} requests run: slower than measured at that load, as after a "
            "silent change of kernel, driver or clock.",
            expression=f"({mean_expression(name)} > {_seconds(threshold)}) and ({idle})",
            for_="10m",
            from_=f"measured mean {number(found.value)} ms at {at(row)}, {basis}, "
            f"plus {percent(DRIFT_MARGIN)}",
        )


def _queue(row: PointRow, version: str | None, suffix: str) -> Iterator[Rollback]:
    waiting = value_of(row, "waiting_peak")
    if waiting is None:
        return
    yield Rollback(
        name=f"Queue grows beyond what was measured{suffix}",
        words=f"For 5 minutes never fewer than {number(waiting + 1)} requests wait; at the "
        f"measured load the peak was {number(waiting)}.",
        expression=f"min_over_time((sum by (instance) ({exported_name('waiting', version)}))"
        f"[{WINDOW}:15s]) > {waiting:g}",
        for_=None,
        from_=f"measured peak {number(waiting)} waiting at {at(row)}",
    )


def _preemptions(
    material: Material, rows: Mapping[str, PointRow], version: str | None
) -> Iterator[Rollback]:
    measured = [v for row in rows.values() if (v := value_of(row, "preemptions")) is not None]
    limit = material.study.slo.preemptions_max
    if limit is None and (not measured or max(measured) > 0):
        return
    threshold = limit or 0
    words = "Requests are preempted" if threshold == 0 else f"More than {threshold} preemptions"
    source = f"slo.preemptions_max = {limit}; " if limit is not None else ""
    yield Rollback(
        name="Preemptions",
        words=f"{words} within 10 minutes: the KV cache no longer holds the traffic.",
        expression=f"sum by (instance) (increase({exported_name('preemptions', version)}[10m]))"
        f" > {threshold}",
        for_=None,
        from_=source + _measured(rows, "preemptions"),
    )


def _restart(version: str | None) -> Iterator[Rollback]:
    yield Rollback(
        name="Server restarts",
        words="The server restarts more than once within 30 minutes (out of memory, engine dead).",
        # vllm: series name the instances; the process metric alone would match every exporter.
        expression=f"changes({PROCESS_START}[30m]) > 1 "
        f"and on (instance) {exported_name('running', version)}",
        for_=None,
        from_="slo.oom and slo.success_rate: no restart belongs to the measured runs",
    )


def _kernel(material: Material, variant: str) -> Iterator[Rollback]:
    verdict = material.verdicts.get(variant)
    if verdict is None or verdict.verdict == "unknown":
        return
    kernels = f" through {', '.join(verdict.kernels)}" if verdict.kernels else ""
    yield Rollback(
        name="Another kernel path after a restart",
        words=f"A start-up log no longer shows {verdict.real_scheme}{kernels}: run "
        "`python -m scripts.inspect_server_log` on each new log and compare `scheme` and "
        "`degraded`.",
        expression=None,
        from_=f"kernels/{variant}.json",
    )


def _quality(material: Material, variant: str) -> Iterator[Rollback]:
    quality, view = material.study.quality, material.quality_of(variant)
    if quality is None or view is None or view.outcome in ("baseline", "not measured"):
        return
    if not is_compared(view):
        return
    items = compared_items(view)
    allowed = int(quality.non_inferiority_margin * items)
    yield Rollback(
        name="Quality falls",
        words=f"The probes, repeated with each new checkpoint, engine or flag, lose more than "
        f"{allowed} of {items} items net against the baseline "
        f"(now {view.lost} lost, {view.gained} gained).",
        expression=None,
        from_=f"quality.non_inferiority_margin = {quality.non_inferiority_margin:g}; {view.source}",
    )
