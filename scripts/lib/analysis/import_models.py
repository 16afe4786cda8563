"""The import file: measurements that somebody already has, put into words a study is made of.

Documented for users in ``docs/import.md``. Paths count from the import file's folder. Whatever
is left out is "not measured"; nothing is filled in.
"""

from __future__ import annotations

import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from scripts.lib.analysis.import_numbers import Amount, Count, ImportPoint
from scripts.lib.base.schema import Commit, Name, Sha256, Strict
from scripts.lib.engine.startup import Failure
from scripts.lib.study.models import Environment, Flags, Price, Slo


class ImportStartup(Strict):
    """What somebody read off a start-up log by hand; a log file says it better."""

    vllm_version: str | None = None
    quantization: str | None = None
    kernels: list[str] = []
    scheme: str | None = None
    weights_gib: Amount | None = None
    kv_cache_tokens: Count | None = None
    max_concurrency: Amount | None = None
    max_concurrency_tokens: Count | None = None
    dtype: str | None = None
    kv_cache_dtype: str | None = None
    attention_backend: str | None = None
    model_load_s: Amount | None = None
    ready_s: Amount | None = None
    max_model_len: Count | None = None


class ImportCheckpoint(Strict):
    """What was served: as much as is known."""

    repo: str | None = Field(default=None, description="owner/name on the hub, or any name")
    revision: Commit | None = None
    folder: str | None = Field(
        default=None, description="The checkpoint itself: its sizes and hashes are then read."
    )
    config: str | dict[str, Any] | None = Field(
        default=None, description="config.json: its path or its content."
    )
    quantization_config: dict[str, Any] | None = Field(
        default=None, description="That part of config.json alone, as for quant_method: gptq."
    )
    dtype: str | None = Field(default=None, description="bfloat16, ... where not quantized")
    scheme: str | None = Field(
        default=None, description="bf16, w8a8-fp8, w4a16, ... when no configuration is at hand"
    )
    weight_bytes: Annotated[int, Field(gt=0)] | None = None
    parameters: Annotated[int, Field(gt=0)] | None = Field(
        default=None, description="For the ideal size: parameters x bits / 8."
    )
    dummy_weights: bool = False

    @model_validator(mode="after")
    def _one_description(self) -> ImportCheckpoint:
        names = ("folder", "config", "quantization_config", "scheme")
        given = [name for name in names if getattr(self, name)]
        if len(given) > 1:
            raise ValueError(f"give one of {', '.join(names)}, not {' and '.join(given)}")
        if self.revision and not self.repo:
            raise ValueError("a revision needs its repo")
        return self


class ImportVariant(Strict):
    """One variant and all that is known of it."""

    label: str | None = None
    checkpoint: ImportCheckpoint = ImportCheckpoint()
    dtype: Literal["auto", "bfloat16", "float16", "float32"] | None = None
    quantization: str | None = None
    kv_cache_dtype: str | None = None
    max_model_len: int | None = Field(default=None, gt=0)
    gpu_memory_utilization: float | None = Field(default=None, gt=0, le=1)
    tensor_parallel_size: int = Field(default=1, gt=0)
    pipeline_parallel_size: int = Field(default=1, gt=0)
    data_parallel_size: int = Field(default=1, gt=0)
    enable_expert_parallel: bool = False
    enable_prefix_caching: bool | None = None
    speculative_config: dict[str, object] | None = None
    engine_args: Flags = {}
    env: Environment = {}
    simplicity: int = 0
    command: list[str] | str | None = Field(default=None, description="How it was served.")
    log: str | None = Field(default=None, description="The server's log file.")
    log_text: str | None = Field(default=None, description="Or an excerpt of it.")
    startup: ImportStartup = ImportStartup()
    metrics: str | None = Field(
        default=None, description="One scrape of /metrics taken after all points."
    )
    points: list[ImportPoint] = []
    failure: Failure | None = Field(default=None, description="Why it could not be measured.")

    @model_validator(mode="after")
    def _one_log(self) -> ImportVariant:
        if self.log and self.log_text:
            raise ValueError("give log or log_text, not both")
        return self


