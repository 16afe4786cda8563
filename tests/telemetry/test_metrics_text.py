"""One scrape of /metrics: every version's names, several engines, malformed text."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts import read_metrics
from scripts.lib.telemetry.metrics_text import HistogramTotals, parse_metrics

SHARED = Path(__file__).parents[3] / "shared"
CASES = sorted((SHARED / "corpus" / "metrics").glob("*.expect.json"))
SAME = {
    "running": "running",
    "waiting": "waiting",
    "kv_usage": "kv_cache_usage",
    "preemptions": "preemptions",
    "prompt_tokens": "prompt_tokens",
    "generation_tokens": "generation_tokens",
    "prefix_cache_queries": "prefix_cache_queries",
    "num_gpu_blocks": "gpu_blocks",
    "block_size": "block_size",
    "requests_success_by_reason": "requests_by_finish_reason",
}
HISTOGRAMS = {"ttft": "ttft", "itl": "itl", "tpot_request": "tpot", "e2e": "e2el"}


@pytest.mark.skipif(not CASES, reason="the shared corpus is not beside the project")
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name.split(".")[0])
def test_corpus(path):
    expected = json.loads(path.read_text())
    found = parse_metrics(path.with_name(path.name.replace(".expect.json", ".txt")).read_text())
    facts = found.model_dump()
    for theirs, ours in SAME.items():
        if theirs in expected:
            assert facts[ours] == expected[theirs], ours
        elif ours != "requests_by_finish_reason":
            assert facts[ours] is None, ours
    for theirs, ours in HISTOGRAMS.items():
        if f"{theirs}_count" in expected:
            assert getattr(found.histograms, ours) == HistogramTotals(
                count=expected[f"{theirs}_count"], sum_s=expected[f"{theirs}_sum"]
            )
        else:
            assert getattr(found.histograms, ours) is None


@pytest.mark.skipif(not SHARED.exists(), reason="the reference runs are not beside the project")
@pytest.mark.parametrize("run", ["bf16", "fp8", "gptq"])
def test_reference_scrape_agrees_with_what_was_sent(run):
    found = parse_metrics((SHARED / "reference" / "h200" / run / "metrics.prom").read_text())
    assert found.histograms.ttft.count == 420
    assert found.histograms.tpot.count == 420
    assert sum(found.requests_by_finish_reason.values()) == 420
    assert found.histograms.queue_time.sum_s > 0


def scrape(*lines):
    return parse_metrics("\n".join(lines) + "\n")


def test_engines_add_up_but_never_their_usage():
    found = scrape(
        'vllm:num_requests_running{engine="0",model_name="m"} 3.0',
        'vllm:num_requests_running{engine="1",model_name="m"} 4.0',
        'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25',
        'vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75',
        'vllm:generation_tokens_total{engine="0",model_name="m"} 10.0',
        'vllm:generation_tokens_total{engine="1",model_name="m"} 32.0',
        'vllm:time_to_first_token_seconds_count{engine="0"} 2.0',
        'vllm:time_to_first_token_seconds_count{engine="1"} 3.0',
        'vllm:time_to_first_token_seconds_sum{engine="0"} 0.5',
        'vllm:time_to_first_token_seconds_sum{engine="1"} 0.25',
    )
    assert (found.running, found.generation_tokens) == (7, 42)
    assert found.kv_cache_usage == 0.75
    assert found.kv_cache_usage_by_engine == {"0": 0.25, "1": 0.75}
    assert found.histograms.ttft == HistogramTotals(count=5, sum_s=0.75)
    assert found.engines == ["0", "1"]


@pytest.mark.parametrize(
    ("lines", "key", "value"),
    [
        (["vllm:gpu_cache_usage_perc 0.5"], "kv_cache_usage", 0.5),
        (["vllm:gpu_cache_usage_perc 0.5", "vllm:kv_cache_usage_perc 0.4"], "kv_cache_usage", 0.4),
        (["vllm:cpu_cache_usage_perc 0.5"], "kv_cache_usage", None),
        (["vllm:gpu_prefix_cache_hit_rate -1.0"], "prefix_cache_hits", None),
        (["vllm:gpu_prefix_cache_hits_total 5.0"], "prefix_cache_hits", 5),
        (["vllm:prefix_cache_hits_created 1.7e+09"], "prefix_cache_hits", None),
        (['vllm:num_requests_waiting_by_reason{reason="capacity"} 9.0'], "waiting", None),
        (["vllm:num_requests_swapped 9.0"], "waiting", None),
        (["vllm:num_preemptions_created 1.7e+09"], "preemptions", None),
        (["vllm:kv_cache_usage_perc NaN"], "kv_cache_usage", None),
        (["ray_vllm:num_requests_running 2.0"], "running", 2),
        (["vllm:prompt_tokens_total 1.5e+06"], "prompt_tokens", 1_500_000),
        (["vllm:prompt_tokens_total 10.0", "vllm:prompt_tokens_total 12.0"], "prompt_tokens", 12),
    ],
)
def test_names_of_all_versions(lines, key, value):
    assert getattr(scrape(*lines), key) == value


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("time_per_output_token_seconds", "tpot"),
        ("request_time_per_output_token_seconds", "tpot"),
        ("inter_token_latency_seconds", "itl"),
        ("request_queue_time_seconds", "queue_time"),
        ("e2e_request_latency_seconds", "e2el"),
    ],
)
def test_histograms_of_all_versions(name, key):
    found = scrape(f"vllm:{name}_count 4.0", f"vllm:{name}_sum 2.5", f"vllm:{name}_created 1.7e9")
    assert getattr(found.histograms, key) == HistogramTotals(count=4, sum_s=2.5)


def test_the_requests_own_tpot_comes_before_the_older_series():
    found = scrape(
        "vllm:time_per_output_token_seconds_count 90.0",
        "vllm:time_per_output_token_seconds_sum 9.0",
        "vllm:request_time_per_output_token_seconds_count 3.0",
        "vllm:request_time_per_output_token_seconds_sum 0.3",
    )
    assert found.histograms.tpot == HistogramTotals(count=3, sum_s=0.3)


def test_a_histogram_cut_in_two_is_half_known():
    found = scrape("vllm:time_to_first_token_seconds_count 4.0")
    assert found.histograms.ttft == HistogramTotals(count=4, sum_s=None)


@pytest.mark.parametrize(
    "around",
    [
        "{}\n% Total    % Received\n",
        "* Connected to localhost\n> GET /metrics HTTP/1.1\n{}\n",
        "$ curl -s localhost:8000/metrics | grep vllm\n{}\n",
        "> {}\n",
        "vllm-1  | {}\n",
        "```\n{}\n```\n",
        '{}\nvllm:broken{{model="x}} 3\n',
    ],
)
def test_malformed_text_is_survived(around):
    line = 'vllm:num_requests_running{engine="0",model_name="a \\"b\\" {c}"} 16.0'
    assert parse_metrics(around.format(line)).running == 16


@pytest.mark.parametrize(
    ("text", "running"),
    [
        ("vllm:num_requests_running 16.0", 16),
        ("vllm:num_requests_running 16", None),
        ("vllm:num_requests_running 1", None),
    ],
)
def test_a_number_that_may_be_cut_is_not_used(text, running):
    assert parse_metrics("vllm:num_requests_waiting 8.0\n" + text).running == running


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("\x00\x01", "binary"),
        ("<html>502 Bad Gateway</html>", "Prometheus"),
        ("sglang:num_running_reqs 3.0\n", "SGLang"),
        ("tgi_queue_size 3.0\n", "Text Generation Inference"),
    ],
)
def test_what_is_no_scrape_is_refused(text, says):
    with pytest.raises(ValueError, match=says):
        parse_metrics(text)


def test_a_server_without_the_series_says_unknown():
    found = scrape("python_gc_objects_collected_total 3.0", "vllm:lora_requests_info 1.0")
    assert found.running is None
    assert found.histograms.ttft is None


REAL = 'vllm:num_requests_running{engine="0"} 16.0\nvllm:prompt_tokens_total{engine="0"} 331882.0\n'


@settings(max_examples=80)
@given(st.integers(1, len(REAL)))
def test_a_cut_anywhere_invents_nothing(end):
    try:
        found = parse_metrics(REAL[:end])
    except ValueError:
        return
    assert found.running in (None, 16)
    assert found.prompt_tokens in (None, 331882)


@settings(max_examples=80)
@given(st.text(min_size=1))
def test_any_text_is_read_or_refused(text):
    try:
        assert parse_metrics(text).prompt_tokens is None
    except ValueError:
        return


def test_command_line(tmp_path, capsys):
    file = tmp_path / "metrics.txt"
    file.write_text(REAL)
    assert read_metrics.main([str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["running"] == 16
    file.write_bytes(b"\xff\xfe\x00binary")
    assert read_metrics.main([str(file)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert read_metrics.main([str(tmp_path / "absent")]) == 2
