"""Turns result files and typed numbers into the load points of a session."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scripts.lib.analysis.import_numbers import ImportPoint
from scripts.lib.load.benchmark_file import BenchmarkResult, read_benchmark
from scripts.lib.load.results import REQUEST_FIELDS, Client, Latency, Point
from scripts.lib.study.slo import PERCENTILE_FLOORS

GAP_S = 1.0
"""Imported points are laid one after the other on the session's clock, so far apart."""

QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99))
LATENCIES = ("ttft", "tpot", "itl", "e2el")
NOBODY = Client(processes=None, cpu_share=None, send_lag_p99_ms=None)

Record = dict[str, Any]
Floats = NDArray[np.float64]


class ImportProblem(ValueError):
    """An import that cannot be done; the message names the file or key and the fix."""


@dataclass
class Imported:
    """One point as it goes into load.json, and what lies beside it."""

    point: Point
    records: list[Record] = field(default_factory=list)
    date: str | None = None
    files: list[Path] = field(default_factory=list)


def import_point(given: ImportPoint, folder: Path, start_s: float) -> Imported:
    """Return one point that begins at ``start_s`` on its session's clock.

    Raises:
        ImportProblem: if its file cannot be read or says something else than the import file.
    """
    if given.file:
        return _from_file(given, folder / given.file, start_s)
    return _from_numbers(given, start_s)


def _from_file(given: ImportPoint, path: Path, start_s: float) -> Imported:
    try:
        result = read_benchmark(path)
    except OSError as error:
        raise ImportProblem(
            f"{path}: cannot be read ({error.strerror}); correct the path"
        ) from None
    except ValueError as error:
        raise ImportProblem(str(error)) from None
    concurrency, rate = _load_of(given, result, path)
    duration = result.duration_s
    details = _details(path) if result.kind == "json" else {}
    records = _records(details, start_s)
    sent, completed, failed = _counts(given, result)
    point = Point(
        workload_point=0,
        repetition=1,
        concurrency=concurrency,
        rate=rate,
        sent=sent,
        completed=completed,
        failed=failed,
        start_s=start_s,
        end_s=start_s + max(duration or 0.0, _span(records, start_s)),
        duration_s=duration,
        achieved_rate=result.request_throughput,
        peak_in_flight=result.peak_concurrency,
        input_tokens=result.input_tokens,
        output_tokens=result.output_tokens,
        output_throughput_tok_s=result.output_throughput_tok_s,
        total_throughput_tok_s=result.total_throughput_tok_s,
        request_throughput=result.request_throughput,
        **{f"{name}_ms": _latency_of(result, name, details, completed) for name in LATENCIES},
        reported=given.reported(),
        client=NOBODY,
        errors=_errors(details),
        valid=result.valid and given.valid,
        invalid_reasons=[*result.invalid_reasons, *given.invalid_reasons],
        warnings=[*result.warnings, *given.warnings],
    )
    return Imported(point, records, result.date, [path])


def _load_of(
    given: ImportPoint, result: BenchmarkResult, path: Path
) -> tuple[int | None, float | None]:
    """Return concurrency and rate, checked against each other where both are known."""
    told = result.max_concurrency
    if given.concurrency and told and given.concurrency != told:
        raise ImportProblem(
            f"{path}: was run at concurrency {told}, the import file says {given.concurrency}; "
            "correct one of them"
        )
    if given.rate:
        return None, given.rate
    if given.concurrency or told:
        return given.concurrency or told, None
    if isinstance(result.request_rate, float):
        return None, result.request_rate
    raise ImportProblem(
        f"{path}: does not say its concurrency or rate; add `concurrency:` to the point"
    )


def _counts(
    given: ImportPoint, result: BenchmarkResult
) -> tuple[int | None, int | None, int | None]:
    """Return sent, completed and failed, as far as file and import file tell.

    A file that counts more completed requests than were sent is kept as it is: it is invalid
    for that, and says so.
    """
    completed, failed = result.completed, result.failed
    sent = result.sent if result.sent is not None else given.requests
    if sent is None and completed is not None and failed is not None:
        sent = completed + failed
    if sent is not None and completed is not None:
        completed = min(completed, sent)
        failed = sent - completed
    return sent, completed, failed


