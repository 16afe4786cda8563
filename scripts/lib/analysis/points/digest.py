"""Reduces each load point of a run to what the tables need of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from scripts.lib.analysis.points.records import Run
from scripts.lib.analysis.points.windows import Values, engine_window, gpu_window
from scripts.lib.analysis.statistics import Floats
from scripts.lib.analysis.summary import Value
from scripts.lib.judging.repeats import latencies
from scripts.lib.judging.slo import Goodput, Trial, count_oom, goodput, is_oom
from scripts.lib.load.requests import COLUMNS, Requests
from scripts.lib.load.results import Point
from scripts.lib.study.models import Study

LoadKind = Literal["concurrency", "rate", "ramp", "trace"]
NO_RECORDS = "no per-request records"


@dataclass(frozen=True)
class Digest:
    """One load point, run once: its numbers and its requests' latencies in ms."""

    variant: str
    workload: str
    session: int
    kind: LoadKind
    level: float
    point: Point
    samples: dict[str, Floats] | None
    """ttft, tpot, e2el of the completed requests; None: no per-request records."""
    good: Goodput | None
    series: Values
    oom: int | None
    """Out-of-memory errors; None: why requests failed, or whether any did, is not known."""
    warnings: tuple[str, ...]
    source: str

    @property
    def key(self) -> tuple[str, str, LoadKind, float]:
        """What the repeats of this point share: variant, workload, kind and level of load."""
        return self.variant, self.workload, self.kind, self.level

    @property
    def trial(self) -> Trial:
        """What the SLO is held against."""
        return Trial(
            point=self.point,
            samples=self.samples,
            kv_usage_peak=self.series["kv_usage_peak"].value,
            preemptions=self.series["preemptions"].value,
            oom=self.oom,
        )


def digest_runs(study: Study, runs: Iterable[Run]) -> Iterator[Digest]:
    """Yield the digest of every point of every run; the runs may be a lazy iterator."""
    for run in runs:
        yield from digest_run(study, run)


def digest_run(study: Study, run: Run) -> list[Digest]:
    """Return the digests of one run's points, in the order in which they were measured."""
    grouped = {} if run.requests is None else dict(iter(run.requests.groupby("point")))
    digests = []
    for index, point in enumerate(run.load.points):
        kind, level = _load_of(study, run.workload, point)
        requests = None
        if run.requests is not None:
            columns = grouped.get(index, run.requests.iloc[:0])
            requests = Requests.from_columns(
                {name: columns[name] for name in (*COLUMNS, "ok")}, open_loop=kind != "concurrency"
            )
        digests.append(
            Digest(
                variant=run.variant,
                workload=run.workload,
                session=run.session,
                kind=kind,
                level=level,
                point=point,
                samples=None if requests is None else latencies(requests),
                good=None if requests is None else goodput(requests, study.slo, point.duration_s),
                series=_series(run, point),
                oom=_oom(run, point, last=index == len(run.load.points) - 1),
                warnings=_disagreements(point, requests),
                source=run.source,
            )
        )
    return digests


def _load_of(study: Study, workload: str, point: Point) -> tuple[LoadKind, float]:
    spec = study.workloads.get(workload)
    if spec is not None and spec.ramp is not None:
        return "ramp", 0.0
    if spec is not None and spec.dataset.trace is not None:
        return "trace", 0.0
    if point.rate is not None:
        return "rate", point.rate
    if point.concurrency is not None:
        return "concurrency", float(point.concurrency)
    return "trace", 0.0


def _oom(run: Run, point: Point, *, last: bool) -> int | None:
    """Count a server that ran out of memory as one more at its last point."""
    counted = count_oom(point)
    died_of_it = last and run.failure is not None and is_oom(run.failure.kind)
    return (counted or 0) + 1 if died_of_it else counted


def _series(run: Run, point: Point) -> Values:
    values = engine_window(run.metrics, point.start_s, point.end_s)
    values |= gpu_window(run.gpu, point.start_s, point.end_s)
    values |= {name: Value(value=value) for name, value in point.reported.items()}
    server = point.server
    if server is None:
        return values
    # The engine's counters at the very ends of the point beat samples of once a second.
    if server.queue_mean_ms is not None:
        values["queue_mean_ms"] = Value(value=server.queue_mean_ms)
    if server.preemptions is not None:
        values["preemptions"] = Value(value=server.preemptions)
    if server.prefix_cache_queries and server.prefix_cache_hits is not None:
        share = server.prefix_cache_hits / server.prefix_cache_queries
        values["prefix_hit_share"] = Value(value=share)
    return values


def _disagreements(point: Point, requests: Requests | None) -> tuple[str, ...]:
    """Say where load.json and the raw records behind it do not agree."""
    if requests is None:
        return ()
    pairs = {
        "requests sent": (point.sent, len(requests)),
        "requests completed": (point.completed, int(requests.ok.sum())),
        "output tokens": (point.output_tokens, int(requests.output_tokens[requests.ok].sum())),
    }
    return tuple(
        f"load.json counts {said:,} {what}, its records {found:,}"
        for what, (said, found) in pairs.items()
        if said is not None and said != found
    )
