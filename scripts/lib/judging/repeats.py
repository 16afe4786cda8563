"""Several runs of one load point: which of them count, and their pooled latencies.

The boundary search, the tables, the comparison and the SLO all ask here, so that none of them
counts a run that another leaves out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from scripts.lib.load.requests import Floats, Requests
from scripts.lib.load.results import Latency, Point
from scripts.lib.study.slo import QUANTILES

PER_REQUEST = ("ttft", "tpot", "e2el")


class Repeat(Protocol):
    """One run of a load point, and its requests' latencies in ms where they were kept."""

    @property
    def point(self) -> Point:
        """What ``load.json`` says of it."""

    @property
    def samples(self) -> Mapping[str, Floats] | None:
        """``ttft``, ``tpot``, ``e2el`` of the completed requests; None: no records."""


Run = TypeVar("Run", bound=Repeat)


@dataclass(frozen=True)
class Selection(Generic[Run]):
    """The runs of one load point by what they may be used for."""

    used: list[Run]
    """Behind latencies, rates and resources."""
    counted: list[Run]
    """Behind the numbers of requests: those used, and every run with failed requests."""
    left_out: list[Run]
    """Not among those used: the measurement itself was at fault."""
    enough: bool
    """Whether the runs used are more than half; else all of them are shown, and none judged."""

    @property
    def valid(self) -> bool:
        """Whether the point may be compared: enough sound runs, and no request failed."""
        return self.enough and all(run.point.valid for run in self.counted)


def select(runs: Sequence[Run]) -> Selection[Run]:
    """Leave out the runs that say nothing about the server, as long as most of them do.

    A run whose requests failed is evidence against the server and is never left out of the
    counts, even where the client was at fault besides.
    """
    used = [run for run in runs if run.point.judgeable]
    if 2 * len(used) <= len(runs):
        return Selection(list(runs), list(runs), [], enough=False)
    return Selection(
        used,
        counted=[run for run in runs if run.point.judgeable or run.point.failed],
        left_out=[run for run in runs if not run.point.judgeable],
        enough=True,
    )


def latencies(requests: Requests) -> dict[str, Floats]:
    """Return TTFT, TPOT and E2EL in ms of the completed requests that have them."""
    return {metric: requests.latency(metric) for metric in PER_REQUEST}


def reported(run: Repeat, metric: str) -> Latency:
    """Return ``ttft``, ``tpot``, ``itl`` or ``e2el`` as ``load.json`` sums it up."""
    latency: Latency = getattr(run.point, f"{metric}_ms")
    return latency


def run_statistic(run: Repeat, metric: str, statistic: str) -> float | None:
    """Return mean, p50, ... of one latency in one run in ms, from its requests where kept."""
    samples = None if run.samples is None else run.samples.get(metric)
    if samples is None:
        told: float | None = getattr(reported(run, metric), statistic)
        return told
    return statistic_of(samples, statistic)


def pooled_samples(runs: Sequence[Repeat], metric: str) -> Floats | None:
    """Return one latency of all requests of all runs in ms; None without records."""
    samples = [run.samples.get(metric) for run in runs if run.samples is not None]
    if len(samples) < len(runs):
        return None
    known = [s for s in samples if s is not None]
    return np.concatenate(known) if known and len(known) == len(runs) else None


def sample_statistic(runs: Sequence[Repeat], metric: str, statistic: str) -> float | None:
    """Return a latency's statistic over several runs in ms; None: not known of all of them.

    A percentile is that of the pooled requests, whatever their number. A mean, and what no
    requests lie behind, is the mean of the runs.
    """
    pooled = None if statistic == "mean" else pooled_samples(runs, metric)
    if pooled is not None:
        return statistic_of(pooled, statistic)
    values = [run_statistic(run, metric, statistic) for run in runs]
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known and len(known) == len(values) else None


def statistic_of(values: Floats, statistic: str) -> float | None:
    """Return ``mean`` or a percentile (linear interpolation); None without values."""
    if not len(values):
        return None
    return float(
        np.mean(values) if statistic == "mean" else np.quantile(values, QUANTILES[statistic])
    )
