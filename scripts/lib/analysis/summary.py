"""``summary.json``: the one machine-readable result; the report reads it and nothing else."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from scripts.lib.base.schema import SCHEMA_VERSION, Strict
from scripts.lib.engine.startup import Degradation, Failure
from scripts.lib.plan.models import Plan, Verdict
from scripts.lib.telemetry.host import Host


class Value(Strict):
    """A number, or the reason why there is none. Exactly one of value and missing is set."""

    value: float | None = None
    missing: str | None = Field(default=None, description='e.g. "too few: n=30, p99 needs 662"')
    low: float | None = Field(default=None, description="Confidence interval, lower end.")
    high: float | None = None
    n: int | None = Field(default=None, description="Samples behind it.")
    ratio_to_baseline: float | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Value:
        if (self.value is None) == (self.missing is None):
            raise ValueError("give either the value or the reason why there is none")
        return self


class EngineView(Strict):
    """One engine environment."""

    name: str
    kind: Literal["environment", "python", "command", "address"]
    versions: dict[str, str]
    lock: str | None = None
    lock_sha256: str | None = None


class VariantView(Strict):
    """One variant as the report names it."""

    name: str
    label: str
    stamp: str = Field(description="What really ran, e.g. W8A16 (degraded): beside the label.")
    is_baseline: bool
    checkpoint: str
    checkpoint_source: str
    scheme_words: str
    engine: str
    serving_flags: list[str]
    environment: dict[str, str]
    command: list[str] | None
    gpus: int
    checkpoint_bytes: int | None
    ideal_bytes: int | None
    manifest: str = Field(description="The manifest's path inside the study's folder.")


class WorkloadView(Strict):
    """One workload as it really was."""

    name: str
    dataset_words: str
    dataset_sha256: str | None
    endpoint: str
    decoding: dict[str, object] = Field(description="A value of None: not known (imported).")
    load_words: str
    warmup_words: str
    repetitions: int
    sessions: int
    seed: int | None = Field(description="None: not known (imported).")
    input_tokens: dict[str, float] = Field(description="min, p50, mean, p95, max as realised")
    output_tokens: dict[str, dict[str, float]] = Field(description="Per variant, as realised.")


class LedgerRow(Strict):
    """What one variant's start-up cost and left room for."""

    variant: str
    weights_gib: Value
    kv_cache_tokens: Value
    max_concurrency: Value
    planned_weights_gib: Value
    planned_kv_cache_tokens: Value
    ready_s: Value = Field(description="Not comparable: cold or warm page cache unknown.")
    model_load_s: Value
    compile_s: Value
    graph_capture_gib: Value
    source: str


class PointRow(Strict):
    """One variant at one load point, over its repetitions and sessions."""

    variant: str
    stamp: str
    workload: str
    kind: Literal["concurrency", "rate", "ramp", "trace"]
    level: float = Field(description="Concurrency, or requests/s; 0 for ramp and trace.")
    origin: Literal["plan", "slo_search"] = "plan"
    runs: int = Field(description="Runs (repetitions x sessions) behind the row's numbers.")
    sessions: int = Field(default=1, description="Server starts that those runs come from.")
    left_out: list[str] = Field(
        default=[], description="A sentence for each run that is not in the numbers, and why."
    )
    sent: int | None = Field(description="None: not known (imported).")
    completed: int | None
    valid: bool
    invalid_reasons: list[str]
    warnings: list[str]
    metrics: dict[str, Value] = Field(
        description="ttft_mean_ms, ttft_p95_ms, tpot_mean_ms, ..., output_throughput_tok_s, "
        "total_throughput_tok_s, request_throughput, goodput_req_s, goodput_share, duration_s, "
        "kv_usage_peak, waiting_peak, running_peak, preemptions, queue_mean_ms, queue_p95_ms, "
        "prefix_hit_share, gpu_memory_peak_mib, power_mean_w, joules_per_output_token, "
        "usd_per_million_output_tokens, usd_per_million_good_tokens"
    )
    steady: dict[str, Value] = {}
    slo_pass: bool | None = Field(description="None: not evaluated (no SLO, or invalid).")
    slo_failed: list[str] = Field(description="Each limit that was missed, as a sentence.")
    sources: list[str] = Field(description="Raw files, e.g. runs/bf16/chat/session1/load.json.")


class Boundary(Strict):
    """Up to which load a variant keeps the SLO on a workload."""

    variant: str
    workload: str
    last_pass: float | None
    first_fail: float | None
    words: str = Field(description="e.g. passes up to 32, fails at 36")


class Comparison(Strict):
    """One variant against the baseline at one point and metric."""

    workload: str
    level: float
    metric: str
    variant: str
    ratio: float
    low: float | None
    high: float | None
    p_adjusted: float | None
    outcome: Literal["better", "worse", "tie", "undecided"]
    why: str
    repeats: int | None = Field(default=None, description="A side, the fewer of both.")
    repeats_of: Literal["repetitions", "sessions"] = "repetitions"
    detectable: float | None = Field(
        default=None,
        description="Smallest relative difference that nine of ten equal studies would call.",
    )
    repeats_needed: int | None = Field(
        default=None,
        description="Repeats a side that would show 10 %. None: over 200, or not known.",
    )


class Crossover(Strict):
    """Which variant is best where."""

    workload: str
    metric: str
    levels: list[float]
    best: list[list[str]] = Field(description="Per level: the best one, or the tied ones.")
    words: str


