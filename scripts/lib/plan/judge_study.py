"""The verdict on one variant of a study, from its starts."""

from __future__ import annotations

from scripts.lib.checkpoints.manifest import Manifest
from scripts.lib.engine.startup import LogFacts, Startup
from scripts.lib.plan.draft import Draft, make_draft, served_scheme
from scripts.lib.plan.gpus import GIB
from scripts.lib.plan.models import Verdict
from scripts.lib.plan.tables import PlanError
from scripts.lib.plan.verdict import judge, worst
from scripts.lib.plan.weights_evidence import Sizes, sizes_of
from scripts.lib.study.models import Study
from scripts.lib.telemetry.host import Host

DIMENSIONS = ("hidden_size", "intermediate_size", "layers", "attention_heads")


def judge_variant(
    study: Study,
    variant: str,
    host: Host | None,
    manifest: Manifest | None,
    startups: list[Startup],
    baseline_startups: list[Startup],
    *,
    speed_ratio: float | None = None,
    baseline_manifest: Manifest | None = None,
) -> Verdict:
    """Judge a variant over all its starts; the worst one counts.

    The rules are asked with the manifest's facts and the version that the log prints, which are
    what really ran. A start that never became ready counts only where none did. A server without
    any readable log is ``unknown``. The baseline's size and speed are no evidence on itself, nor
    where its manifest shows another model.

    Raises:
        PlanError: The study has no such variant, or names an unknown GPU.
    """
    if variant not in study.variants:
        known = ", ".join(study.variants)
        raise PlanError(f'the study has no variant "{variant}"; it has {known}')
    if host and (host.gpus or study.engine_of(variant).is_cpu_build):
        study = study.model_copy(update={"host": None})  # judged is what ran, not what was planned
    if variant == study.baseline or _another_model(manifest, baseline_manifest):
        baseline_startups, speed_ratio = [], None
    baseline = next((s.facts for s in baseline_startups if s.facts.weights_gib), None)
    ready = [startup for startup in startups if startup.ready or startup.facts.ready]
    started: list[LogFacts | None] = [startup.facts for startup in ready or startups]
    verdicts = [
        _judge_start(study, variant, host, manifest, facts, baseline, speed_ratio)
        for facts in started or [None]
    ]
    return worst(verdicts)


def _judge_start(
    study: Study,
    variant: str,
    host: Host | None,
    manifest: Manifest | None,
    facts: LogFacts | None,
    baseline: LogFacts | None,
    speed_ratio: float | None,
) -> Verdict:
    read = facts if facts is not None and _says_something(facts) else None
    version = facts.vllm_version if facts else None
    draft = make_draft(study, variant, host, version, manifest=manifest)
    settings = draft.settings
    gpus = settings.tensor_parallel * settings.pipeline_parallel
    # Loaded otherwise than stored: the tensors on disk do not say how large the loaded ones are.
    changed = manifest is not None and served_scheme(manifest.scheme, settings) != manifest.scheme
    sizes = (None if changed else sizes_of(manifest, gpus)) or _counted(draft, gpus)
    with_draft_model = settings.text("speculative-config") is not None
    return judge(
        variant,
        draft.expected,
        None if with_draft_model else manifest,
        read,
        promised=draft.scheme.scheme if draft.scheme else None,
        gpus=gpus,
        sizes=None if with_draft_model else sizes,
        baseline=baseline,
        speed_ratio=speed_ratio,
        kv_cache_dtype=settings.kv_cache_dtype,
    )


def _counted(draft: Draft, gpus: int) -> Sizes | None:
    """Return the sizes counted from the shape, for a checkpoint whose tensors say nothing."""
    counts = draft.facts.counts
    if draft.weights is None or counts is None:
        return None
    return Sizes(draft.weights.real / gpus / GIB, counts.total * 2 / gpus / GIB)


def _another_model(one: Manifest | None, other: Manifest | None) -> bool:
    """Say if two checkpoints are known to be of models with different dimensions."""
    if one is None or other is None:
        return False
    pairs = [(getattr(one.shape, name), getattr(other.shape, name)) for name in DIMENSIONS]
    return any(None not in pair and pair[0] != pair[1] for pair in pairs)


def _says_something(facts: LogFacts) -> bool:
    """Say if anything tells what ran: a server without a log leaves every fact but these empty."""
    return facts != LogFacts(ready=facts.ready, vllm_version=facts.vllm_version)
