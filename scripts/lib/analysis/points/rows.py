"""One row per variant and load point, over its repetitions and sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product

from scripts.lib.analysis.points.cost import joules_per, usd_per_million
from scripts.lib.analysis.points.digest import NO_RECORDS, Digest, digest_runs
from scripts.lib.analysis.points.latency import (
    NO_LATENCY,
    latency_metrics,
    sample_warnings,
)
from scripts.lib.analysis.points.records import Run
from scripts.lib.analysis.statistics import mean_value, too_few
from scripts.lib.analysis.summary import PointRow, Value
from scripts.lib.base.counts import share, total
from scripts.lib.judging.repeats import Selection, select
from scripts.lib.judging.slo import judge, success_rate
from scripts.lib.load.results import Point, SteadyWindow
from scripts.lib.study.models import Study
from scripts.lib.study.slo import PERCENTILE_FLOORS, QUANTILES

Metrics = dict[str, Value]

NO_OOM_COUNT = "how many requests ran out of memory is not known"
NO_SLO_LATENCY = (
    "the SLO limits no percentile of TTFT, TPOT or E2EL, so no single request is good or bad"
)
WORST = ("kv_usage_peak", "running_peak", "waiting_peak", "preemptions", "gpu_memory_peak_mib")
"""Peaks and counts of trouble: a row shows its worst run, not the mean."""

COMPARED = ("ttft_", "tpot_", "itl_", "e2el_", "usd_per_", "joules_per_", "goodput_")
COMPARED_EXACTLY = ("output_throughput_tok_s", "total_throughput_tok_s", "request_throughput")


def build_points(study: Study, runs: Iterable[Run], stamps: Mapping[str, str]) -> list[PointRow]:
    """Return one row per variant, workload and load level.

    Args:
        study: For the SLO, the price and the baseline.
        runs: The study's runs; may be lazy.
        stamps: Variant -> what really ran, shown beside its name.
    """
    return rows_from_digests(study, list(digest_runs(study, runs)), stamps)


def rows_from_digests(
    study: Study, digests: Sequence[Digest], stamps: Mapping[str, str]
) -> list[PointRow]:
    """Return the rows of :func:`build_points` from points that were reduced already."""
    order = {name: number for number, name in enumerate(study.baseline_first)}
    groups = group_digests(digests)
    keys = sorted(groups, key=lambda k: (k[1], k[2], order.get(k[0], len(order)), k[0], k[3]))
    rows = [_row(study, groups[key], stamps.get(key[0], "")) for key in keys]
    return _with_ratios(rows, study.baseline)


def group_digests(digests: Iterable[Digest]) -> dict[tuple[str, str, str, float], list[Digest]]:
    """Return the repeats of each point under what they share."""
    groups: dict[tuple[str, str, str, float], list[Digest]] = {}
    for digest in digests:
        groups.setdefault(digest.key, []).append(digest)
    return groups


def _row(study: Study, repeats: Sequence[Digest], stamp: str) -> PointRow:
    first = repeats[0]
    chosen = select(repeats)
    judgement = judge(study.slo, [digest.trial for digest in repeats])
    return PointRow(
        variant=first.variant,
        stamp=stamp,
        workload=first.workload,
        kind=first.kind,
        level=first.level,
        origin="plan" if any(d.point.origin == "plan" for d in repeats) else "slo_search",
        runs=len(chosen.used),
        sessions=len({d.session for d in chosen.used}),
        sent=total(d.point.sent for d in chosen.counted),
        completed=total(d.point.completed for d in chosen.counted),
        valid=chosen.valid,
        invalid_reasons=_invalid_reasons(chosen),
        left_out=_left_out(chosen, len(repeats)),
        warnings=[
            *_gather(chosen.used, lambda d: d.point.warnings),
            *_gather(chosen.used, lambda d: d.warnings),
            *sample_warnings(study, chosen.used),
            *judgement.unjudged,
        ],
        metrics=_metrics(study, chosen, judgement.passed),
        steady=_steady(chosen.used),
        slo_pass=judgement.passed,
        slo_failed=judgement.missed,
        sources=list(dict.fromkeys(d.source for d in repeats)),
    )


def _metrics(study: Study, chosen: Selection[Digest], passed: bool | None) -> Metrics:
    used = chosen.used
    metrics = {
        **latency_metrics(used),
        **_count_metrics(chosen),
        **_rate_metrics(used),
        **_goodput_metrics(used),
        **_series_metrics(used),
    }
    metrics |= _money_metrics(study, used, metrics)
    metrics["throughput_within_slo_tok_s"] = _within_slo(passed, metrics)
    return metrics


def _invalid_reasons(chosen: Selection[Digest]) -> list[str]:
    if chosen.valid:
        return []
    reasons = _gather(chosen.counted, lambda d: d.point.invalid_reasons)
    return reasons or ["the measurement says no reason"]


def _left_out(chosen: Selection[Digest], repeats: int) -> list[str]:
    """Say which repetitions are not in the numbers, and why."""
    sessions = {d.session for d in [*chosen.used, *chosen.left_out]}
    sentences = []
    for digest in chosen.left_out:
        where = f"session {digest.session}, " if len(sessions) > 1 else ""
        why = "; ".join(digest.point.invalid_reasons) or "the measurement says no reason"
        failed = " (its failed requests count all the same)" if digest.point.failed else ""
        sentences.append(f"{where}repetition {digest.point.repetition}{failed}: {why}")
    if sentences:
        kept = f"{len(chosen.used)} of {repeats} repetitions"
        sentences = [f"{kept} stand behind the numbers, without {text}" for text in sentences]
    return sentences


def _gather(repeats: Sequence[Digest], texts: Callable[[Digest], Iterable[str]]) -> list[str]:
    """Return the texts of all repeats once each, saying in how many of them they hold."""
    counts: dict[str, int] = {}
    for digest in repeats:
        for text in dict.fromkeys(texts(digest)):
            counts[text] = counts.get(text, 0) + 1
    total = len(repeats)
    return [f"{t} (in {n} of {total} runs)" if n < total else t for t, n in counts.items()]


# Counts and rates


def _count_metrics(chosen: Selection[Digest]) -> Metrics:
    oom = total(d.oom for d in chosen.counted)
    return {
        "success_rate": _success_rate(chosen.counted),
        "oom": Value(missing=NO_OOM_COUNT) if oom is None else Value(value=float(oom)),
        "input_tokens_mean": _per_answer(chosen.used, lambda p: p.input_tokens),
        "output_tokens_mean": _per_answer(chosen.used, lambda p: p.output_tokens),
    }


def _success_rate(repeats: Sequence[Digest]) -> Value:
    points = [d.point for d in repeats]
    rate, sent = success_rate(points), total(p.sent for p in points)
    if rate is not None:
        return Value(value=rate, n=sent)
    if sent == 0:
        return Value(missing="no request was sent")
    return Value(
        missing=f"how many requests {'were sent' if sent is None else 'completed'} is not known"
    )


def _per_answer(repeats: Sequence[Digest], tokens: Callable[[Point], int | None]) -> Value:
    nothing = all(d.point.completed == 0 for d in repeats)
    missing = "no request completed" if nothing else NO_LATENCY
    return mean_value([share(tokens(d.point), d.point.completed) for d in repeats], missing)


RATES = (
    "output_throughput_tok_s",
    "total_throughput_tok_s",
    "request_throughput",
    "achieved_rate",
    "duration_s",
)


def _rate_metrics(repeats: Sequence[Digest]) -> Metrics:
    rates = {
        name: mean_value([getattr(d.point, name) for d in repeats], NO_LATENCY) for name in RATES
    }
    return rates | {
        "send_lag_p99_ms": _worst([d.point.client.send_lag_p99_ms for d in repeats]),
        "client_cpu_share": _worst([d.point.client.cpu_share for d in repeats]),
    }


def _worst(values: Sequence[float | None]) -> Value:
    known = [v for v in values if v is not None]
    return Value(value=max(known), n=len(known)) if known else Value(missing=NO_LATENCY)


def _goodput_metrics(repeats: Sequence[Digest]) -> Metrics:
    """Requests that met every limit: per second of the point, and of all that were sent."""
    names = ("goodput_req_s", "goodput_share", "good_output_tok_s")
    if any(d.samples is None for d in repeats):
        return dict.fromkeys(names, Value(missing=NO_RECORDS))
    if any(d.good is None for d in repeats):
        return dict.fromkeys(names, Value(missing=NO_SLO_LATENCY))
    pairs = [(d.good, d.point) for d in repeats if d.good is not None]
    return {
        "goodput_req_s": mean_value([g.requests_per_s for g, _ in pairs], "no time passed"),
        "goodput_share": mean_value([g.share for g, _ in pairs], "no request was sent"),
        "good_output_tok_s": mean_value(
            [share(g.good_output_tokens, p.duration_s) for g, p in pairs], "no time passed"
        ),
    }


def _series_metrics(repeats: Sequence[Digest]) -> Metrics:
    metrics: Metrics = {}
    for name in repeats[0].series:
        values = [d.series[name] for d in repeats]
        known = [v.value for v in values if v.value is not None]
        missing = next((v.missing for v in values if v.missing), "not measured")
        if name in WORST:
            metrics[name] = (
                Value(value=max(known), n=len(known)) if known else Value(missing=missing)
            )
        else:
            metrics[name] = mean_value([v.value for v in values], missing)
    return metrics


def _money_metrics(study: Study, repeats: Sequence[Digest], metrics: Metrics) -> Metrics:
    per_token = [
        joules_per(d.series["energy_j"], d.point.output_tokens, "output tokens") for d in repeats
    ]
    per_good = [
        joules_per(d.series["energy_j"], d.good.good if d.good else None, "good requests")
        for d in repeats
    ]
    return {
        "usd_per_million_output_tokens": usd_per_million(
            study.usd_per_hour, metrics["output_throughput_tok_s"], "no token came out"
        ),
        "usd_per_million_good_tokens": usd_per_million(
            study.usd_per_hour, metrics["good_output_tok_s"], "no request met the SLO"
        ),
        "joules_per_output_token": _mean_of(per_token),
        "joules_per_good_request": _mean_of(per_good),
    }


def _mean_of(values: Sequence[Value]) -> Value:
    missing = next((v.missing for v in values if v.missing), "not measured")
    return mean_value([v.value for v in values], missing)


def _within_slo(passed: bool | None, metrics: Metrics) -> Value:
    """Return the throughput that counts: all of it where the SLO is kept, none where it is not."""
    if passed is None:
        return Value(missing="the SLO was not judged at this point")
    return metrics["output_throughput_tok_s"] if passed else Value(value=0.0)


def _steady(repeats: Sequence[Digest]) -> Metrics:
    """Return the steady window's numbers; empty where no run had one (open loop)."""
    windows = [d.point.steady for d in repeats]
    if all(window is None for window in windows):
        return {}

    def mean(read: Callable[[SteadyWindow], float | None]) -> Value:
        return mean_value([None if w is None else read(w) for w in windows], "no steady window")

    metrics = {
        "duration_s": mean(lambda w: w.end_s - w.start_s),
        "completed": mean(lambda w: float(w.completed)),
        "output_throughput_tok_s": mean(lambda w: w.output_throughput_tok_s),
    }
    for metric, statistic in product(("ttft", "tpot"), ("mean", *QUANTILES)):
        name = f"{metric}_ms"
        value = mean(lambda w, n=name, s=statistic: getattr(getattr(w, n), s))  # type: ignore[misc]
        count = total(getattr(w, name).n for w in windows if w is not None)
        floor = PERCENTILE_FLOORS.get(statistic, 0)
        if value.value is not None and count is not None and count < floor:
            value = Value(missing=too_few(count, statistic), n=count)
        metrics[f"{metric}_{statistic}_ms"] = value
    return metrics


# Against the baseline


def _with_ratios(rows: Sequence[PointRow], baseline: str) -> list[PointRow]:
    """Add the ratios to the baseline at the same load, where both points are valid."""
    reference = {
        (row.workload, row.kind, row.level): row.metrics
        for row in rows
        if row.variant == baseline and row.valid
    }
    return [
        _with_ratio(row, reference.get((row.workload, row.kind, row.level))) if row.valid else row
        for row in rows
    ]


def _with_ratio(row: PointRow, baseline: Mapping[str, Value] | None) -> PointRow:
    if baseline is None:
        return row
    metrics = {
        name: value.model_copy(update={"ratio_to_baseline": value.value / reference})
        if value.value is not None
        and name.startswith(COMPARED + COMPARED_EXACTLY)
        and (reference := baseline[name].value)
        else value
        for name, value in row.metrics.items()
    }
    return row.model_copy(update={"metrics": metrics})
