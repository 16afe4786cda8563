"""How many server starts, requests, hours and dollars a variant of a study would cost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from scripts.lib.load.schedule import default_warmup
from scripts.lib.plan.models import Estimate
from scripts.lib.study.checks import probe_files
from scripts.lib.study.models import Dataset, Study, Workload

SHAREGPT_TOKENS = (270, 211)
"""Mean prompt and answer of 300 ShareGPT conversations after vLLM's length filter (our own run:
prompts up to 1024 tokens, 2048 in all)."""
GPU_START_S = 85.0
CPU_START_S = 60.0
"""Start to ready: 85 s on an H200 by hand; a CPU start with --enforce-eager about 30 s to 60 s."""
STEP_FACTOR = 1.5
"""A real step over the roofline's floor: published TPOT at concurrency 1 is 1.3 to 1.7 times it
(BF16 1.29, FP8 1.85, 4-bit 1.65 on an L40S)."""


@dataclass(frozen=True)
class Work:
    """What the study sends to one variant."""

    server_starts: int
    requests: int
    unknown: list[str]
    """What is not counted, and why."""


def work_of(study: Study, variant: str, root: Path = Path()) -> Work:
    """Count the server starts and requests of one variant, warm-up included.

    A server that already runs at an address is started zero times.
    """
    starts, requests, unknown = 0, 0, []
    for name, workload in study.workloads.items():
        starts += workload.sessions
        sent, fault = _requests(workload)
        requests += workload.sessions * sent
        if fault:
            unknown.append(f"workload {name}: {fault}")
        if study.slo_search and workload.concurrency:
            unknown.append(
                f"workload {name}: up to {study.slo_search.max_points} further points of the "
                "search for the SLO's limit"
            )
    if study.quality:
        starts += 1
        probes = _probe_items(study.quality.probes, root)
        requests += probes
        if not probes:
            unknown.append("quality probes: no probe file was found to count")
    attached = study.engine_of(variant).address is not None
    return Work(0 if attached else starts, requests, unknown)


def _requests(workload: Workload) -> tuple[int, str | None]:
    """Return the requests of one session, and what of them cannot be counted beforehand."""
    levels = len(workload.concurrency) or len(workload.rate)
    points = [workload.requests_at(index) or 0 for index in range(levels)]
    total = sum(points) + (workload.ramp.requests if workload.ramp else 0)
    fault = "as many requests as the trace holds" if workload.dataset.trace else None
    return default_warmup(workload) + workload.repetitions * total, fault


def _probe_items(patterns: list[str], root: Path) -> int:
    files = [root / path for path in probe_files(patterns, root)]
    lines = (path.read_text(encoding="utf-8").splitlines() for path in files)
    return sum(bool(line.strip()) for file in lines for line in file)


def tokens_of(dataset: Dataset) -> tuple[float, float] | None:
    """Return the mean prompt and answer length that is assumed; None: not known beforehand."""
    if dataset.random:
        return float(dataset.random.input_tokens), float(dataset.random.output_tokens)
    if dataset.prefix:
        prompt = dataset.prefix.prefix_tokens + dataset.prefix.suffix_tokens
        return float(prompt), float(dataset.prefix.output_tokens)
    if dataset.sharegpt:
        return float(SHAREGPT_TOKENS[0]), float(SHAREGPT_TOKENS[1])
    return None


def hours_of(
    study: Study, work: Work, tpot_floor: Estimate | None, bound: Estimate | None, *, on_cpu: bool
) -> Estimate | str:
    """Return the hours of one variant, or why they are not estimated.

    Starts at a measured start's time, then each point's answers one after another at 1.5 x the
    roofline's step, longer where arithmetic takes over.
    """
    if tpot_floor is None:
        return "the time of one step is not known, and so neither is that of the load points"
    seconds = work.server_starts * (CPU_START_S if on_cpu else GPU_START_S)
    for name, workload in study.workloads.items():
        tokens = tokens_of(workload.dataset)
        if tokens is None:
            return f"workload {name}: the lengths of its prompts and answers are not known"
        step = tpot_floor.value / 1e3 * STEP_FACTOR
        each = workload.sessions * workload.repetitions
        seconds += each * _points_seconds(workload, tokens[1] * step, bound)
    how = (
        f"{work.server_starts} starts of {CPU_START_S if on_cpu else GPU_START_S:g} s; load at "
        f"{STEP_FACTOR:g} x the roofline's time per token; quality probes and preparing "
        "checkpoints not counted"
    )
    return Estimate(value=round(seconds / 3600, 2), unit="h", how=how)


def _points_seconds(workload: Workload, answer_s: float, bound: Estimate | None) -> float:
    total = 0.0
    for index, level in enumerate(workload.concurrency):
        slower = max(1.0, level / bound.value) if bound and bound.value else 1.0
        rounds = -(-(workload.requests_at(index) or 0) // level)
        total += rounds * answer_s * slower
    for index, rate in enumerate(workload.rate):
        total += (workload.requests_at(index) or 0) / rate + answer_s
    if workload.ramp:
        mean = (workload.ramp.start_rate + workload.ramp.end_rate) / 2
        total += workload.ramp.requests / mean
    return total
