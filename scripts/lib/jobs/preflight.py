"""Checks that cost a second and save a quarter of an hour: before the first server starts."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import psutil

from scripts.lib.base.schema import SCHEMA_VERSION, Strict
from scripts.lib.checkpoints.manifest import Manifest
from scripts.lib.study.models import Study
from scripts.lib.telemetry.host import Host

RESULTS_GIB = 1.0
"""Room for logs and raw records: a session writes some 10 MB."""
ENGINE_MEMORY_GIB = 2.0
"""What vLLM's processes hold beside the weights and the KV cache (CPU build, 0.32: 1.9 GiB)."""


class Preflight(Strict):
    """``preflight.json``: what was checked, and what to look out for."""

    schema_version: int = SCHEMA_VERSION
    free_disk_gib: float
    available_memory_gib: float
    checkpoints_gib: dict[str, float]
    warnings: list[str]


def check_machine(
    study: Study, host: Host, manifests: Iterable[Manifest], results: Path
) -> Preflight:
    """Check disk, memory and files.

    Raises:
        ValueError: with a sentence for each thing that would stop the study later.
    """
    found = list(manifests)
    preflight = Preflight(
        free_disk_gib=round(shutil.disk_usage(results).free / 2**30, 1),
        available_memory_gib=round(psutil.virtual_memory().available / 2**30, 1),
        checkpoints_gib={m.name: round(m.real_bytes / 2**30, 3) for m in found},
        warnings=[f"{m.name}: {sentence}" for m in found for sentence in m.disagreements],
    )
    problems = [*_disk(preflight), *_missing(found), *_memory(study, host, preflight)]
    if problems:
        raise ValueError("; ".join(problems))
    return preflight


def _disk(preflight: Preflight) -> Iterator[str]:
    if preflight.free_disk_gib < RESULTS_GIB:
        yield (
            f"only {preflight.free_disk_gib} GiB of disk are free and the results need about "
            f"{RESULTS_GIB}; make room (resources/ can be deleted at any time)"
        )


def _missing(manifests: Iterable[Manifest]) -> Iterator[str]:
    for manifest in manifests:
        for file in manifest.files:
            path = Path(manifest.folder) / file.path
            if not path.is_file() or path.stat().st_size != file.bytes:
                yield (
                    f"{path} is missing or has another size than when checkpoint "
                    f"{manifest.name} was made; delete results/*/checkpoints/{manifest.name}.json"
                )
                break


def _memory(study: Study, host: Host, preflight: Preflight) -> Iterator[str]:
    """On a CPU host, weights and KV cache must fit into what is available now."""
    if host.gpus:
        return
    for name, variant in study.variants.items():
        engine = study.engine_of(name)
        if engine.address:
            continue
        kv_gib = float({**engine.env, **variant.env}.get("VLLM_CPU_KVCACHE_SPACE", 0))
        weights = preflight.checkpoints_gib.get(variant.checkpoint, 0.0)
        needed = weights + kv_gib + ENGINE_MEMORY_GIB
        if needed > preflight.available_memory_gib:
            yield (
                f"variant {name} needs about {needed:.1f} GiB of memory ({weights:.1f} weights, "
                f"{kv_gib:.1f} KV cache, {ENGINE_MEMORY_GIB:.1f} engine) and "
                f"{preflight.available_memory_gib} are available; lower VLLM_CPU_KVCACHE_SPACE"
            )
