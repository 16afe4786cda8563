"""Puts metrics together to narrow down a cause: the rule table and how it is applied.

A rule looks at one window (two neighbouring load points of one variant), at one point, or at
the whole study. It returns evidence (metric, window, value) or nothing. A metric that was not
measured never counts for or against anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from scripts.lib.analysis.diagnosis import point_rules, study_rules, window_rules
from scripts.lib.analysis.material import Material
from scripts.lib.analysis.summary import Finding, PointRow
from scripts.lib.analysis.wording import at, load_words

Severity = Literal["info", "warning", "critical"]


@dataclass(frozen=True)
class Rule:
    """What an observation probably means and what to look at next."""

    name: str
    cause: str
    next_check: str
    severity: Severity


@dataclass(frozen=True)
class WindowRule(Rule):
    """A rule about two neighbouring load points; returns evidence, empty when it does not hold."""

    seen: Callable[[PointRow, PointRow], list[str]]


@dataclass(frozen=True)
class PointRule(Rule):
    """A rule about one load point."""

    seen: Callable[[Material, PointRow], list[str]]


@dataclass(frozen=True)
class StudyRule(Rule):
    """A rule about the whole study; yields (variant, workload, where, evidence)."""

    seen: Callable[[Material], Iterator[study_rules.Observation]]


WINDOW_RULES = (
    WindowRule(
        name="arrivals outrun prefill",
        cause="Requests arrive faster than their prompts can be processed: they wait for prefill.",
        next_check="Arrival rate, prompt lengths, running against waiting requests, "
        "max-num-batched-tokens.",
        severity="warning",
        seen=window_rules.arrivals_outrun_prefill,
    ),
    WindowRule(
        name="KV cache pressure",
        cause="Too many or too long sequences for the KV cache: the engine drops and recomputes.",
        next_check="Distribution of context lengths, max-num-seqs, KV-cache dtype, weights' size.",
        severity="warning",
        seen=window_rules.kv_cache_pressure,
    ),
    WindowRule(
        name="decode pressure",
        cause="The decode batch presses on memory bandwidth or arithmetic: each token takes "
        "longer for everybody.",
        next_check="Output lengths, active sequences, GPU utilisation, the plan's roofline.",
        severity="info",
        seen=window_rules.decode_pressure,
    ),
    WindowRule(
        name="batched beyond the SLO",
        cause="More batching buys throughput with tail latency: more tokens, fewer good requests.",
        next_check="P95 and P99, whether failed requests are counted, a lower concurrency limit "
        "(max-num-seqs) in front of the engine.",
        severity="warning",
        seen=window_rules.batched_beyond_slo,
    ),
    WindowRule(
        name="throughput has levelled off",
        cause="The engine is saturated: more load only waits longer.",
        next_check="The last load that keeps the SLO; another replica rather than more load.",
        severity="info",
        seen=window_rules.saturated,
    ),
)
"""Rules about what changes from one load point to the next."""

POINT_RULES = (
    PointRule(
        name="requests fail",
        cause="Not enough spare memory, or a limit of the configuration.",
        next_check="Peak memory, the engine's log, restarts, max-model-len.",
        severity="critical",
        seen=point_rules.requests_fail,
    ),
    PointRule(
        name="KV cache is full",
        cause="The KV cache limits how many requests run at once; the others wait.",
        next_check="KV-cache tokens against concurrency x request length, KV-cache dtype, "
        "gpu-memory-utilization.",
        severity="warning",
        seen=point_rules.kv_cache_full,
    ),
    PointRule(
        name="client-bound",
        cause="The load client, not the server, set these numbers.",
        next_check="More client processes, or another machine for the client; do not compare "
        "variants by this point.",
        severity="critical",
        seen=point_rules.client_bound,
    ),
    PointRule(
        name="API-server-bound",
        cause="The time is lost between the engine and the client: HTTP front end, tokenizer or "
        "network, not the model.",
        next_check="CPU of the API server process, --api-server-count, gateway and network; "
        "server histograms against client latencies.",
        severity="warning",
        seen=point_rules.api_server_bound,
    ),
    PointRule(
        name="client and engine disagree",
        cause="Part of the latency arises outside the engine: in the load client, the HTTP front "
        "end or the network. Which of them cannot be told: the client's own load was not recorded.",
        next_check="Measure again with scripts.run_load, which records the client's CPU and lag "
        "and compares both sides at each point.",
        severity="warning",
        seen=point_rules.client_and_engine_disagree,
    ),
    PointRule(
        name="GPU waits for its host",
        cause="The engine on the CPU (scheduling, Python, starting kernels one by one) takes "
        "longer than the GPU's work: what fewer bits save on the GPU hardly shows.",
        next_check="CUDA graphs (no enforce-eager), the CPU's clock and free cores, a higher "
        "load; do not judge a quantization by this point.",
        severity="warning",
        seen=point_rules.host_bound,
    ),
    PointRule(
        name="GPU throttled",
        cause="The GPU lowered its clocks: power cap or temperature.",
        next_check="Power limit, cooling, other jobs on the node; repeat before comparing.",
        severity="warning",
        seen=point_rules.throttled,
    ),
    PointRule(
        name="prefix cache is decisive",
        cause="Most prompt tokens came from the prefix cache: TTFT is that of a warm cache.",
        next_check="Whether production prompts share prefixes as much; measure once without.",
        severity="warning",
        seen=point_rules.prefix_cache_decisive,
    ),
    PointRule(
        name="prefix cache is useless",
        cause="Prompts of this workload share no prefix: the cache only costs management.",
        next_check="Prefix caching off for this workload, or a workload with the real prefixes.",
        severity="info",
        seen=point_rules.prefix_cache_useless,
    ),
)
"""Rules about one load point."""

STUDY_RULES = (
    StudyRule(
        name="server did not run",
        cause="See the cause read from the engine's log.",
        next_check="The hint in the evidence.",
        severity="critical",
        seen=study_rules.server_failed,
    ),
    StudyRule(
        name="starved baseline",
        cause="The baseline's KV cache cannot hold the tested load while another's can: part of "
        "that variant's lead is memory, not speed.",
        next_check="The same comparison on a larger GPU, or at a concurrency both can hold.",
        severity="warning",
        seen=study_rules.starved_baseline,
    ),
    StudyRule(
        name="smaller but slower",
        cause="Unpacking the weights costs more than reading fewer bytes saves, or no fast kernel "
        "exists here.",
        next_check="The kernel verdict, the batch size, the GPU's compute capability.",
        severity="warning",
        seen=study_rules.smaller_but_slower,
    ),
    StudyRule(
        name="answers of another length",
        cause="This variant's answers have another length than the baseline's: requests are not "
        "equally heavy, so E2EL and requests/s do not compare like with like.",
        next_check="TPOT and tokens/s instead of E2EL, or fixed lengths (ignore_eos).",
        severity="info",
        seen=study_rules.other_lengths,
    ),
)
"""Rules about the study as a whole."""


def diagnose(material: Material) -> list[Finding]:
    """Return what the measurements point to, the gravest first.

    Each finding carries at least one piece of evidence; a rule whose metrics were not measured
    says nothing.
    """
    findings = [*_study_findings(material)]
    for variant in material.study.variants:
        for workload in material.study.workloads:
            rows = material.rows(variant, workload)
            findings += _window_findings(rows)
            findings += _point_findings(material, rows)
    order = {"critical": 0, "warning": 1, "info": 2}
    return sorted(findings, key=lambda finding: order[finding.severity])


def _window_findings(rows: list[PointRow]) -> Iterator[Finding]:
    for rule in WINDOW_RULES:
        seen = [(a, b, rule.seen(a, b)) for a, b in pairwise(rows)]
        hits = [(a, b, evidence) for a, b, evidence in seen if evidence]
        if hits:
            first, last = hits[0][0], hits[-1][1]
            where = f"{at(first)} to {load_words(last.kind, last.level)}"
            yield _finding(rule, first, where, [line for *_, lines in hits for line in lines])


def _point_findings(material: Material, rows: list[PointRow]) -> Iterator[Finding]:
    for rule in POINT_RULES:
        hits = [(row, rule.seen(material, row)) for row in rows]
        hits = [(row, evidence) for row, evidence in hits if evidence]
        if hits:
            where = ", ".join(at(row) for row, _ in hits)
            yield _finding(rule, hits[0][0], where, [line for _, lines in hits for line in lines])


def _study_findings(material: Material) -> Iterator[Finding]:
    for rule in STUDY_RULES:
        for variant, workload, where, evidence in rule.seen(material):
            yield Finding(
                rule=rule.name,
                variant=variant,
                workload=workload,
                where=where,
                evidence=evidence,
                cause=rule.cause,
                next_check=rule.next_check,
                severity=rule.severity,
            )


def _finding(rule: Rule, row: PointRow, where: str, evidence: list[str]) -> Finding:
    return Finding(
        rule=rule.name,
        variant=row.variant,
        workload=row.workload,
        where=where,
        evidence=evidence,
        cause=rule.cause,
        next_check=rule.next_check,
        severity=rule.severity,
    )