def _details(path: Path) -> dict[str, Any]:
    """Return the last JSON object of a result file; {} where it is not one or a list of lines."""
    text = path.read_text(encoding="utf-8", errors="replace").lstrip("\ufeff")
    try:
        value = json.loads(text)
    except ValueError:
        lines = [line for line in text.splitlines() if line.strip()]
        try:
            value = json.loads(lines[-1])
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _per_request(details: dict[str, Any]) -> dict[str, list[Any]] | None:
    """Return the arrays of ``--save-detailed``; None where one is missing or of another length."""
    names = ("input_lens", "output_lens", "ttfts", "itls")
    arrays = {name: details.get(name) for name in names}
    if not all(isinstance(values, list) and values for values in arrays.values()):
        return None
    found: dict[str, list[Any]] = {name: values for name, values in arrays.items() if values}
    if len({len(values) for values in found.values()}) != 1:
        return None
    count = len(found["ttfts"])
    errors = details.get("errors")
    found["errors"] = errors if isinstance(errors, list) and len(errors) == count else [""] * count
    return found


def _records(details: dict[str, Any], start_s: float) -> list[Record]:
    """Return request records; none where the file does not say when each request was sent."""
    arrays = _per_request(details)
    times = details.get("start_times")
    if arrays is None or not isinstance(times, list) or len(times) != len(arrays["ttfts"]):
        return []
    first = min(times)
    return [_record(i, start_s + sent - first, arrays, i) for i, sent in enumerate(times)]


def _record(index: int, sent_s: float, arrays: dict[str, list[Any]], i: int) -> Record:
    error = arrays["errors"][i] or None
    gaps, tokens = arrays["itls"][i], int(arrays["output_lens"][i] or 0)
    ok = not error and tokens > 0
    first_token_s = sent_s + arrays["ttfts"][i] if ok else None
    values = {
        "point": 0,
        "index": index,
        "intended_s": sent_s,
        "sent_s": sent_s,
        "first_token_s": first_token_s,
        "last_token_s": first_token_s + sum(gaps) if first_token_s is not None else None,
        "input_tokens": arrays["input_lens"][i],
        "output_tokens": tokens,
        "chunks": len(gaps) + 1 if ok else 0,
        "ok": ok,
        "status": None,
        "finish_reason": None,
        "error": str(error).strip().splitlines()[-1][:300] if error else None,
    }
    return {name: values[name] for name in REQUEST_FIELDS}


def _span(records: Iterable[Record], start_s: float) -> float:
    ends = [r["last_token_s"] for r in records if r["last_token_s"] is not None]
    return max(ends, default=start_s) - start_s


def _latency_of(
    result: BenchmarkResult, name: str, details: dict[str, Any], completed: int | None
) -> Latency:
    """Return a latency as printed; what the file does not print comes from its requests."""
    samples = _samples(details, name)
    printed = {s: getattr(result, f"{s}_{name}_ms") for s in ("mean", "p50", "p90", "p95", "p99")}
    if printed["p50"] is None:
        printed["p50"] = getattr(result, f"median_{name}_ms")
    if len(samples):
        computed = {s: float(np.quantile(samples, q)) for s, q in QUANTILES}
        computed["mean"] = float(samples.mean())
        printed = {s: computed[s] if value is None else value for s, value in printed.items()}
    count = len(samples) or (completed if name != "itl" else None)
    return Latency.model_validate({**printed, "n": count})


