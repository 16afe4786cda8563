"""The parts of the summary that describe what was run: engines, variants, workloads, limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scripts.lib.analysis.material import Material
from scripts.lib.analysis.sanitize import clean_command, clean_environment, clean_text
from scripts.lib.analysis.stamps import stamp_of
from scripts.lib.analysis.summary import EngineView, SloView, VariantView, WorkloadView
from scripts.lib.analysis.wording import listed, number, percent
from scripts.lib.engine.environment import EngineInfo
from scripts.lib.engine.flags import serving_flags
from scripts.lib.load.results import LoadResult
from scripts.lib.study.models import Checkpoint, HubFile, Slo, Workload
from scripts.lib.study.slo import PERCENTILE_FLOORS

Lengths = Mapping[tuple[str, str], Mapping[str, Mapping[str, float]]]
"""(variant, workload) -> {"input": {...}, "output": {...}}, each min, p50, mean, p95, max."""


def engine_view(info: EngineInfo, vllm_version: str | None) -> EngineView:
    """Return an engine; the version its log names counts where nothing else tells."""
    versions = dict(info.versions)
    if vllm_version and not any(name.startswith("vllm") for name in versions):
        versions["vllm"] = vllm_version
    return EngineView.model_validate(
        {
            "name": info.name,
            "kind": info.kind,
            "versions": versions,
            "lock": info.lock,
            "lock_sha256": info.lock_sha256,
        }
    )


def variant_view(material: Material, name: str, project: Path) -> VariantView:
    """Return one variant as it is named and served."""
    study = material.study
    variant = study.variants[name]
    manifest = material.manifests.get(variant.checkpoint)
    startup = material.startups.get(name)
    engine = study.engine_of(name)
    environment = startup.environment if startup else {}
    return VariantView(
        name=name,
        label=variant.label or name,
        stamp=stamp_of(material.verdicts.get(name)),
        is_baseline=name == study.baseline,
        checkpoint=variant.checkpoint,
        checkpoint_source=_source(material, name, project),
        scheme_words=manifest.scheme.words if manifest else "not known: no manifest",
        engine=engine.name,
        serving_flags=clean_command(serving_flags(variant, engine), project),
        environment=clean_environment(environment, project),
        command=clean_command(startup.command, project) if startup and startup.command else None,
        gpus=variant.gpus if material.host is None or material.host.gpus else 0,
        checkpoint_bytes=manifest.real_bytes if manifest else None,
        ideal_bytes=manifest.ideal_bytes if manifest else None,
        manifest=f"checkpoints/{variant.checkpoint}.json" if manifest else "",
    )


def _source(material: Material, name: str, project: Path) -> str:
    """Return where a variant's checkpoint comes from; an import only gives it a name."""
    checkpoint = material.study.checkpoints[material.study.variants[name].checkpoint]
    loads = [load for (v, _), found in material.loads.items() if v == name for load in found]
    if checkpoint.path and any(map(is_imported, loads)):
        return f"{clean_text(checkpoint.path, project)}, as the import file calls it"
    return source_words(checkpoint, project)


def source_words(checkpoint: Checkpoint, project: Path) -> str:
    """Return where a checkpoint comes from, in words."""
    if checkpoint.hub:
        return f"{checkpoint.hub.repo} at commit {checkpoint.hub.revision}, Hugging Face hub"
    if checkpoint.path:
        return f"folder {clean_text(checkpoint.path, project)}"
    if checkpoint.package:
        package = checkpoint.package
        return f"{package.file} of the Python package {package.distribution}, as {package.dtype}"
    if checkpoint.quantize:
        made = checkpoint.quantize
        groups = f", groups of {made.group_size}" if made.group_size else ""
        return f"made from {made.from_} by llm-compressor: {made.scheme}, {made.method}{groups}"
    assert checkpoint.dummy is not None
    return f"random weights in the shape of {clean_text(checkpoint.dummy.config, project)}"


def workload_view(material: Material, name: str, lengths: Lengths) -> WorkloadView:
    """Return one workload as it really was."""
    spec = material.study.workloads[name]
    loads = [r for (_, w), results in material.loads.items() if w == name for r in results]
    measured = next((load for load in loads if load.dataset), None)
    unknown = settings_not_recorded(measured)
    path = f"/v1/{'chat/completions' if spec.endpoint == 'chat' else 'completions'}"
    decoding = {"temperature": spec.temperature, "ignore_eos": spec.ignore_eos}
    inputs = [by["input"] for (_, w), by in lengths.items() if w == name and by.get("input")]
    return WorkloadView(
        name=name,
        dataset_words=dataset_words(spec, measured),
        dataset_sha256=_dataset_hash(spec, measured),
        endpoint="not recorded" if "endpoint" in unknown else path,
        decoding={key: None if key in unknown else value for key, value in decoding.items()},
        load_words=load_words(spec, counts_known=_counts_known(spec, measured)),
        warmup_words=_warmup_words(spec, loads),
        repetitions=spec.repetitions,
        sessions=spec.sessions,
        seed=None if "seed" in unknown else spec.seed,
        input_tokens=dict(inputs[0]) if inputs else {},
        output_tokens={
            variant: dict(by["output"])
            for (variant, w), by in lengths.items()
            if w == name and by.get("output")
        },
    )


def is_imported(measured: LoadResult | None) -> bool:
    """Return whether a load result was imported, so that the study's settings may be defaults."""
    return measured is not None and measured.dataset.get("kind") == "imported"


