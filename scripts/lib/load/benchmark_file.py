"""One result of ``vllm bench serve`` / ``benchmark_serving.py``: its JSON or its printed table."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from scripts.lib.base.printed_text import decode, plain
from scripts.lib.base.schema import Strict
from scripts.lib.load.other_formats import other_tool_of_json, other_tool_of_text
from scripts.lib.study.slo import LATENCY_METRICS, PERCENTILE_FLOORS
from scripts.lib.study.workload import REQUESTS_PER_CONCURRENCY

STATISTICS = ("mean", "median", "p50", "p90", "p95", "p99")


class BenchmarkResult(Strict):
    """The keys of ``python -m scripts.read_benchmark``; None = the file does not say.

    Latencies are in ms. ``p50`` is only there where the file prints percentile 50 beside the
    median. TPOT leaves out the first token, ITL is the gap between two received chunks.
    """

    completed: int | None = None
    failed: int | None = Field(default=None, description="As printed; 0.11.1 and later.")
    sent: int | None = None
    duration_s: float | None = None
    request_rate: float | Literal["inf"] | None = None
    max_concurrency: int | None = Field(default=None, description="None: unlimited or unknown.")
    request_throughput: float | None = None
    output_throughput_tok_s: float | None = None
    total_throughput_tok_s: float | None = None
    goodput: float | None = Field(default=None, description="Requests/s that met the SLO.")
    mean_ttft_ms: float | None = None
    median_ttft_ms: float | None = None
    p50_ttft_ms: float | None = None
    p90_ttft_ms: float | None = None
    p95_ttft_ms: float | None = None
    p99_ttft_ms: float | None = None
    mean_tpot_ms: float | None = None
    median_tpot_ms: float | None = None
    p50_tpot_ms: float | None = None
    p90_tpot_ms: float | None = None
    p95_tpot_ms: float | None = None
    p99_tpot_ms: float | None = None
    mean_itl_ms: float | None = None
    median_itl_ms: float | None = None
    p50_itl_ms: float | None = None
    p90_itl_ms: float | None = None
    p95_itl_ms: float | None = None
    p99_itl_ms: float | None = None
    mean_e2el_ms: float | None = None
    median_e2el_ms: float | None = None
    p50_e2el_ms: float | None = None
    p90_e2el_ms: float | None = None
    p95_e2el_ms: float | None = None
    p99_e2el_ms: float | None = None
    valid: bool
    invalid_reasons: list[str]
    # Beyond the contract.
    kind: Literal["json", "table"]
    results_in_file: int = Field(default=1, description="More than one: the last is read.")
    input_tokens: int | None = None
    output_tokens: int | None = None
    peak_output_throughput_tok_s: float | None = None
    peak_concurrency: int | None = None
    spec_acceptance_length: float | None = None
    spec_acceptance_rate_percent: float | None = None
    model: str | None = None
    date: str | None = None
    warnings: list[str] = []


JSON_KEYS: dict[str, tuple[str, ...]] = {
    "completed": ("completed",),
    "failed": ("failed",),
    "sent": ("num_prompts",),
    "duration_s": ("duration",),
    "max_concurrency": ("max_concurrency",),
    "request_throughput": ("request_throughput",),
    "output_throughput_tok_s": ("output_throughput",),
    "total_throughput_tok_s": ("total_token_throughput",),
    "goodput": ("request_goodput", "request_goodput:"),  # the colon: vLLM 0.6.4 to 0.11
    "input_tokens": ("total_input_tokens",),
    "output_tokens": ("total_output_tokens",),
    "peak_output_throughput_tok_s": ("max_output_tokens_per_s",),
    "peak_concurrency": ("max_concurrent_requests",),
    "spec_acceptance_length": ("spec_decode_acceptance_length",),
    "spec_acceptance_rate_percent": ("spec_decode_acceptance_rate",),
}
TABLE_ROWS: dict[str, str] = {
    "completed": r"Successful requests",
    "failed": r"Failed requests",
    "duration_s": r"Benchmark duration \(s\)",
    "request_rate": r"(?:Traffic request rate|Request rate configured \(RPS\))",
    "max_concurrency": r"Maximum request concurrency",
    "request_throughput": r"Request throughput \(req/s\)",
    "output_throughput_tok_s": r"Output token throughput \(tok/s\)",
    "total_throughput_tok_s": r"Total token throughput \(tok/s\)",
    "goodput": r"Request goodput \(req/s\)",
    "input_tokens": r"Total input tokens",
    "output_tokens": r"Total generated tokens",
    "peak_output_throughput_tok_s": r"Peak output token throughput \(tok/s\)",
    "peak_concurrency": r"Peak concurrent requests",
    "spec_acceptance_length": r"Acceptance length",
    "spec_acceptance_rate_percent": r"Acceptance rate \(%\)",
}
INTEGERS = {
    "completed",
    "failed",
    "sent",
    "max_concurrency",
    "input_tokens",
    "output_tokens",
    "peak_concurrency",
}
TITLE = re.compile(r"=+ *Serving Benchmark Result *=+")
_NUMBER = r"[-+]?(?:\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?|inf|nan)"
_PROGRESS = re.compile(r"100%\|[^|]*\|\s*(\d+)/(\d+)\s*\[")
_OPEN_END = "\u2026"
"""Marks a last number that may have been cut: the table's decimals are always two."""
_NUM_PROMPTS = re.compile(r"\bnum_prompts=(\d+)|--num-prompts[ =](\d+)")
_MEDIANS_MAY_DIFFER = 1e-6
_RATES_MAY_DIFFER = 0.02


