"""The parts of an imported study: its configuration, machine, checkpoints and server starts."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.lib.analysis.import_models import (
    ImportCheckpoint,
    ImportHost,
    ImportStudy,
    ImportVariant,
)
from scripts.lib.analysis.import_points import ImportProblem
from scripts.lib.analysis.sanitize import clean_command, clean_environment, clean_text
from scripts.lib.base.files import read_json
from scripts.lib.checkpoints.build import build_manifest
from scripts.lib.checkpoints.errors import CheckpointError
from scripts.lib.checkpoints.manifest import Manifest, Scheme, Shape
from scripts.lib.checkpoints.scheme import scheme_from_config
from scripts.lib.checkpoints.shape import shape_from_config
from scripts.lib.engine.log_reader import read_log
from scripts.lib.engine.startup import LogFacts, Startup
from scripts.lib.study.models import Study
from scripts.lib.telemetry.host import Cpu, Gpu, Host

ADDRESS = "http://localhost/imported"
"""Stands for the engine: nothing is started for an imported study, and host.json is the machine
on which it ran (of a server elsewhere the plan would not believe that)."""

VARIANT_KEYS = (
    "label",
    "dtype",
    "quantization",
    "kv_cache_dtype",
    "max_model_len",
    "gpu_memory_utilization",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "enable_expert_parallel",
    "enable_prefix_caching",
    "speculative_config",
    "engine_args",
    "env",
    "simplicity",
)


def study_of(given: ImportStudy, loads: dict[str, Sequence[float]]) -> Study:
    """Return the resolved study.

    Args:
        given: The import file.
        loads: ``concurrency`` and ``rate`` levels that were measured, ``counts`` of requests
            (one per level, empty if not known), ``repetitions`` and ``sessions`` (one number).
    """
    work = given.workload
    workload: dict[str, Any] = {
        "dataset": {"sharegpt": work.dataset},
        "concurrency": [int(level) for level in loads["concurrency"]],
        "rate": list(loads["rate"]),
        "repetitions": loads["repetitions"][0],
        "sessions": loads["sessions"][0],
        "warmup_requests": work.warmup_requests,
    }
    for name in ("endpoint", "temperature", "ignore_eos", "seed"):
        if getattr(work, name) is not None:
            workload[name] = getattr(work, name)
    if loads["counts"]:
        workload["requests_per_point"] = [int(count) for count in loads["counts"]]
    quality = {"non_inferiority_margin": given.quality_margin} if given.questions else None
    raw: dict[str, Any] = {
        "study": given.study,
        "title": given.title or f"{given.study} (imported)",
        "baseline": given.baseline,
        "engine": {"address": ADDRESS},
        "checkpoints": {n: _source(n, v.checkpoint) for n, v in given.variants.items()},
        "variants": {
            name: {"checkpoint": name, **{k: getattr(v, k) for k in VARIANT_KEYS}}
            for name, v in given.variants.items()
        },
        "workloads": {work.name: workload},
        "slo": given.slo.model_dump(),
        "quality": quality,
        "price": given.price.model_dump() if given.price else None,
        "on_degraded": given.on_degraded,
    }
    return Study.model_validate(raw)


def _source(name: str, checkpoint: ImportCheckpoint) -> dict[str, Any]:
    if checkpoint.repo and checkpoint.revision:
        return {"hub": {"repo": checkpoint.repo, "revision": checkpoint.revision}}
    return {"path": checkpoint.folder or checkpoint.repo or name}


def host_of(given: ImportHost | None) -> Host | None:
    """Return the machine; None where the import file says nothing of it."""
    if given is None:
        return None
    gpus = []
    if given.gpu:
        assert given.memory_mib is not None
        assert given.compute_capability is not None
        gpus = [
            Gpu(
                index=index,
                name=given.gpu,
                memory_mib=given.memory_mib,
                compute_capability=given.compute_capability,
            )
            for index in range(given.gpus)
        ]
    return Host(
        gpus=gpus,
        driver=given.driver,
        cuda_driver=given.cuda_driver,
        cpu=Cpu(
            model=given.cpu or "not recorded",
            physical_cores=given.cores,
            logical_cores=given.cores,
            usable_cores=given.cores,
        ),
        memory_gib=given.memory_gib,
        os=given.os or "not recorded",
        python=given.python or "not recorded",
        no_gpu_reason=None if gpus else "the import file names no GPU",
    )


def manifest_of(name: str, given: ImportCheckpoint, folder: Path) -> Manifest | None:
    """Return what is known of a checkpoint; None where nothing describes it.

    Raises:
        ImportProblem: if a file it names cannot be read.
    """
    told = given.repo or given.folder or name
    source: dict[str, object] = {"imported": clean_text(told, Path.cwd())}
    if given.folder:
        path = folder / given.folder
        try:
            return build_manifest(name, path, source, dummy_weights=given.dummy_weights)
        except (CheckpointError, OSError) as error:
            raise ImportProblem(f"variants.{name}.checkpoint.folder: {error}") from None
    config = _config(name, given, folder)
    if config is None and given.scheme is None:
        return None
    scheme = _scheme(given, config)
    ideal = None
    if given.parameters and scheme.weight_bits:
        ideal = round(given.parameters * scheme.weight_bits / 8)
    return Manifest(
        name=name,
        source=source,
        folder="",
        files=[],
        scheme=scheme,
        shape=shape_from_config(config) if config else Shape(),
        tensors=None,
        ideal_bytes=ideal,
        real_bytes=given.weight_bytes,
        dummy_weights=given.dummy_weights,
    )


def _config(name: str, given: ImportCheckpoint, folder: Path) -> dict[str, Any] | None:
    if isinstance(given.config, str):
        path = folder / given.config
        try:
            config = read_json(path)
        except (OSError, ValueError) as error:
            raise ImportProblem(
                f"{path} (variants.{name}.checkpoint.config): cannot be read: {error}"
            ) from None
        if not isinstance(config, dict):
            raise ImportProblem(f"{path}: is no config.json: it holds no keys")
        return config
    config = dict(given.config) if given.config else {}
    if given.quantization_config:
        config["quantization_config"] = given.quantization_config
    if given.dtype:
        config.setdefault("torch_dtype", given.dtype)
    return config or None


def _scheme(given: ImportCheckpoint, config: dict[str, Any] | None) -> Scheme:
    if given.scheme:
        bits = bits_of(given.scheme)
        words = f"{given.scheme}, as the import file says"
        return Scheme(scheme=given.scheme, weight_bits=bits, words=words)
    assert config is not None
    try:
        return scheme_from_config(config)
    except CheckpointError as error:
        raise ImportProblem(str(error)) from None


def bits_of(scheme: str) -> int | None:
    """Return the weight bits of a scheme's name, e.g. 4 of ``w4a16``; None if it says none."""
    digits = scheme[1:].split("a")[0] if scheme.startswith("w") else scheme.strip("bfp")
    return int(digits) if digits.isdigit() else None


