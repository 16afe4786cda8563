"""Results of vllm bench serve in all their forms, and other tools' results refused by name."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts import read_benchmark as command
from scripts.lib.load.benchmark_file import read_benchmark, read_benchmark_text

SHARED = Path(__file__).parents[3] / "shared"
CASES = sorted((SHARED / "corpus" / "bench").glob("*.expect.json"))
SAME = {
    "completed": "completed",
    "failed": "failed",
    "num_prompts": "sent",
    "duration": "duration_s",
    "max_concurrency": "max_concurrency",
    "request_throughput": "request_throughput",
    "output_throughput": "output_throughput_tok_s",
    "total_token_throughput": "total_throughput_tok_s",
    "request_goodput": "goodput",
    "max_output_tokens_per_s": "peak_output_throughput_tok_s",
    "max_concurrent_requests": "peak_concurrency",
    "spec_acceptance_length": "spec_acceptance_length",
    "spec_acceptance_rate_pct": "spec_acceptance_rate_percent",
}


@pytest.mark.skipif(not CASES, reason="the shared corpus is not beside the project")
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name.split(".")[0])
def test_corpus(path):
    expected = json.loads(path.read_text())
    stem = path.name.removesuffix(".expect.json")
    file = next(f for f in path.parent.glob(f"{stem}.*") if not f.name.endswith(".expect.json"))
    found = read_benchmark(file).model_dump()
    assert found["kind"] == expected["kind"]
    for theirs, ours in SAME.items():
        if theirs in expected:
            assert found[ours] == expected[theirs], ours
    for key, value in expected.items():
        if key.endswith("_ms"):
            assert found[key] == value
    lost = expected.get("failed") or expected.get("failed_implied")
    assert found["valid"] is not bool(lost)


@pytest.mark.skipif(not SHARED.exists(), reason="the reference runs are not beside the project")
@pytest.mark.parametrize("point", ["1", "10", "100", "300"])
def test_reference_results(point):
    path = SHARED / "reference" / "h200" / "bf16" / f"bf16.{point}.json"
    raw = json.loads(path.read_text())
    found = read_benchmark(path)
    assert found.valid
    assert (found.completed, found.sent, found.failed) == (raw["completed"], raw["num_prompts"], 0)
    assert found.request_rate == "inf"
    assert found.p95_tpot_ms == raw["p95_tpot_ms"]
    assert found.mean_e2el_ms == raw["mean_e2el_ms"]


RESULT = {
    "date": "20260102-030405",
    "backend": "vllm",
    "model_id": "m",
    "num_prompts": 100,
    "request_rate": "inf",
    "max_concurrency": 10,
    "duration": 10.0,
    "completed": 100,
    "failed": 0,
    "total_input_tokens": 1000,
    "total_output_tokens": 2000,
    "request_throughput": 10.0,
    "request_goodput": None,
    "output_throughput": 200.0,
    "total_token_throughput": 300.0,
    "mean_ttft_ms": 50.0,
    "median_ttft_ms": 45.0,
    "p99_ttft_ms": 90.0,
    "mean_tpot_ms": 12.0,
    "median_tpot_ms": 11.0,
    "p99_tpot_ms": 20.0,
}


def result(**changes):
    value = {key: item for key, item in (RESULT | changes).items() if item != "absent"}
    return read_benchmark_text(json.dumps(value))


def test_a_good_result_is_valid():
    found = result()
    assert found.valid
    assert found.invalid_reasons == []
    assert found.p95_ttft_ms is None
    assert found.p50_ttft_ms is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"completed": 1, "failed": 99, "request_throughput": 0.1}, "only 1 of 100"),
        ({"completed": 99, "failed": "absent", "request_throughput": 9.9}, "only 99 of 100"),
        ({"num_prompts": "absent", "failed": 3}, "3 requests failed"),
        ({"completed": 0, "num_prompts": 0, "request_throughput": 0.0}, "no request completed"),
        ({"completed": 101, "request_throughput": 10.1}, "only 100 were sent"),
        ({"duration": 0.0}, "duration"),
        ({"total_output_tokens": 0, "output_throughput": 0.0}, "no output token"),
        ({"request_throughput": 20.0}, "request_throughput"),
        ({"output_throughput": 2000.0}, "output_throughput_tok_s"),
        ({"p99_ttft_ms": 40.0}, "percentiles of ttft"),
        ({"mean_tpot_ms": -1.0}, "mean_tpot_ms is -1"),
    ],
)
def test_what_makes_a_result_invalid(changes, reason):
    found = result(**changes)
    assert not found.valid
    assert any(reason in text for text in found.invalid_reasons)


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        ({"max_concurrency": 50}, "fewer than 10 x the concurrency of 50"),
        ({}, "p99 needs 662 requests"),
        ({"num_prompts": "absent", "failed": "absent"}, "does not say how many"),
    ],
)
def test_what_a_reader_of_a_valid_result_must_know(changes, warning):
    found = result(**changes)
    assert found.valid
    assert any(warning in text for text in found.warnings)


def test_a_peak_below_the_mean_is_no_contradiction():
    assert result(max_output_tokens_per_s=51.0).valid


def test_nothing_completed_means_no_latency():
    found = result(completed=0, failed=100, mean_ttft_ms=0.0, request_throughput=0.0)
    assert found.mean_ttft_ms is None


def test_goodput_zero_is_a_value_and_null_is_none():
    assert result(**{"request_goodput:": 0.0, "request_goodput": "absent"}).goodput == 0.0
    assert result(request_goodput=0.0).goodput == 0.0
    assert result().goodput is None


def test_not_a_number_is_unknown():
    text = json.dumps(RESULT).replace("90.0", "NaN")
    assert read_benchmark_text(text).p99_ttft_ms is None


def test_the_first_error_is_quoted():
    found = result(completed=99, request_throughput=9.9, errors=["", "Traceback\nValueError: no"])
    assert "ValueError: no" in found.invalid_reasons[0]


def test_appended_results():
    lines = [json.dumps(RESULT), json.dumps(RESULT | {"max_concurrency": 7})]
    found = read_benchmark_text("\n".join(lines) + "\n")
    assert (found.max_concurrency, found.results_in_file) == (7, 2)


TABLE = """\
Namespace(backend='vllm', num_prompts=64, seed=0)
Traffic request rate: 4.0
============ Serving Benchmark Result ============
Successful requests:                     64
Benchmark duration (s):                  10.00
Total input tokens:                      1,000
Total generated tokens:                  2000
Request throughput (req/s):              6.40
Request goodput (req/s):                 0.00
Output token throughput (tok/s):         200.00
Total Token throughput (tok/s):          300.00
---------------Time to First Token----------------
Mean TTFT (ms):                          50.00
Median TTFT (ms):                        45.00
P99 TTFT (ms):                           90.00
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          12.00
Median TPOT (ms):                        11.00
P99 TPOT (ms):                           20.00
==================================================
"""


@pytest.mark.parametrize("prefix", ["", "bench-1  | ", "> ", "2026-01-02T03:04:05.123Z "])
def test_the_table_of_2024(prefix):
    found = read_benchmark_text("".join(prefix + line + "\n" for line in TABLE.splitlines()))
    assert found.valid
    assert (found.completed, found.sent, found.failed) == (64, 64, None)
    assert (found.request_rate, found.max_concurrency, found.goodput) == (4.0, None, 0.0)
    assert (found.input_tokens, found.total_throughput_tok_s) == (1000, 300.0)
    assert (found.mean_ttft_ms, found.p99_tpot_ms, found.mean_itl_ms) == (50.0, 20.0, None)


def test_of_two_tables_the_last_is_read_alone():
    second = TABLE.replace("64", "32").replace("6.40", "3.20").replace("P99 TTFT", "P95 TTFT")
    found = read_benchmark_text(TABLE + second)
    assert (found.completed, found.results_in_file) == (32, 2)
    assert (found.p99_ttft_ms, found.p95_ttft_ms) == (None, 90.0)


@settings(max_examples=60)
@given(st.integers(0, len(TABLE)))
def test_a_table_cut_anywhere_invents_nothing(end):
    whole = read_benchmark_text(TABLE).model_dump()
    try:
        found = read_benchmark_text(TABLE[:end]).model_dump()
    except ValueError:
        return
    skipped = {"valid", "invalid_reasons", "warnings"}
    for key, value in found.items():
        if key not in skipped and value is not None:
            assert value == whole[key]


GENAI_PERF = {"request_throughput": {"unit": "requests/sec", "avg": 3.0}, "input_config": {}}
OTHERS = [
    ("AIPerf / GenAI-Perf", json.dumps(GENAI_PERF)),
    ("GuideLLM", json.dumps({"metadata": {}, "args": {}, "benchmarks": [{"metrics": {}}]})),
    ("SGLang", json.dumps(RESULT | {"mean_e2e_latency_ms": 1.0})),
    ("SGLang", json.dumps(RESULT | {"total_output_tokens_retokenized": 1})),
    ("TensorRT-LLM", json.dumps(RESULT | {"user_throughput": 3.0})),
    ("InferenceX", json.dumps({"tput_per_gpu": 3.0, "mean_ttft": 0.3, "mean_intvty": 30.0})),
    ("inference-perf", json.dumps({"load_summary": {}, "successes": {}, "failures": {}})),
    ("LLMPerf", json.dumps({"results_ttft_s_quantiles_p25": 0.3, "model": "m"})),
    ("LLMPerf", json.dumps({"results": {"ttft_s": {"mean": 0.3}}})),
    ("k6", json.dumps({"metrics": {"http_req_duration": {"avg": 3}}, "root_group": {}})),
    ("Locust", json.dumps([{"num_requests": 3, "response_times": {}}])),
    ("vllm bench throughput", json.dumps({"elapsed_time": 3.0, "requests_per_second": 3.0})),
    ("vllm bench latency", json.dumps({"avg_latency": 3.0, "latencies": [3.0]})),
    ("lm-evaluation-harness", json.dumps({"results": {"gsm8k": {}}, "versions": {}})),
    ("SGLang", TABLE + "Total generated tokens (retokenized):     2000\n"),
    ("SGLang", TABLE.replace("Traffic", "Backend:           vllm\nTraffic")),
    ("SGLang", TABLE + "Mean E2E Latency (ms):                   50.00\n"),
    ("TensorRT-LLM", TABLE + "User throughput (tok/s):                 50.00\n"),
    ("AIPerf", "        NVIDIA AIPerf | LLM Metrics\n"),
    ("k6", "http_req_duration..............: avg=3ms\n"),
    ("ApacheBench", "This is ApacheBench, Version 2.3\n"),
    ("vllm bench throughput", "Throughput: 13.06 requests/s, 4571.29 tokens/s\n"),
]


@pytest.mark.parametrize(
    ("tool", "text"), OTHERS, ids=[f"{i}-{o[0]}" for i, o in enumerate(OTHERS)]
)
def test_other_tools_are_refused_by_name(tool, text):
    with pytest.raises(ValueError, match=tool):
        read_benchmark_text(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("{}", "completed, duration"),
        ('{"completed": 3, "duration": 1.0', "malformed"),
        ("[1, 2]", "not a result"),
        ("3", "not a result"),
        ("hello\n", "neither its JSON nor its printed table"),
    ],
)
def test_what_is_no_result_is_refused(text, says):
    with pytest.raises(ValueError, match=says):
        read_benchmark_text(text)


@settings(max_examples=80)
@given(
    st.one_of(
        st.text(min_size=1),
        st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps),
    )
)
def test_any_text_is_refused(text):
    with pytest.raises(ValueError, match="."):
        read_benchmark_text(text)


def test_command_line(tmp_path, capsys):
    file = tmp_path / "result.json"
    file.write_text(json.dumps(RESULT))
    assert command.main([str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["completed"] == 100
    for data in (b"", b"\x00\x01", b"\xff\xfe", b"{}"):
        file.write_bytes(data)
        assert command.main([str(file)]) == 2
        message = capsys.readouterr().err
        assert str(file) in message
        assert message.count("\n") == 1


def test_another_tools_name_in_a_path_refuses_nothing():
    assert read_benchmark_text("$ cd runs/guidellm/inference-perf | tee AIPerf\n" + TABLE).valid