def read_benchmark(path: Path) -> BenchmarkResult:
    """Read one result file.

    Raises:
        ValueError: the file is empty, binary, another tool's (named), or not a result at all.
        OSError: the file cannot be read.
    """
    data = path.read_bytes()
    try:
        return read_benchmark_text(decode(data, "a result of vllm bench serve"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_benchmark_text(text: str) -> BenchmarkResult:
    """Read one result from its JSON or its printed table.

    Raises:
        ValueError: as of ``read_benchmark``.
    """
    if not text.strip():
        raise ValueError("the file is empty")
    values = _json_values(text)
    if values is None:
        return _from_table(text)
    if other := other_tool_of_json(values[-1]):
        raise ValueError(f"this is a result of {other}, not of vllm bench serve")
    return _from_json(values[-1], len(values))


def _json_values(text: str) -> list[Any] | None:
    """Return the JSON values of the text: one, or one a line; None when it is not JSON."""
    try:
        return [json.loads(text)]
    except ValueError:
        pass
    lines = [line for line in text.splitlines() if line.strip()]
    try:
        values = [json.loads(line) for line in lines]
    except ValueError:
        if text.lstrip()[0] in "{[" and not TITLE.search(text):
            raise ValueError("the JSON is incomplete or malformed") from None
        return None
    return values


def _from_json(value: Any, count: int) -> BenchmarkResult:  # noqa: ANN401 - any JSON value
    missing = [
        key
        for key in ("completed", "duration", "request_throughput")
        if not isinstance(value, dict) or _number(value.get(key)) is None
    ]
    if missing:
        raise ValueError(
            f"not a result of vllm bench serve: the key(s) {', '.join(missing)} are missing"
        )
    found = {
        field: next((_number(value[key]) for key in keys if key in value), None)
        for field, keys in JSON_KEYS.items()
    }
    for statistic in STATISTICS:
        for latency in LATENCY_METRICS:
            found[f"{statistic}_{latency}_ms"] = _number(value.get(f"{statistic}_{latency}_ms"))
    errors = [error for error in value.get("errors") or [] if error]
    return _result(
        found,
        request_rate=_rate(value.get("request_rate")),
        kind="json",
        results_in_file=count,
        model=_text(value.get("model_id")),
        date=_text(value.get("date")),
        error=str(errors[0]).strip().splitlines()[-1][:200] if errors else None,
    )


def _from_table(text: str) -> BenchmarkResult:
    """Read the last printed table; what stands before it belongs to its command."""
    ended = re.search(r"(?:\\n|\s)$", text) is not None
    text = plain(text)
    if not ended and not re.search(r"(?:\s|=|\.\d\d)$", text):
        text += _OPEN_END
    titles = list(TITLE.finditer(text))
    if other := other_tool_of_text(text, titled=bool(titles)):
        raise ValueError(f"this is a result of {other}, not of vllm bench serve")
    if len(titles) > 1:
        text = _after_table(text, titles[-2].end(), titles[-1].start())
    rows = {field: _row(text, label) for field, label in TABLE_ROWS.items()}
    if rows["completed"] is None or (not titles and rows["duration_s"] is None):
        raise ValueError(
            "not a result of vllm bench serve: there is neither its JSON nor its printed table"
        )
    found = {field: _number(value) for field, value in rows.items() if field != "request_rate"}
    for statistic in STATISTICS:
        for latency in LATENCY_METRICS:
            label = rf"{statistic} {latency} \(ms\)"
            found[f"{statistic}_{latency}_ms"] = _number(_row(text, label))
    found["sent"] = _sent_in_text(text, found)
    return _result(
        found,
        request_rate=_rate(rows["request_rate"]),
        kind="table",
        results_in_file=max(len(titles), 1),
        model=None,
        date=None,
        error=None,
    )


def _after_table(text: str, start: int, next_title: int) -> str:
    """Cut off the table that begins at ``start``: up to its closing rule or the next title."""
    closing = re.compile(r"^[^=\n]*={20,}\s*$", re.MULTILINE).search(text, start, next_title)
    return text[closing.end() if closing else next_title :]


def _row(text: str, label: str) -> str | None:
    """Return the last value printed behind a label; ``Peak ...`` rows are other rows."""
    pattern = rf"(?<!\w)(?<!Peak\s){label}\s*:?\s*(?:\|\s*)?({_NUMBER})(?![\w.,{_OPEN_END}])"
    found = re.findall(pattern, text, re.MULTILINE | re.IGNORECASE)
    return str(found[-1]) if found else None


def _sent_in_text(text: str, found: dict[str, float | None]) -> int | None:
    completed, failed = found.get("completed"), found.get("failed")
    if completed is not None and failed is not None:
        return int(completed + failed)
    if arguments := list(_NUM_PROMPTS.finditer(text)):
        return int(arguments[-1][1] or arguments[-1][2])
    if bars := list(_PROGRESS.finditer(text)):
        return int(bars[-1][2])
    return None


def _result(
    found: dict[str, float | None],
    *,
    request_rate: float | Literal["inf"] | None,
    kind: Literal["json", "table"],
    results_in_file: int,
    model: str | None,
    date: str | None,
    error: str | None,
) -> BenchmarkResult:
    if found.get("completed") == 0:
        # The tool prints 0.00 where it has no value at all.
        found = {k: None if k.endswith("_ms") else v for k, v in found.items()}
    values: dict[str, Any] = {
        key: int(value) if key in INTEGERS and value is not None else value
        for key, value in found.items()
    }
    reasons = _invalid_reasons(found)
    if error and reasons:
        reasons[0] += f" (first error: {error})"
    return BenchmarkResult(
        **values,
        request_rate=request_rate,
        kind=kind,
        results_in_file=results_in_file,
        model=model,
        date=date,
        valid=not reasons,
        invalid_reasons=reasons,
        warnings=_warnings(found, results_in_file),
    )


def _invalid_reasons(found: dict[str, float | None]) -> list[str]:
    """Say why the numbers cannot be used: lost requests, or values that contradict each other."""
    reasons = []
    completed, failed, sent = found.get("completed"), found.get("failed"), found.get("sent")
    duration = found.get("duration_s")
    if completed is not None and sent is not None and completed < sent:
        reasons.append(f"only {completed:.0f} of {sent:.0f} requests completed")
    elif failed:
        reasons.append(f"{failed:.0f} requests failed")
    elif completed == 0:
        reasons.append("no request completed")
    if completed is not None and sent is not None and completed > sent:
        reasons.append(f"{completed:.0f} requests completed, but only {sent:.0f} were sent")
    if duration is not None and duration <= 0:
        reasons.append(f"the duration is {duration:g} s")
    if completed and found.get("output_tokens") == 0:
        reasons.append("no output token was received")
    reasons += [
        f"{key} is {value:g}" for key, value in found.items() if value is not None and value < 0
    ]
    if duration and duration > 0:
        reasons += _contradictions(found, duration)
    return reasons


def _contradictions(found: dict[str, float | None], duration: float) -> list[str]:
    reasons = []
    tokens_in, tokens_out = found.get("input_tokens"), found.get("output_tokens")
    both = None if tokens_in is None or tokens_out is None else tokens_in + tokens_out
    for name, total in (
        ("request_throughput", found.get("completed")),
        ("output_throughput_tok_s", tokens_out),
        ("total_throughput_tok_s", both),
    ):
        rate = found.get(name)
        # The table rounds to two decimals.
        if rate is None or total is None or total == 0:
            continue
        if abs(rate - total / duration) > _RATES_MAY_DIFFER * total / duration + 0.01:
            reasons.append(f"{name} is {rate:g}, but {total:g} / {duration:g} s is another number")
    for latency in LATENCY_METRICS:
        ordered = [found.get(f"{statistic}_{latency}_ms") for statistic in STATISTICS[1:]]
        known = [value for value in ordered if value is not None]
        if any(b < a - _MEDIANS_MAY_DIFFER for a, b in zip(known, known[1:], strict=False)):
            reasons.append(f"the percentiles of {latency} do not rise")
    return reasons


def _warnings(found: dict[str, float | None], results_in_file: int) -> list[str]:
    warnings = []
    completed, concurrency = found.get("completed"), found.get("max_concurrency")
    if found.get("sent") is None and found.get("failed") is None:
        warnings.append("the file does not say how many requests were sent: failures are possible")
    if results_in_file > 1:
        warnings.append(f"the file holds {results_in_file} results; the last was read")
    if completed and concurrency and completed < REQUESTS_PER_CONCURRENCY * concurrency:
        warnings.append(
            f"{completed:.0f} requests are fewer than {REQUESTS_PER_CONCURRENCY} x the "
            f"concurrency of {concurrency:.0f}"
        )
    if completed:
        for percentile in ("p90", "p95", "p99"):
            needed = PERCENTILE_FLOORS[percentile]
            printed = any(found.get(f"{percentile}_{latency}_ms") for latency in LATENCY_METRICS)
            if printed and completed < needed:
                warnings.append(f"{percentile} needs {needed} requests, there are {completed:.0f}")
    return warnings


def _number(value: object) -> float | None:
    """Return a finite number; metadata that are text and NaN are None."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(str(value).replace(",", ""))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _rate(value: object) -> float | Literal["inf"] | None:
    if str(value).lower() in {"inf", "infinity"}:
        return "inf"
    return _number(value)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
