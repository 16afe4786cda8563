"""Finds out what machine this is."""

from __future__ import annotations

import hashlib
import os
import platform

import cpuinfo
import psutil
import pynvml

from scripts.lib.telemetry.host import Cpu, Gpu, Host

INSTRUCTION_SETS = (
    "avx2",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "avx_vnni",
    "amx_tile",
    "amx_int8",
    "amx_bf16",
    "amx_fp8",
    "asimd",
    "sve",
    "i8mm",
    "bf16",
)
"""CPU flags that choose vLLM's CPU kernels."""


def inspect_host() -> Host:
    """Describe this machine: GPUs through NVML, and the processor and memory."""
    gpus, driver, cuda, reason = _gpus()
    return Host(
        gpus=gpus,
        driver=driver,
        cuda_driver=cuda,
        cpu=_cpu(),
        memory_gib=round(psutil.virtual_memory().total / 2**30, 1),
        os=_os(),
        python=platform.python_version(),
        no_gpu_reason=reason,
    )


def _gpus() -> tuple[list[Gpu], str | None, str | None, str | None]:
    """Return the GPUs, the driver, its CUDA version, and why there are no GPUs."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return [], None, None, f"NVML: {error}"
    try:
        gpus = [_gpu(index) for index in range(pynvml.nvmlDeviceGetCount())]
        cuda = pynvml.nvmlSystemGetCudaDriverVersion_v2()
        version = f"{cuda // 1000}.{cuda % 1000 // 10}"
        return gpus, _text(pynvml.nvmlSystemGetDriverVersion()), version, None
    finally:
        pynvml.nvmlShutdown()


def _gpu(index: int) -> Gpu:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    major, minor = pynvml.nvmlDeviceGetCudaComputeCapability(handle)
    try:
        power: float | None = pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000
    except pynvml.NVMLError:
        power = None
    uuid = _text(pynvml.nvmlDeviceGetUUID(handle))
    return Gpu(
        index=index,
        name=_text(pynvml.nvmlDeviceGetName(handle)),
        memory_mib=pynvml.nvmlDeviceGetMemoryInfo(handle).total // 2**20,
        compute_capability=f"{major}.{minor}",
        power_limit_w=power,
        uuid_hash=hashlib.sha256(uuid.encode()).hexdigest()[:12],
    )


def _cpu() -> Cpu:
    info = cpuinfo.get_cpu_info()
    flags = set(info.get("flags", []))
    return Cpu(
        model=info.get("brand_raw") or platform.processor() or platform.machine(),
        physical_cores=psutil.cpu_count(logical=False),
        logical_cores=psutil.cpu_count(),
        usable_cores=len(os.sched_getaffinity(0)),
        flags=[flag for flag in INSTRUCTION_SETS if flag in flags],
    )


def _os() -> str:
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.platform()
    return f"{name}, kernel {platform.release()}"


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
