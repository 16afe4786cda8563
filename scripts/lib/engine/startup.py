"""What an engine's start-up log says, and how a start ended (``startup.json``)."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from scripts.lib.base.schema import SCHEMA_VERSION, Strict


class Degradation(Strict):
    """One sign that the engine took a slower or coarser path than the checkpoint allows."""

    kind: str
    line: str


class Failure(Strict):
    """Why a server did not start or died: the cause, the decisive line, what to change."""

    kind: str
    line: str
    hint: str


class LogFacts(Strict):
    """The keys of ``python -m scripts.inspect_server_log``; None = the text does not say."""

    vllm_version: str | None = None
    quantization: str | None = None
    kernels: list[str] = []
    scheme: str = "unknown"
    kernel_family: list[str] = []
    weights_gib: float | None = None
    kv_cache_tokens: int | None = None
    gpu_blocks: int | None = None
    max_concurrency: float | None = None
    max_concurrency_tokens: int | None = None
    tensor_parallel_size: int | None = None
    dtype: str | None = None
    kv_cache_dtype: str | None = None
    attention_backend: str | None = None
    ready: bool = False
    degraded: bool = False
    degradations: list[Degradation] = []
    failure: Failure | None = None
    # Beyond the contract: the start-up ledger.
    model_load_s: float | None = None
    kv_cache_gib: float | None = None
    graph_capture_s: float | None = None
    graph_capture_gib: float | None = None
    compile_s: float | None = None
    engine_init_s: float | None = None
    max_model_len: int | None = None
    kv_cache_tokens_from_blocks: int | None = Field(
        default=None, description="V0 prints blocks only: blocks x block size."
    )
    model: str | None = None
    device: str | None = Field(default=None, description="cuda, rocm, cpu, xpu, ...")
    load_format: str | None = None
    speculative: bool = False
    moe_backends: list[str] = Field(default=[], description="'MARLIN wna16': the experts' part.")
    moe_methods: list[str] = []
    kernel_methods: list[str] = Field(default=[], description="'K for M' as logged.")
    starts_in_file: int = Field(default=1, description="The facts are the last one's.")
    evidence: dict[str, str] = Field(default={}, description="Key -> the line it was read from.")

    @property
    def kv_tokens(self) -> int | None:
        """The KV cache in tokens: as printed, or from the blocks that V0 prints instead."""
        printed = self.kv_cache_tokens
        return self.kv_cache_tokens_from_blocks if printed is None else printed

    def filled(self, typed: Mapping[str, object]) -> LogFacts:
        """Return the facts with what somebody typed where the log says nothing."""
        blank = LogFacts()
        said = {name for name in typed if getattr(self, name) != getattr(blank, name)}
        return self.model_copy(
            update={name: value for name, value in typed.items() if value and name not in said}
        )


class Startup(Strict):
    """``startup.json``: one start of one server."""

    schema_version: int = SCHEMA_VERSION
    variant: str
    command: list[str] = Field(description="The command line, machine paths made relative.")
    environment: dict[str, str] = Field(description="The variables we set; secrets left out.")
    started_at: str = Field(description="ISO 8601, UTC.")
    ready_s: float | None = Field(description="Start to ready; None: never was.")
    ready: bool
    exit_code: int | None = None
    gpus: list[int] = []
    facts: LogFacts
    typed: list[str] = Field(
        default=[], description="Facts that the log does not say: of an import file."
    )
    failure: Failure | None = None
