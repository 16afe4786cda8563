"""One load point of an import file: a result file, or numbers typed by hand."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from scripts.lib.base.schema import Strict

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

REPORTED = (
    "kv_usage_peak",
    "waiting_peak",
    "running_peak",
    "preemptions",
    "queue_mean_ms",
    "queue_p95_ms",
    "gpu_memory_peak_mib",
    "power_mean_w",
)
"""What no benchmark file holds, so that it can stand beside one."""


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
    completed: Count | None = None
    failed: Count | None = Field(default=None, description="None: not known, which is not 0.")
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
        self._counts_agree()
        if not self.valid and not self.invalid_reasons:
            raise ValueError("an invalid point needs invalid_reasons")
        return self

    def _counts_agree(self) -> None:
        sent, completed, failed = self.counts()
        if sent is not None:
            for name in ("completed", "failed", "oom"):
                if (getattr(self, name) or 0) > sent:
                    raise ValueError(f"{getattr(self, name)} {name} of {sent} requests is too many")
            if completed is not None and failed is not None and completed + failed != sent:
                raise ValueError(f"{completed} completed and {failed} failed are not {sent}")
        if failed is not None and (self.oom or 0) > failed:
            raise ValueError(f"{self.oom} ran out of memory of {failed} that failed")

    def counts(self) -> tuple[int | None, int | None, int | None]:
        """Return sent, completed and failed; the third follows where two of them are given."""
        sent, completed, failed = self.requests, self.completed, self.failed
        if sent is None and completed is not None and failed is not None:
            sent = completed + failed
        elif completed is None and sent is not None and failed is not None:
            completed = sent - failed
        elif failed is None and sent is not None and completed is not None:
            failed = sent - completed
        return sent, completed, failed

    def typed_numbers(self) -> dict[str, float]:
        """Return the numbers that were typed by hand and that a file would hold."""
        skipped = {"file", "concurrency", "rate", "session", "requests", "valid"}
        skipped |= {"invalid_reasons", "warnings", *REPORTED}
        return {
            name: value
            for name in type(self).model_fields
            if name not in skipped and (value := getattr(self, name)) is not None
        }

    def reported(self) -> dict[str, float]:
        """Return the numbers of the server and the GPU that were typed by hand."""
        return {
            name: float(value) for name in REPORTED if (value := getattr(self, name)) is not None
        }