class ImportHost(Strict):
    """The machine, as far as it is known."""

    gpu: str | None = None
    gpus: int = Field(default=1, gt=0)
    memory_mib: int | None = Field(default=None, gt=0)
    compute_capability: str | None = None
    driver: str | None = None
    cuda_driver: str | None = None
    cpu: str | None = None
    cores: int | None = Field(default=None, gt=0)
    memory_gib: float | None = Field(default=None, gt=0)
    os: str | None = None
    python: str | None = None

    @model_validator(mode="after")
    def _whole_gpu(self) -> ImportHost:
        missing = [n for n in ("memory_mib", "compute_capability") if getattr(self, n) is None]
        if self.gpu and missing:
            raise ValueError(
                f"a GPU needs {' and '.join(missing)} (nvidia-smi --query-gpu=name,memory.total,"
                "driver_version,compute_cap --format=csv)"
            )
        return self


class ImportWorkload(Strict):
    """What was sent."""

    name: Name = "imported"
    dataset: str = Field(description="The data set's file or name.")
    dataset_sha256: Sha256 | None = None
    endpoint: Literal["completions", "chat"] | None = None
    temperature: Amount | None = None
    ignore_eos: bool | None = None
    warmup_requests: Count | None = None
    seed: int | None = None

    @property
    def not_recorded(self) -> list[str]:
        """The settings that the import file leaves out."""
        names = ("endpoint", "temperature", "ignore_eos", "seed")
        return [name for name in names if getattr(self, name) is None]


class ImportQuestion(Strict):
    """One question whose answers were compared."""

    axis: str | None = Field(default=None, description="Its name serves if there is none.")
    prompt: str | None = None
    expected: str | None = Field(default=None, description="None: only compared with another.")
    answers: dict[str, str] = Field(default={}, description="Variant -> what it answered.")
    passed: dict[str, bool] = Field(
        default={}, description="Variant -> graded by hand; stands before `expected`."
    )
    similarity_to_baseline: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(
        default={}, description="Variant -> 0 to 1."
    )


Table = dict[float, dict[Name, float]]
"""Load level -> variant -> value, as tables are published."""


class ImportNote(Strict):
    """``results/<study>/imported.json``: says that the study was imported, and from what."""

    source: str
    measured_at: str | None = Field(default=None, description="ISO 8601, as exact as known.")
    hours: float | None = None


class ImportStudy(Strict):
    """A whole import file."""

    study: Name
    title: str | None = None
    source: str = Field(description="Where these measurements come from.")
    measured_at: datetime.date | None = None
    hours: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="How long the machine was used, for the study's cost."
    )
    baseline: str
    engine_versions: dict[str, str] = Field(default={}, description="vllm, torch, ...")
    host: ImportHost | None = None
    workload: ImportWorkload
    variants: dict[Name, ImportVariant] = Field(min_length=1)
    requests: dict[float, Count] = Field(
        default={}, description="Requests sent at each level of `tables`."
    )
    tables: dict[str, Table] = Field(
        default={}, description="Typed numbers by metric, then concurrency, then variant."
    )
    questions: dict[str, ImportQuestion] = {}
    quality_margin: float = Field(default=0.05, ge=0, lt=1)
    slo: Slo = Field(
        default=Slo(success_rate=None, oom=None), description="Left out: no limits are judged."
    )
    price: Price | None = None
    on_degraded: Literal["warn", "fail", "skip"] = "warn"

    @model_validator(mode="after")
    def _names_exist(self) -> ImportStudy:
        if self.baseline not in self.variants:
            known = ", ".join(self.variants)
            raise ValueError(f'baseline is "{self.baseline}"; the variants are {known}')
        for metric, table in self.tables.items():
            for level, values in table.items():
                self._known(values, f"tables.{metric}.{level:g}")
        for name, question in self.questions.items():
            for part in (question.answers, question.passed, question.similarity_to_baseline):
                self._known(part, f"questions.{name}")
        return self

    def _known(self, names: dict[str, Any], where: str) -> None:
        for name in names:
            if name not in self.variants:
                known = ", ".join(self.variants)
                raise ValueError(f'{where}: "{name}" is no variant of this file ({known})')

    def points_of(self, variant: str) -> list[ImportPoint]:
        """Return a variant's points: its own, and those of the tables put together."""
        levels: dict[float, dict[str, Any]] = {}
        for metric, table in self.tables.items():
            for level, values in table.items():
                if variant in values:
                    levels.setdefault(level, {})[metric] = values[variant]
        typed = [
            ImportPoint.model_validate(
                {"concurrency": level, "requests": self.requests.get(level), **numbers}
            )
            for level, numbers in sorted(levels.items())
        ]
        return [*self.variants[variant].points, *typed]
