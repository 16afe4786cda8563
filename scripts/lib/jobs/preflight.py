"""Checks that cost a second and save a quarter of an hour: before a server starts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import psutil

from scripts.lib.base.schema import SCHEMA_VERSION, Strict
from scripts.lib.jobs.serving import ServedVariant
from scripts.lib.telemetry.host import Host

RESULTS_GIB = 1.0
"""Room for logs and raw records: a session writes some 10 MB."""
ENGINE_MEMORY_GIB = 2.0
"""What vLLM's processes hold beside the weights and the KV cache (CPU build, 0.32: 1.9 GiB)."""


class PreflightError(ValueError):
    """Something that would stop a server later; the message has a sentence for each."""


class Preflight(Strict):
    """``preflight/<variant>.json``: what was checked, and what to look out for."""

    schema_version: int = SCHEMA_VERSION
    variant: str
    free_disk_gib: float
    available_memory_gib: float
    weights_gib: float | None
    warnings: list[str]

    @property
    def summary(self) -> str:
        """What was found, in one line."""
        weights = "no" if self.weights_gib is None else f"{self.weights_gib} GiB of"
        return (
            f"{weights} weights; {self.free_disk_gib} GiB of disk and "
            f"{self.available_memory_gib} GiB of memory are free"
        )


def check_machine(served: ServedVariant, host: Host) -> Preflight:
    """Check disk, memory and the checkpoint's files for one variant.

    Raises:
        PreflightError: with a sentence for each thing that would stop its server later.
    """
    preflight = Preflight(
        variant=served.name,
        free_disk_gib=round(shutil.disk_usage(served.project).free / 2**30, 1),
        available_memory_gib=round(psutil.virtual_memory().available / 2**30, 1),
        weights_gib=_gib(served.manifest.real_bytes),
        warnings=served.manifest.disagreements,
    )
    problems = [*_disk(preflight), *_missing(served), *_weightless(served)]
    problems += _memory(served, host, preflight)
    if problems:
        raise PreflightError("; ".join(problems))
    return preflight


def _gib(count: int | None) -> float | None:
    return None if count is None else round(count / 2**30, 3)


def _disk(preflight: Preflight) -> Iterator[str]:
    if preflight.free_disk_gib < RESULTS_GIB:
        yield (
            f"only {preflight.free_disk_gib} GiB of disk are free and the results need about "
            f"{RESULTS_GIB}; make room (resources/ can be deleted at any time)"
        )


def _missing(served: ServedVariant) -> Iterator[str]:
    manifest = served.manifest
    for file in manifest.files:
        path = served.model_folder / file.path
        if not path.is_file() or path.stat().st_size != file.bytes:
            yield (
                f"{manifest.folder}/{file.path} is missing or has another size than when "
                f"checkpoint {manifest.name} was made; delete "
                f"results/*/checkpoints/{manifest.name}.json to have it made again"
            )
            return


def _weightless(served: ServedVariant) -> Iterator[str]:
    """A folder without weights suits random weights, and a server elsewhere that has its own."""
    if not (served.manifest.real_bytes or served.random_weights or served.engine.address):
        yield (
            f"{served.manifest.folder}, the checkpoint of variant {served.name}, holds no weights "
            "(*.safetensors, *.bin): give a folder with weights, or engine_args: "
            "{load-format: dummy} to have the engine make random ones"
        )


def _memory(served: ServedVariant, host: Host, preflight: Preflight) -> Iterator[str]:
    """On a CPU host, weights and KV cache must fit into what is available now."""
    if host.gpus or served.engine.address:
        return
    settings = {**served.engine.env, **served.variant.env}
    kv_gib = float(settings.get("VLLM_CPU_KVCACHE_SPACE", 0))
    weights_gib = preflight.weights_gib or 0
    needed = weights_gib + kv_gib + ENGINE_MEMORY_GIB
    if needed > preflight.available_memory_gib:
        yield (
            f"variant {served.name} needs about {needed:.1f} GiB of memory "
            f"({weights_gib:.1f} weights, {kv_gib:.1f} KV cache, "
            f"{ENGINE_MEMORY_GIB:.1f} engine) and {preflight.available_memory_gib} are "
            "available; lower VLLM_CPU_KVCACHE_SPACE"
        )
