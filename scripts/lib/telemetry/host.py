"""What machine this is (``host.json``)."""

from __future__ import annotations

from pydantic import Field

from scripts.lib.base.schema import SCHEMA_VERSION, Strict


class Gpu(Strict):
    """One GPU as NVML describes it."""

    index: int
    name: str
    memory_mib: int
    compute_capability: str = Field(description='e.g. "8.9"')
    power_limit_w: float | None = None
    uuid_hash: str | None = Field(default=None, description="Short hash of the UUID.")


class Cpu(Strict):
    """The processor."""

    model: str
    physical_cores: int | None
    logical_cores: int | None = Field(description="None: not recorded (an imported study).")
    usable_cores: int | None = Field(description="Cores this process may use (affinity, cgroup).")
    flags: list[str] = Field(default=[], description="The instruction sets that matter.")


class Host(Strict):
    """The machine of a study."""

    schema_version: int = SCHEMA_VERSION
    gpus: list[Gpu]
    driver: str | None = None
    cuda_driver: str | None = Field(default=None, description="CUDA version of the driver.")
    cpu: Cpu
    memory_gib: float | None = Field(description="None: not recorded (an imported study).")
    os: str
    python: str
    no_gpu_reason: str | None = Field(default=None, description="Why NVML found none.")
