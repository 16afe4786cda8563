"""What is expected of a variant before it runs (``plan``), and what it proved (``verdict``)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from scripts.lib.base.schema import SCHEMA_VERSION, Strict

PathKind = Literal["native", "degraded", "unsupported", "unknown"]
VerdictKind = Literal["as expected", "degraded", "not what the checkpoint says", "unknown"]


class ExpectedPath(Strict):
    """What the engine should do with this checkpoint on this device."""

    kind: PathKind
    scheme: str = Field(description="What should really run, in the contract's vocabulary.")
    kernel_families: list[str] = Field(default=[], description="Any of these.")
    why: str = Field(description="One sentence.")
    source: str | None = Field(default=None, description="Where the rule comes from.")


class Estimate(Strict):
    """An estimate with how it was made."""

    value: float
    unit: str
    how: str


class Plan(Strict):
    """``plan/<variant>.json``: what would run, does it fit, what would it cost."""

    schema_version: int = SCHEMA_VERSION
    variant: str
    device: str = Field(description="The GPU's or CPU's name the plan is for.")
    expected: ExpectedPath
    promised_scheme: str | None = Field(default=None, description="What the checkpoint says.")
    scheme_words: str = Field(default="", description="The checkpoint's scheme, for people.")
    facts_source: str = Field(default="", description="Where the checkpoint's facts come from.")
    engine_version: str | None = Field(default=None, description="None: the latest is assumed.")
    gpus: int = Field(default=0, description="GPUs that the variant occupies; 0: a CPU.")
    max_model_len: int | None = None
    not_estimated: dict[str, str] = Field(
        default={}, description="Estimate that is missing -> why, e.g. kv_cache_tokens."
    )
    ideal_weight_bytes: int | None = None
    real_weight_bytes: int | None = None
    kv_bytes_per_token: float | None = None
    kv_cache_tokens: Estimate | None = None
    max_concurrency: Estimate | None = None
    weights_gib: Estimate | None = None
    tpot_floor_ms: Estimate | None = Field(default=None, description="Roofline, concurrency 1.")
    compute_bound_from: Estimate | None = Field(default=None, description="Concurrency.")
    fits: bool | None = None
    fits_why: str = ""
    server_starts: int = 0
    requests: int = 0
    hours: Estimate | None = None
    cost_usd: Estimate | None = None
    warnings: list[str] = []


class Evidence(Strict):
    """One piece of evidence for or against a verdict."""

    level: Literal["table", "log", "weights", "speed"]
    says: str
    supports: bool | None = Field(description="None: it neither supports nor contradicts.")
    line: str | None = Field(default=None, description="The log line, quoted.")


class Verdict(Strict):
    """``kernels/<variant>.json``: did the engine run what the checkpoint promises?"""

    schema_version: int = SCHEMA_VERSION
    variant: str
    verdict: VerdictKind
    promised_scheme: str
    real_scheme: str = Field(description="Shown wherever this variant is named.")
    kernels: list[str] = []
    kernel_family: list[str] = []
    summary: str = Field(description="One sentence for the report.")
    evidence: list[Evidence] = []
