"""The import file: measurements that somebody already has, put into words a study is made of.

Documented for users in ``docs/import.md``. Paths count from the import file's folder. Whatever
is left out is "not measured"; nothing is filled in.
"""

from __future__ import annotations

import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from scripts.lib.base.schema import Commit, Name, Sha256, Strict
from scripts.lib.engine.startup import Failure
from scripts.lib.study.models import Environment, Flags, Price, Slo

METRIC_ALIASES = {
    "output_tok_s": "output_throughput_tok_s",
    "output_throughput": "output_throughput_tok_s",
    "total_tok_s": "total_throughput_tok_s",
    "total_token_throughput": "total_throughput_tok_s",
    "duration": "duration_s",
    "num_prompts": "requests",
    "max_concurrency": "concurrency",
    "kv_usage": "kv_usage_peak",
    "preemption": "preemptions",
    "waiting": "waiting_peak",
}
"""Names people use for a typed number; ``mean_ttft_ms`` and ``p99_ttft_ms`` are known too."""

LATENCY_KEYS = tuple(
    f"{metric}_{statistic}_ms"
    for metric in ("ttft", "tpot", "itl", "e2el")
    for statistic in ("mean", "p50", "p90", "p95", "p99")
)


def canonical_key(key: str) -> str:
    """Return our name of a typed number, e.g. ``p99_ttft_ms`` -> ``ttft_p99_ms``."""
    if key in METRIC_ALIASES:
        return METRIC_ALIASES[key]
    parts = key.split("_")
    if len(parts) == 3 and parts[2] == "ms" and parts[1] in ("ttft", "tpot", "itl", "e2el"):
        statistic = "p50" if parts[0] == "median" else parts[0]
        return f"{parts[1]}_{statistic}_ms"
    return key


Amount = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]


class ImportPoint(Strict):
    """One load point: a result file of ``vllm bench serve``, or numbers typed by hand."""

    file: str | None = Field(default=None, description="JSON or printed table; read as it is.")
    concurrency: Annotated[int, Field(gt=0)] | None = None
    rate: Annotated[float, Field(gt=0)] | None = Field(default=None, description="requests/s")
    session: int = Field(default=1, gt=0, description="Which server start, if there were several.")
    requests: Count | None = Field(default=None, description="Sent; None: not known.")
    failed: Count | None = None
    oom: Count | None = Field(default=None, description="Requests that ended out of memory.")
    duration_s: Annotated[float, Field(gt=0)] | None = None
    input_tokens: Count | None = Field(default=None, description="Of all requests together.")
    output_tokens: Count | None = None
    request_throughput: Amount | None = None
    output_throughput_tok_s: Amount | None = None
    total_throughput_tok_s: Amount | None = None
    ttft_mean_ms: Amount | None = None
    ttft_p50_ms: Amount | None = None
    ttft_p90_ms: Amount | None = None
    ttft_p95_ms: Amount | None = None
    ttft_p99_ms: Amount | None = None
    tpot_mean_ms: Amount | None = None
    tpot_p50_ms: Amount | None = None
    tpot_p90_ms: Amount | None = None
    tpot_p95_ms: Amount | None = None
    tpot_p99_ms: Amount | None = None
    itl_mean_ms: Amount | None = None
    itl_p50_ms: Amount | None = None
    itl_p90_ms: Amount | None = None
    itl_p95_ms: Amount | None = None
    itl_p99_ms: Amount | None = None
    e2el_mean_ms: Amount | None = None
    e2el_p50_ms: Amount | None = None
    e2el_p90_ms: Amount | None = None
    e2el_p95_ms: Amount | None = None
    e2el_p99_ms: Amount | None = None
    queue_mean_ms: Amount | None = None
    queue_p95_ms: Amount | None = None
    kv_usage_peak: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None, description="0 to 1"
    )
    waiting_peak: Amount | None = None
    running_peak: Amount | None = None
    preemptions: Count | None = None
    gpu_memory_peak_mib: Amount | None = None
    power_mean_w: Amount | None = None
    valid: bool = True
    invalid_reasons: list[str] = []
    warnings: list[str] = []

    @model_validator(mode="before")
    @classmethod
    def _usual_names(cls, raw: Any) -> Any:  # noqa: ANN401 - input of any shape
        if not isinstance(raw, dict):
            return raw
        named: dict[str, Any] = {}
        for key, value in raw.items():
            own = canonical_key(str(key))
            if own in named:
                raise ValueError(f'"{own}" is given twice, once as "{key}"')
            named[own] = value
        return named

    @model_validator(mode="after")
    def _one_load(self) -> ImportPoint:
        if self.concurrency and self.rate:
            raise ValueError("give concurrency or rate, not both")
        if not (self.file or self.concurrency or self.rate):
            raise ValueError("give a file, or a concurrency (or rate) and the numbers at it")
        given = self.typed_numbers()
        if self.file and given:
            names = ", ".join(sorted(given))
            raise ValueError(f"{names}: a point with a file takes its numbers from there")
        if self.requests is not None and (self.failed or 0) > self.requests:
            raise ValueError(f"{self.failed} failed of {self.requests} requests is not possible")
        if not self.valid and not self.invalid_reasons:
            raise ValueError("an invalid point needs invalid_reasons")
        return self

    def typed_numbers(self) -> dict[str, float]:
        """Return the numbers that were typed by hand."""
        skipped = {"file", "concurrency", "rate", "session", "requests", "valid"}
        skipped |= {"invalid_reasons", "warnings", "kv_usage_peak", "preemptions", "waiting_peak"}
        skipped |= {"running_peak", "gpu_memory_peak_mib", "power_mean_w", "queue_mean_ms"}
        return {
            name: value
            for name in type(self).model_fields
            if name not in skipped and (value := getattr(self, name)) is not None
        }


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
    endpoint: Literal["completions", "chat"] = "completions"
    temperature: float = Field(default=0.0, ge=0)
    ignore_eos: bool = False
    warmup_requests: Count | None = None
    seed: int = 42


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
    slo: Slo = Slo()
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
