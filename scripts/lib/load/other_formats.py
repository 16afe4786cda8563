"""How to know another tool's result file, so that it is refused by name and never misread.

The same words mean other things elsewhere: GuideLLM's TPOT includes the first token, LLMPerf
writes seconds, SGLang prints vLLM's very title line over differently named rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Json = Any

_STATISTIC_WITH_UNIT = {"unit", "avg"}


def _keys(value: Json) -> set[str]:
    return set(value) if isinstance(value, dict) else set()


def _has(*names: str) -> Callable[[Json], bool]:
    """Return a test for an object that holds all of these keys."""
    return lambda value: set(names) <= _keys(value)


def _any_key(pattern: str) -> Callable[[Json], bool]:
    """Return a test for an object that holds a key of this form."""
    compiled = re.compile(pattern)
    return lambda value: any(compiled.search(key) for key in _keys(value))


def _list_of(test: Callable[[Json], bool]) -> Callable[[Json], bool]:
    return lambda value: isinstance(value, list) and bool(value) and test(value[0])


def _is_genai_perf(value: Json) -> bool:
    return any(
        _keys(statistic) >= _STATISTIC_WITH_UNIT
        for key, statistic in (value.items() if isinstance(value, dict) else ())
        if key in {"request_throughput", "time_to_first_token", "request_latency"}
    )


def _is_guidellm(value: Json) -> bool:
    benchmarks = value.get("benchmarks") if isinstance(value, dict) else None
    return isinstance(benchmarks, list) and not _has("context")(value)


JSON_SIGNS: tuple[tuple[str, Callable[[Json], bool]], ...] = (
    ("AIPerf / GenAI-Perf", _is_genai_perf),
    ("GuideLLM", _is_guidellm),
    ("SGLang's bench_serving", _any_key(r"retokenized|_e2e_latency_ms$")),
    ("TensorRT-LLM's benchmark_serving", _any_key(r"^user_throughput$|^avg_decoded_tokens_per")),
    ("trtllm-bench", _has("engine", "performance")),
    ("InferenceX", _any_key(r"^tput_per_gpu$|_intvty$")),
    ("inference-perf", _has("load_summary")),
    ("inference-perf", _has("successes", "failures")),
    ("LLMPerf", _any_key(r"^results_(?:ttft|inter_token|end_to_end|number|request|num)")),
    ("LLMPerf", lambda value: _any_key(r"_s$")(value.get("results", {}) if _keys(value) else {})),
    ("LLMPerf", _has("inter_token_latency_s", "ttft_s")),
    ("k6", lambda value: _has("metrics")(value) and "http_req_duration" in value["metrics"]),
    ("Locust", _list_of(_has("num_requests", "response_times"))),
    ("Vegeta", _has("latencies", "bytes_in", "status_codes")),
    ("oha", _has("summary", "latencyPercentiles")),
    ("llama-bench", _list_of(_has("n_prompt", "n_gen", "avg_ts"))),
    ("lm-evaluation-harness", _has("results", "versions")),
    ("vllm bench throughput", _has("elapsed_time", "requests_per_second")),
    ("vllm bench latency", _has("avg_latency", "latencies")),
    ("vLLM's PyTorch benchmark format", _list_of(_has("benchmark", "metric"))),
    ("Google Benchmark", _has("context", "benchmarks")),
)

TEXT_SIGNS: tuple[tuple[str, str], ...] = (
    ("AIPerf / GenAI-Perf", r"\b(?:NVIDIA\s+)?(?:GenAI-Perf|AIPerf)\b.*\|"),
    ("GuideLLM", r"\bguidellm\b|^\W*Benchmarks? (?:Stats|Info|Metadata)\b"),
    ("SGLang's bench_serving", r"retokenized|E2E Latency \(ms\)|^\s*Backend:\s+\S+\s*$"),
    ("TensorRT-LLM's benchmark_serving", r"User throughput \(tok/s\)|Avg Decoded Tokens per Iter"),
    ("trtllm-bench", r"PERFORMANCE OVERVIEW|\[TensorRT-LLM\]"),
    ("inference-perf", r"\binference-perf\b|normalized_time_per_output_token"),
    ("LLMPerf", r"\bLLMPerf\b|^inter_token_latency_s\b|^ttft_s\b"),
    ("k6", r"\bhttp_req_duration\b"),
    ("Locust", r"Request Count.*Failure Count|^\s*Type\s+Name\s+# reqs"),
    ("ApacheBench", r"This is ApacheBench"),
    ("hey", r"^\s*Slowest:\s.*\n\s*Fastest:"),
    ("wrk", r"^Running \S+ test @ "),
    ("Vegeta", r"^Requests\s+\[total, rate"),
    ("Triton's perf_analyzer", r"Inferences/Second vs\. Client|infer/sec"),
    ("EvalScope", r"^\W*Benchmarking summary:?\s*$|Average QPS"),
    ("LMDeploy", r"^-+\n?concurrency: \d+\nelapsed_time:"),
    ("llama-bench", r"\|\s*test\s*\|\s*t/s\s*\|"),
    ("MLPerf LoadGen", r"^MLPerf Results Summary"),
    ("vllm bench throughput", r"^Throughput: [\d.]+ requests/s"),
    ("vllm bench latency", r"^Avg latency: [\d.]+ seconds"),
)


RELATIVES = {"SGLang's bench_serving", "TensorRT-LLM's benchmark_serving"}
"""Tools whose table begins with vLLM's own title line."""


def other_tool_of_json(value: Json) -> str | None:
    """Return the name of the other tool that writes such JSON, None when none is known."""
    return next((name for name, test in JSON_SIGNS if test(value)), None)


def other_tool_of_text(text: str, *, titled: bool = False) -> str | None:
    """Return the name of the other tool that prints such text, None when none is known.

    Args:
        text: what was printed.
        titled: vLLM's title line is in it. Only its relatives share that; the names of other
            tools are then part of a path or a model.
    """
    return next(
        (
            name
            for name, pattern in TEXT_SIGNS
            if (not titled or name in RELATIVES)
            and re.search(pattern, text, re.MULTILINE | re.IGNORECASE)
        ),
        None,
    )
