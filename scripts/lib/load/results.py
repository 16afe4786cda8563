"""What one load measurement leaves behind: ``load.json`` and ``requests.jsonl.gz``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from scripts.lib.base.schema import SCHEMA_VERSION, Strict
from scripts.lib.engine.startup import Failure


class Latency(Strict):
    """A latency's distribution over the completed requests of one point, in ms.

    Percentiles interpolate linearly between order statistics (numpy's default, as in vLLM).
    None: no request had such a value (TPOT needs two output tokens).
    """

    mean: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    n: int | None = Field(
        description="How many requests (itl: how many gaps) stand behind it; None: not known."
    )


class Client(Strict):
    """What the client itself did during a point."""

    processes: int | None = Field(description="None: somebody else's client.")
    cpu_share: float | None = Field(
        description="CPU seconds per wall second of the busiest client process."
    )
    send_lag_p99_ms: float | None = Field(
        description="99th percentile of (actual - intended) send time."
    )
    peak_memory_mib: float | None = Field(
        default=None, description="Of all client processes and the session's own, added up."
    )
    loop_lag_p99_ms: float | None = Field(
        default=None, description="How late the client's event loops ran, 99th percentile."
    )
    read_lag_mean_ms: float | None = Field(
        default=None,
        description="How long received data lay unread, by the kernel's account (Linux), at the "
        "first and last piece of each answer: this much of TTFT and E2EL is the client's.",
    )
    read_lag_p99_ms: float | None = Field(
        default=None, description="None: fewer than 662 readings, too few for a 99th percentile."
    )


class ServerView(Strict):
    """The engine's own histograms over the window of one point, from ``/metrics``, in ms."""

    ttft_mean_ms: float | None = None
    tpot_mean_ms: float | None = None
    itl_mean_ms: float | None = None
    e2el_mean_ms: float | None = None
    queue_mean_ms: float | None = None
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    preemptions: float | None = None
    prefix_cache_queries: float | None = None
    prefix_cache_hits: float | None = None


class SteadyWindow(Strict):
    """The part of a closed-loop point with at least 95 % of the target in flight."""

    start_s: float
    end_s: float
    completed: int
    ttft_ms: Latency
    tpot_ms: Latency
    output_throughput_tok_s: float | None


class Point(Strict):
    """One load point, run once.

    Times ``*_s`` count from the session's clock origin (``LoadResult.origin_unix_s``). None: not
    known, as in results that were made by other tools; what we measure has every count.
    """

    workload_point: int = Field(description="Index of the point in the workload (0-based).")
    repetition: int = Field(description="1-based.")
    concurrency: int | None = None
    rate: float | None = Field(default=None, description="Offered requests/s (open loop).")
    origin: Literal["plan", "slo_search"] = "plan"
    sent: int | None
    completed: int | None
    failed: int | None
    start_s: float
    end_s: float
    duration_s: float | None = Field(description="First send to last token.")
    achieved_rate: float | None = Field(default=None, description="Completed requests/s.")
    peak_in_flight: int | None = None
    input_tokens: int | None = Field(description="Of the completed requests together.")
    output_tokens: int | None
    output_throughput_tok_s: float | None
    total_throughput_tok_s: float | None
    request_throughput: float | None = None
    ttft_ms: Latency
    tpot_ms: Latency
    itl_ms: Latency
    e2el_ms: Latency
    steady: SteadyWindow | None = None
    reported: dict[str, float] = Field(
        default={},
        description="Peaks and means that somebody else's tool reported and no time series holds, "
        "by the names of the tables: kv_usage_peak, queue_p95_ms, ...",
    )
    client: Client
    server: ServerView | None = Field(default=None, description="None: no /metrics.")
    errors: dict[str, int] = Field(default={}, description="Message -> how many requests.")
    valid: bool
    invalid_reasons: list[str]
    warnings: list[str] = []

    @property
    def judgeable(self) -> bool:
        """Whether the SLO may be judged: valid, or wrong in nothing but failed requests."""
        return self.valid or (bool(self.failed) and len(self.invalid_reasons) == 1)


class LoadResult(Strict):
    """``load.json``: one workload against one server."""

    schema_version: int = SCHEMA_VERSION
    points: list[Point]
    model: str
    url_kind: Literal["started", "attached"] = "started"
    origin_unix_s: float | None = Field(
        description="Unix time of the session's clock origin; None: not known (imported)."
    )
    dataset: dict[str, object] = Field(
        default={}, description="What was sampled: file, SHA-256, conversations, lengths."
    )
    warmup: dict[str, object] = Field(default={}, description="Requests, seconds, failures.")
    formulas: dict[str, str] = {}
    variant: str | None = None
    workload: str | None = None
    session: int | None = Field(default=None, description="1-based; a session is a fresh server.")
    failure: Failure | None = Field(
        default=None, description="The server did not start, or died; points may be empty."
    )
    records: dict[str, str] = Field(
        default={},
        description="Raw record beside this file -> its SHA-256; empty: not noted (imported, or "
        "measured by a former version).",
    )


RECORD_FILES = ("requests.jsonl.gz", "itl.npz", "metrics.csv.gz", "gpu.csv.gz")
"""The raw records that may lie beside ``load.json``."""

REQUEST_FIELDS = (
    "point",  # index into LoadResult.points
    "index",  # the request's number within its point
    "intended_s",  # when it should have been sent (session clock)
    "sent_s",
    "first_token_s",  # None: never came
    "last_token_s",
    "input_tokens",
    "output_tokens",
    "chunks",  # how many text-bearing stream events arrived
    "ok",  # completed with the stream's regular end
    "status",  # HTTP status, None: no answer
    "finish_reason",
    "error",  # None or one sentence
)
"""The keys of each line of ``requests.jsonl.gz``; TTFT = first_token_s - sent_s (open loop:
- intended_s), E2EL likewise, TPOT = (last_token_s - first_token_s) / (output_tokens - 1)."""
