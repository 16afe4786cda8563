"""The table of GPUs, and the device that a plan is for."""

from __future__ import annotations

from functools import cache
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field

from scripts.lib.base.schema import Strict
from scripts.lib.plan.tables import PlanError, reference
from scripts.lib.study.gpu_names import gpu_problem, table_name
from scripts.lib.study.models import Engine, HostOverride
from scripts.lib.telemetry.host import Gpu, Host

GIB = 2**30
MIB = 2**20
ENGINE_SHARE = 0.985
"""What CUDA reports of NVML's memory: 0.980 (L4) to 0.996 (H200) where public logs show both."""


class GpuSpec(Strict):
    """One row of ``config/reference/gpus.yaml``."""

    name: str
    aliases: list[str] = []
    vendor: Literal["nvidia", "amd"]
    memory_mib: int
    engine_memory_gib: float | None = None
    engine_memory_source: str | None = None
    bandwidth_gb_s: float
    compute_capability: str | None = None
    architecture: str | None = None
    dense_tflops: dict[str, float]
    source: str
    note: str | None = None


class Device(Strict):
    """What a variant would run on: one GPU of several alike, the CPU, or nothing that is known."""

    kind: Literal["cuda", "rocm", "cpu", "none"]
    name: str
    count: int = 1
    capability: str | None = None
    architecture: str | None = None
    memory_bytes: int | None = Field(default=None, description="As the engine sees it.")
    memory_how: str = ""
    bandwidth_gb_s: float | None = None
    dense_tflops: dict[str, float] = {}
    cpu_flags: list[str] = []
    source: str | None = None


@cache
def gpu_table() -> list[GpuSpec]:
    """Return the table of GPUs."""
    return [GpuSpec.model_validate(row) for row in reference("gpus")]


def find_gpu(name: str) -> GpuSpec | None:
    """Return the GPU of that name, spelt as people or NVML spell it; None: not in the table."""
    known = table_name(name)
    return next((gpu for gpu in gpu_table() if gpu.name == known), None)


def named_gpu(name: str) -> GpuSpec:
    """Return the GPU of that name.

    Raises:
        PlanError: It is not in the table, or the name stands for several.
    """
    found = find_gpu(name)
    if found is None:
        raise PlanError(gpu_problem(name))
    return found


def device_of(host: Host | None, override: HostOverride | None, engine: Engine) -> Device:
    """Return the device that ``engine`` would use: the named GPU, the host's GPUs, or its CPU.

    Raises:
        PlanError: The study names a GPU that is not in the table.
    """
    if override:
        return _from_table(named_gpu(override.gpu), override.count)
    if engine.address and not _is_here(engine.address):
        return Device(kind="none", name=f"the machine of {engine.address}")
    if host and host.gpus and not engine.is_cpu_build:
        return _from_nvml(host.gpus)
    cpu_engine = engine.is_cpu_build or not engine.environment
    if host and host.memory_gib is not None and cpu_engine:
        return Device(
            kind="cpu",
            name=host.cpu.model,
            memory_bytes=int(host.memory_gib * GIB),
            memory_how="the machine's memory",
            cpu_flags=host.cpu.flags,
        )
    return Device(kind="none", name="no GPU found")


def _is_here(address: str) -> bool:
    return urlsplit(address).hostname in ("localhost", "127.0.0.1", "::1")


def _from_table(gpu: GpuSpec, count: int) -> Device:
    return Device(
        kind="cuda" if gpu.vendor == "nvidia" else "rocm",
        name=gpu.name,
        count=count,
        capability=gpu.compute_capability,
        architecture=gpu.architecture,
        bandwidth_gb_s=gpu.bandwidth_gb_s,
        dense_tflops=gpu.dense_tflops,
        source=gpu.source,
        **_engine_memory(gpu.memory_mib, gpu),
    )


def _from_nvml(gpus: list[Gpu]) -> Device:
    first, spec = gpus[0], find_gpu(gpus[0].name)
    alike = [gpu for gpu in gpus if gpu.name == first.name]
    return Device(
        kind="cuda",
        name=first.name,
        count=len(alike),
        capability=first.compute_capability,
        bandwidth_gb_s=spec.bandwidth_gb_s if spec else None,
        dense_tflops=spec.dense_tflops if spec else {},
        source=spec.source if spec else None,
        **_engine_memory(first.memory_mib, spec),
    )


def _engine_memory(memory_mib: int, spec: GpuSpec | None) -> dict[str, object]:
    """Return the bytes CUDA reports; a row's figure holds for cards of the same NVML memory."""
    if spec and spec.engine_memory_gib and abs(memory_mib / spec.memory_mib - 1) < 0.01:
        how = f"{spec.engine_memory_gib} GiB as CUDA reports it ({spec.engine_memory_source})"
        return {"memory_bytes": int(spec.engine_memory_gib * GIB), "memory_how": how}
    how = f"{ENGINE_SHARE:.1%} of {memory_mib} MiB, the share that CUDA reports of a card's memory"
    return {"memory_bytes": int(memory_mib * MIB * ENGINE_SHARE), "memory_how": how}