def startup_of(
    name: str, given: ImportVariant, study: ImportStudy, folder: Path, served: bool
) -> tuple[Startup, Path | str | None]:
    """Return a variant's start, and its log (a file, or text).

    Facts that were typed by hand count where the log says nothing.

    Args:
        name: The variant.
        given: What the import file says of it.
        study: The whole import file.
        folder: Where relative paths start.
        served: Whether there are load points: then it was ready, whatever the log says.
    """
    read, log = _facts(name, given, folder)
    typed: dict[str, object] = {
        "vllm_version": study.engine_versions.get("vllm"),
        **given.startup.model_dump(exclude_none=True, exclude={"ready_s"}),
        "ready": served,
    }
    facts = read.filled(typed)
    ready = facts.ready
    command = given.command or []
    environment = {key: str(value) for key, value in given.env.items()}
    failure = None if ready else (given.failure or facts.failure)
    words = shlex.split(command) if isinstance(command, str) else command
    startup = Startup(
        variant=name,
        command=clean_command(words, Path.cwd()),
        environment=clean_environment(environment, Path.cwd()),
        started_at="not recorded",
        ready_s=given.startup.ready_s,
        ready=ready,
        facts=facts,
        typed=sorted(key for key in typed if getattr(facts, key) != getattr(read, key)),
        failure=failure,
    )
    return startup, log


def _facts(name: str, given: ImportVariant, folder: Path) -> tuple[LogFacts, Path | str | None]:
    if given.log_text:
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary) / "server.log"
            path.write_text(given.log_text, encoding="utf-8")
            return read_log(path), given.log_text
    if given.log:
        path = folder / given.log
        try:
            return read_log(path), path
        except (OSError, ValueError) as error:
            raise ImportProblem(f"{path} (variants.{name}.log): {error}") from None
    return LogFacts(), None