def _samples(details: dict[str, Any], name: str) -> Floats:
    """Return a latency of each completed request in ms (ITL: of each gap)."""
    arrays = _per_request(details)
    if arrays is None:
        return np.empty(0)
    good = [i for i, e in enumerate(arrays["errors"]) if not e and arrays["output_lens"][i]]
    gaps = [arrays["itls"][i] for i in good]
    ttft: Floats = np.array([arrays["ttfts"][i] for i in good], float)
    decode: Floats = np.array([sum(g) for g in gaps], float)
    tokens: Floats = np.array([arrays["output_lens"][i] for i in good], float)
    if name == "ttft":
        return 1000 * ttft
    if name == "e2el":
        return 1000 * (ttft + decode)
    if name == "tpot":
        several = tokens > 1
        return 1000 * decode[several] / (tokens[several] - 1)
    return 1000 * np.array([gap for g in gaps for gap in g], float)


def _errors(details: dict[str, Any]) -> dict[str, int]:
    """Return the error messages of a detailed result with their numbers; {}: it has none."""
    counts: dict[str, int] = {}
    for error in details.get("errors") or []:
        if error:
            text = str(error).strip().splitlines()[-1][:300]
            counts[text] = counts.get(text, 0) + 1
    return counts


def _from_numbers(given: ImportPoint, start_s: float) -> Imported:
    sent, completed, failed = given.counts()
    point = Point(
        workload_point=0,
        repetition=1,
        concurrency=given.concurrency,
        rate=given.rate,
        sent=sent,
        completed=completed,
        failed=failed,
        start_s=start_s,
        end_s=start_s + (given.duration_s or GAP_S),
        duration_s=given.duration_s,
        achieved_rate=given.request_throughput,
        input_tokens=given.input_tokens,
        output_tokens=given.output_tokens,
        output_throughput_tok_s=given.output_throughput_tok_s,
        total_throughput_tok_s=given.total_throughput_tok_s,
        request_throughput=given.request_throughput,
        **{f"{name}_ms": _typed_latency(given, name, completed) for name in LATENCIES},
        reported=given.reported(),
        client=NOBODY,
        errors={} if given.oom is None else {"out of memory": given.oom},
        valid=given.valid,
        invalid_reasons=list(given.invalid_reasons),
        warnings=[*_typed_warnings(given), *given.warnings],
    )
    return Imported(point)


def _typed_latency(given: ImportPoint, name: str, count: int | None) -> Latency:
    values = {s: getattr(given, f"{name}_{s}_ms") for s in ("mean", "p50", "p90", "p95", "p99")}
    return Latency.model_validate({**values, "n": count if name != "itl" else None})


def _typed_warnings(given: ImportPoint) -> Iterable[str]:
    yield "typed by hand: there are no requests behind these numbers to check them by"
    sent, completed, failed = given.counts()
    if sent is None:
        yield "how many requests were sent is not given"
    if failed is None:
        yield "how many requests failed is not given"
    if failed or given.oom:
        yield "some requests failed; the latencies are those of the others"
    most = sent if completed is None else completed
    for statistic, floor in PERCENTILE_FLOORS.items():
        typed = any(getattr(given, f"{name}_{statistic}_ms") is not None for name in LATENCIES)
        if typed and most is not None and most < floor:
            yield f"{statistic} needs {floor} requests, there are {most}"


def import_session(points: Sequence[ImportPoint], folder: Path) -> list[Imported]:
    """Return the points of one session, one after the other, with their repetitions counted.

    Args:
        points: Of one variant and session, in their order.
        folder: Where relative paths start.
    """
    imported: list[Imported] = []
    seen: dict[float, int] = {}
    start = GAP_S
    for index, given in enumerate(points):
        one = import_point(given, folder, start)
        level = level_of(one.point)
        seen[level] = seen.get(level, 0) + 1
        one.point = one.point.model_copy(update={"repetition": seen[level]})
        for record in one.records:
            record["point"] = index
        imported.append(one)
        start = one.point.end_s + GAP_S
    return imported


def level_of(point: Point) -> float:
    """Return a point's load: concurrency, or requests/s."""
    return float(point.rate if point.rate is not None else point.concurrency or 0)