class AxisQuality(Strict):
    """One variant on one axis of the probes."""

    axis: str
    items: int
    passed: int
    baseline_passed: int | None
    baseline_wrong_too: int = Field(description="Items that the baseline failed as well.")
    lost: list[str] = Field(description="Items the baseline passed and this variant failed.")
    gained: list[str]
    similarity_to_baseline: float | None = Field(description="0 to 1, mean over items.")
    identical_to_baseline: int
    cut: int | None = Field(
        default=None, description="Answers that ended at max_tokens. None: not told."
    )


class AskedHow(Strict):
    """How the questions of one variant were asked. None: not recorded."""

    temperature: float | None = None
    seed: int | None = None
    concurrency: int | None = Field(default=None, description="Requests at a time.")


class QualityView(Strict):
    """The quality of one variant."""

    variant: str
    stamp: str
    not_applicable: str | None
    axes: list[AxisQuality]
    task_success: Value
    format_accuracy: Value
    tool_success: Value
    similarity: Value
    lost: int
    gained: int
    paired: int | None = Field(
        default=None,
        description="Items with a grade for both this variant and the baseline: those that can "
        "be lost or gained. None: not told.",
    )
    p_value: float | None = Field(description="Exact McNemar against the baseline, two-sided.")
    difference_low: float | None
    difference_high: float | None
    outcome: Literal["baseline", "non-inferior", "worse", "undecided", "not measured"]
    words: str
    examples: list[dict[str, str]] = Field(
        description="id, axis, prompt, baseline, variant and, where told, baseline_reason and "
        "variant_reason: why each was graded as it was"
    )
    source: str
    asked: AskedHow | None = Field(default=None, description="None: not told.")


class Finding(Strict):
    """One diagnosis: what was seen, why probably, what to check next."""

    rule: str
    variant: str | None
    workload: str | None
    where: str = Field(description="The window: e.g. concurrency 8 to 32.")
    evidence: list[str] = Field(min_length=1, description="Metric, window and value.")
    cause: str
    next_check: str
    severity: Literal["info", "warning", "critical"]


class FailureRow(Strict):
    """A variant whose server did not start, or died."""

    variant: str
    stage: Literal["checkpoint", "start", "load", "quality"]
    failure: Failure
    source: str


class Gate(Strict):
    """One gate of the decision for one variant."""

    gate: Literal["starts", "fits", "kernel", "quality", "slo", "valid", "cost"]
    passed: bool | None = Field(description="None: could not be judged.")
    why: str
    source: str


class Candidate(Strict):
    """How one variant fared through the gates."""

    variant: str
    qualifies: bool | None
    gates: list[Gate]
    score: Value = Field(description="What the qualified are ranked by.")


class Rollback(Strict):
    """When to go back, in words and as a Prometheus expression."""

    name: str
    words: str
    expression: str | None
    for_: str | None = None
    from_: str = Field(description="The measurement the threshold comes from.")


class Decision(Strict):
    """The answer."""

    outcome: Literal["recommended", "none qualifies", "undecided"]
    variant: str | None
    headline: str
    reasons: list[str]
    rejected: dict[str, list[str]]
    candidates: list[Candidate]
    limitations: list[str]
    rollback: list[Rollback]
    rollback_command: list[str] | None
    ranked_by: str


class Timeline(Strict):
    """Time series of one session, thinned for small figures."""

    variant: str
    workload: str
    session: int
    t_s: list[float]
    series: dict[str, list[float | None]]
    points: list[dict[str, float]] = Field(description="start_s, end_s, level of each point.")


class SloView(Strict):
    """One limit, in words and data."""

    key: str
    words: str
    limit: float
    requests_needed: int | None = Field(description="For its percentile.")


class Provenance(Strict):
    """Where this study comes from."""

    study_hash: str
    created_at: str
    git_commit: str | None
    git_dirty: bool | None
    tool_version: str
    workflow_versions: dict[str, str]


class Summary(Strict):
    """Everything the report says."""

    schema_version: int = SCHEMA_VERSION
    study: str
    title: str
    baseline: str
    provenance: Provenance
    host: Host
    engines: list[EngineView]
    variants: list[VariantView]
    workloads: list[WorkloadView]
    slo: list[SloView]
    price_usd_per_hour: float | None
    plans: list[Plan]
    verdicts: list[Verdict]
    degradations: dict[str, list[Degradation]]
    ledger: list[LedgerRow]
    points: list[PointRow]
    boundaries: list[Boundary]
    comparisons: list[Comparison]
    crossovers: list[Crossover]
    noise_floor: dict[str, Value] = Field(description="Metric -> relative spread of repeats.")
    quality: list[QualityView]
    findings: list[Finding]
    failures: list[FailureRow]
    timelines: list[Timeline]
    decision: Decision
    formulas: dict[str, str]
    not_measured: list[str] = Field(description="What could not be measured, and why.")
    imported_from: str | None = Field(
        default=None, description="Set when the numbers were not measured by this workflow."
    )
    measured_at: str | None = Field(
        default=None, description="When, as an imported study says: ISO 8601, as exact as known."
    )
    machine_hours: float | None = Field(
        default=None, description="How long the machine was used for the study."
    )
    study_cost_usd: float | None = Field(default=None, description="machine_hours x the price.")
    files: dict[str, str] = Field(description="Raw file (relative) -> SHA-256.")
