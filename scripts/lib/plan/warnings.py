"""What a person should know about a plan before spending hours on it."""

from __future__ import annotations

from scripts.lib.plan.cost import Work, tokens_of
from scripts.lib.plan.draft import Draft, make_draft, sentence
from scripts.lib.study.models import Study
from scripts.lib.telemetry.host import Host

TIGHT_KV = 2.0
"""A baseline with less than 1/2 of the KV cache of another variant is called starved."""


def warnings_of(
    study: Study, variant: str, draft: Draft, host: Host | None, version: str | None, work: Work
) -> list[str]:
    """Return the warnings of one variant as sentences."""
    found = []
    if draft.expected.kind in ("degraded", "unsupported"):
        found.append(f"{draft.expected.kind.capitalize()}: {draft.expected.why}")
    if draft.facts.missing:
        found.append(sentence(draft.facts.missing))
    kv_dtype = draft.settings.kv_cache_dtype or ""
    calibrated = draft.scheme is not None and draft.scheme.kv_cache_scheme is not None
    if kv_dtype.startswith("fp8") and not calibrated:
        found.append(
            f"KV cache in {kv_dtype} without scales in the checkpoint: the engine uses 1.0, "
            "which can cost accuracy, above all with long contexts."
        )
    if study.host and study.engine_of(variant).is_cpu_build:
        found.append(f"The engine is a CPU build: it would not use the {draft.device.name}.")
    if draft.device.kind == "cpu" and study.host is None and host and host.gpus:
        found.append("The engine is a CPU build: the machine's GPUs are not used.")
    if draft.settings.text("speculative-config"):
        found.append(
            "Speculative decoding: the draft model's weights and cache are not in the estimates, "
            "and the floor of TPOT is that of one token a step."
        )
    if draft.facts.shape and draft.facts.shape.experts:
        found.append(
            "A mixture of experts: the expected path is that of the dense layers; the experts' "
            "kernels follow rules of their own."
        )
    starved = _starved(study, variant, draft, host, version)
    return found + ([starved] if starved else []) + [f"Not counted: {u}." for u in work.unknown]


def _starved(
    study: Study, variant: str, draft: Draft, host: Host | None, version: str | None
) -> str | None:
    """Say if the baseline's KV cache cannot hold a tested load that another variant's can."""
    if variant != study.baseline or not draft.tokens:
        return None
    best, most = None, draft.tokens * draft.settings.data_parallel
    own = most
    for name in study.variants:
        if name == variant:
            continue
        other = make_draft(study, name, host, version)
        tokens = (other.tokens or 0) * other.settings.data_parallel
        if tokens > most:
            best, most = name, tokens
    if best is None:
        return None
    level, need = _largest_load(study)
    if own < need:
        return (
            f"Starved baseline: its KV cache would hold {own:,} tokens, {best}'s {most:,}, and "
            f"concurrency {level} needs about {need:,.0f}; from there on the comparison also "
            "shows the smaller cache, not the speed of the numbers alone."
        )
    if not need and most >= TIGHT_KV * own:
        return (
            f"Starved baseline: its KV cache would hold {own:,} tokens and {best}'s {most:,}, "
            f"{most / own:.1f} times as many; at high load the comparison also shows that."
        )
    return None


def _largest_load(study: Study) -> tuple[int, float]:
    """Return the load point that needs the most KV cache, and the tokens it needs."""
    loads = [(0, 0.0)]
    for workload in study.workloads.values():
        tokens = tokens_of(workload.dataset)
        if tokens:
            loads += [(level, level * sum(tokens)) for level in workload.concurrency]
    return max(loads, key=lambda load: load[1])