def settings_not_recorded(measured: LoadResult | None) -> set[str]:
    """Return the settings of the workload that nobody recorded; empty where we measured."""
    names = measured.dataset.get("not_recorded") if measured else None
    return {str(name) for name in names} if isinstance(names, list) else set()


def _counts_known(spec: Workload, measured: LoadResult | None) -> bool:
    return not is_imported(measured) or spec.requests_per_point is not None


def dataset_words(spec: Workload, measured: LoadResult | None) -> str:
    """Return the data set in words, with how many different prompts were really sent."""
    data = spec.dataset
    if measured is not None and is_imported(measured):
        return _file_name(str(measured.dataset["file"]))
    if data.random:
        kind = f"random tokens, {data.random.input_tokens} in and {data.random.output_tokens} out"
    elif data.prefix:
        kind = (
            f"random tokens with {data.prefix.prefixes} shared prefix(es) of "
            f"{data.prefix.prefix_tokens} tokens, {data.prefix.suffix_tokens} more in and "
            f"{data.prefix.output_tokens} out"
        )
    elif data.sharegpt:
        name = data.sharegpt
        where = f"{name.repo}: {name.file}" if isinstance(name, HubFile) else _file_name(name)
        kind = f"conversations in ShareGPT format ({where})"
    elif data.jsonl:
        kind = f"prompts of {_file_name(data.jsonl)}"
    else:
        kind = f"trace {_file_name(data.trace or '')}"
    info: Mapping[str, Any] = measured.dataset if measured else {}
    distinct = info.get("distinct_prompts")
    text = f"{kind}; {distinct} different prompts" if distinct else kind
    return f"{text}; {info['warning']}" if info.get("warning") else text


def _file_name(name: str) -> str:
    """Return a file as the study names it, without the folders of a machine path."""
    return Path(name).name if Path(name).is_absolute() else name


def _dataset_hash(spec: Workload, measured: LoadResult | None) -> str | None:
    if measured is not None and isinstance(measured.dataset.get("sha256"), str):
        return str(measured.dataset["sha256"])
    return spec.dataset.sharegpt.sha256 if isinstance(spec.dataset.sharegpt, HubFile) else None


def load_words(spec: Workload, *, counts_known: bool = True) -> str:
    """Return the load points in words; ``counts_known``: how many requests each one sent."""
    counts = [spec.requests_at(i) for i in range(len(spec.concurrency) or len(spec.rate))]
    sent = f"{listed([f'{n:,}' for n in counts if n is not None])} requests"
    if not counts_known:
        sent = "how many requests is not recorded"
    if spec.concurrency:
        levels = listed([str(c) for c in spec.concurrency])
        return f"closed loop at concurrency {levels}; {sent}"
    if spec.rate:
        shape = f" (burstiness {number(spec.arrival.burstiness)})"
        process = spec.arrival.process + (shape if spec.arrival.process == "gamma" else "")
        cap = f", never more than {spec.max_concurrency} in flight" if spec.max_concurrency else ""
        levels = listed([number(rate) for rate in spec.rate])
        return f"open loop, {process} arrivals at {levels} requests/s{cap}; {sent}"
    if spec.ramp:
        ramp = spec.ramp
        return (
            f"open loop, {ramp.shape} ramp from {number(ramp.start_rate)} to "
            f"{number(ramp.end_rate)} requests/s; {ramp.requests:,} requests"
        )
    return "open loop at the times of the trace"


def _warmup_words(spec: Workload, loads: Sequence[LoadResult]) -> str:
    imported = next((load for load in loads if is_imported(load)), None)
    if imported is not None:
        told = imported.dataset.get("warmup_requests")
        return "not recorded" if told is None else f"{told} requests, as the import file says"
    done = next((load.warmup for load in loads if load.warmup), None)
    if done and "requests" in done:
        failed = f", {done['failed']} failed" if done.get("failed") else ""
        return f"{done['requests']} uncounted requests before the first point{failed}"
    if spec.warmup_requests is not None and loads:
        return f"{spec.warmup_requests} uncounted requests asked for; not recorded"
    return "not recorded"


def slo_views(slo: Slo) -> list[SloView]:
    """Return every limit that is set, in words and data."""
    views = []
    if slo.success_rate is not None:
        words = f"at least {percent(slo.success_rate)} of requests complete"
        views.append(_slo_view("success_rate", words, slo.success_rate))
    for limit in slo.latency_limits:
        statistic = {"mean": "mean"}.get(limit.statistic, limit.statistic.upper())
        words = f"{limit.metric.upper()} {statistic} at most {number(limit.limit_ms)} ms"
        needed = PERCENTILE_FLOORS.get(limit.statistic)
        views.append(_slo_view(limit.key, words, limit.limit_ms, needed))
    if slo.kv_usage_max is not None:
        words = f"KV-cache usage at most {percent(slo.kv_usage_max)}"
        views.append(_slo_view("kv_usage_max", words, slo.kv_usage_max))
    if slo.preemptions_max is not None:
        words = f"at most {slo.preemptions_max} preemptions in a load point"
        views.append(_slo_view("preemptions_max", words, slo.preemptions_max))
    if slo.oom is not None:
        words = f"at most {slo.oom} out-of-memory errors" if slo.oom else "no out-of-memory error"
        views.append(_slo_view("oom", words, slo.oom))
    return views


def _slo_view(key: str, words: str, limit: float, needed: int | None = None) -> SloView:
    return SloView(key=key, words=words, limit=limit, requests_needed=needed)
