"""Reduces each load point of a run to what the tables need of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from scripts.lib.analysis.records import Run
from scripts.lib.analysis.statistics import Floats
from scripts.lib.analysis.summary import Value
from scripts.lib.analysis.windows import Values, engine_window, gpu_window
from scripts.lib.load.results import Point
from scripts.lib.study.models import Slo, Study

LoadKind = Literal["concurrency", "rate", "ramp", "trace"]
METRICS = ("ttft", "tpot", "itl", "e2el")
NO_RECORDS = "no per-request records"


@dataclass(frozen=True)
class Good:
    """The requests of one point that met every limit of the SLO by themselves."""

    requests: int
    output_tokens: float


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
    good: Good | None
    series: Values
    oom: int
    warnings: tuple[str, ...]
    source: str

    @property
    def key(self) -> tuple[str, str, LoadKind, float]:
        """What the repeats of this point share: variant, workload, kind and level of load."""
        return self.variant, self.workload, self.kind, self.level


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
            requests = grouped.get(index, run.requests.iloc[:0])
        died_here = run.failure is not None and index == len(run.load.points) - 1
        digests.append(
            Digest(
                variant=run.variant,
                workload=run.workload,
                session=run.session,
                kind=kind,
                level=level,
                point=point,
                samples=None if requests is None else latencies(requests, kind),
                good=None if requests is None else good_requests(requests, study.slo, kind),
                series=_series(run, point),
                oom=count_oom(point) + (died_here and _is_oom(run.failure.kind)),  # type: ignore[union-attr]
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


def latencies(requests: pd.DataFrame, kind: LoadKind) -> dict[str, Floats]:
    """Return TTFT, TPOT and E2EL in ms of the completed requests of one point.

    In open loop they count from the intended time, so that waiting inside the client is part
    of them. TPOT = (E2EL - TTFT) / (output tokens - 1), for answers of two tokens or more.
    """
    done = requests[requests["ok"]]
    begin = _begin(done, kind)
    first, last = done["first_token_s"].to_numpy(float), done["last_token_s"].to_numpy(float)
    tokens = done["output_tokens"].to_numpy(float)
    several = tokens > 1
    return {
        "ttft": 1000 * (first - begin),
        "tpot": 1000 * (last - first)[several] / (tokens[several] - 1),
        "e2el": 1000 * (last - begin),
    }


def _begin(requests: pd.DataFrame, kind: LoadKind) -> Floats:
    sent: Floats = requests["sent_s"].to_numpy(float)
    if kind == "concurrency":
        return sent
    intended: Floats = requests["intended_s"].to_numpy(float)
    return np.where(np.isnan(intended), sent, intended)


def request_limits(slo: Slo) -> dict[str, float]:
    """Return the limit in ms that one request must keep for each latency the SLO names.

    An SLO bounds a statistic; a single request is good if it keeps the loosest percentile
    limit of that latency (with p50 and p99 limits, the one of p99). A limit on the mean counts
    only where no percentile is limited.
    """
    limits: dict[str, float] = {}
    for metric in METRICS:
        own = [limit for limit in slo.latency_limits if limit.metric == metric]
        tails = [limit.limit_ms for limit in own if limit.statistic != "mean"]
        if own:
            limits[metric] = max(tails or [limit.limit_ms for limit in own])
    return limits


def good_requests(requests: pd.DataFrame, slo: Slo, kind: LoadKind) -> Good | None:
    """Count the requests that completed and kept every limit; None: the SLO limits no latency.

    A request with one output token has no TPOT and cannot miss a limit on it.
    """
    limits = request_limits(slo)
    if not limits:
        return None
    done = requests[requests["ok"]]
    begin = _begin(done, kind)
    first, last = done["first_token_s"].to_numpy(float), done["last_token_s"].to_numpy(float)
    decode = last - first
    steps = np.maximum(done["output_tokens"].to_numpy(float) - 1, 1)
    gaps = np.maximum(done["chunks"].to_numpy(float) - 1, 1)
    values = {
        "ttft": first - begin,
        "tpot": decode / steps,
        "itl": decode / gaps,
        "e2el": last - begin,
    }
    good = np.ones(len(done), dtype=bool)
    for metric, limit_ms in limits.items():
        good &= 1000 * values[metric] <= limit_ms
    tokens = done["output_tokens"].to_numpy(float)
    return Good(requests=int(good.sum()), output_tokens=float(tokens[good].sum()))


def count_oom(point: Point) -> int:
    """Return how many requests of a point ended with an out-of-memory error."""
    return sum(n for message, n in point.errors.items() if _is_oom(message))


def _is_oom(text: str) -> bool:
    lowered = text.lower()
    return lowered == "oom" or "out of memory" in lowered or "outofmemory" in lowered


def _series(run: Run, point: Point) -> Values:
    values = engine_window(run.metrics, point.start_s, point.end_s)
    values |= gpu_window(run.gpu, point.start_s, point.end_s)
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


def _disagreements(point: Point, requests: pd.DataFrame | None) -> tuple[str, ...]:
    """Say where load.json and the raw records behind it do not agree."""
    if requests is None:
        return ()
    done = requests[requests["ok"]]
    pairs = {
        "requests sent": (point.sent, len(requests)),
        "requests completed": (point.completed, len(done)),
        "output tokens": (point.output_tokens, int(done["output_tokens"].sum())),
    }
    return tuple(
        f"load.json counts {said:,} {what}, its records {found:,}"
        for what, (said, found) in pairs.items()
        if said != found
    )
