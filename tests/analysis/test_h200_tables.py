"""Our own run by hand on an H200: the tables of four points from its per-request details."""

import json

import pytest

from scripts.lib.analysis.analyse import analyse_study
from scripts.lib.study.models import Study
from tests import factories

NAMES = ("bf16", "fp8", "gptq")


@pytest.fixture(scope="module")
def analysis(tmp_path_factory):
    factories.reference("h200")
    folder = tmp_path_factory.mktemp("h200")
    study = Study.model_validate(
        {
            "study": "h200",
            "baseline": "bf16",
            "engine": {"address": "http://127.0.0.1:8000"},
            "checkpoints": {name: {"path": name} for name in NAMES},
            "variants": {name: {"checkpoint": name} for name in NAMES},
            "workloads": {
                "sharegpt": {
                    "dataset": {"sharegpt": "x.json"},
                    "concurrency": list(factories.H200_LEVELS),
                }
            },
            "slo": {"ttft_p99_ms": 1000, "tpot_p99_ms": 100},
            "quality": None,
        }
    )
    for name in NAMES:
        points = []
        for index, level in enumerate(factories.H200_LEVELS):
            records = factories.h200_records(name, level, start_s=100.0 * index, point=index)
            raw = told(name, level)
            point = factories.make_point(
                records,
                concurrency=level,
                duration_s=raw["duration"],
                output_throughput_tok_s=raw["output_throughput"],
                total_throughput_tok_s=raw["total_token_throughput"],
                request_throughput=raw["request_throughput"],
            )
            points.append((point, records))
        factories.write_run(folder, name, "sharegpt", points, series=False)
    return analyse_study(study, folder)


def told(name, level):
    return json.loads(factories.reference(f"h200/{name}/{name}.{level}.json").read_text())


def test_latencies_are_those_of_the_benchmark(analysis):
    assert len(analysis.points) == 12
    for row in analysis.points:
        raw = told(row.variant, int(row.level))
        for ours, theirs in (
            ("ttft_mean_ms", "mean_ttft_ms"),
            ("ttft_p50_ms", "median_ttft_ms"),
            ("tpot_mean_ms", "mean_tpot_ms"),
            ("tpot_p50_ms", "median_tpot_ms"),
            ("e2el_mean_ms", "mean_e2el_ms"),
        ):
            assert row.metrics[ours].value == pytest.approx(raw[theirs], rel=1e-3), (
                row.level,
                ours,
            )


def test_throughput_against_the_baseline(analysis):
    for row in analysis.points:
        raw, base = told(row.variant, int(row.level)), told("bf16", int(row.level))
        ratio = raw["output_throughput"] / base["output_throughput"]
        value = row.metrics["output_throughput_tok_s"]
        assert value.value == pytest.approx(raw["output_throughput"])
        assert value.ratio_to_baseline == pytest.approx(ratio)


def test_percentiles_without_samples_are_withheld(analysis):
    """Ten requests have no p99, three hundred neither; 300 do have a p95, 100 do not."""
    by_level = {row.level: row.metrics for row in analysis.points if row.variant == "bf16"}
    assert by_level[1]["ttft_p99_ms"].missing == "too few: n=10, p99 needs 662"
    assert by_level[300]["ttft_p99_ms"].missing == "too few: n=300, p99 needs 662"
    assert by_level[100]["ttft_p95_ms"].missing == "too few: n=100, p95 needs 130"
    assert by_level[300]["ttft_p95_ms"].value == pytest.approx(1582.7, abs=0.1)
    assert by_level[100]["ttft_p90_ms"].low is not None
    assert by_level[300]["ttft_p99_ms"].low == pytest.approx(1582.7, abs=1)
    assert by_level[300]["ttft_p99_ms"].high is None


def test_the_trap_runs_at_the_speed_of_the_baseline(analysis):
    """The variant called gptq was served unquantized: no metric sets it apart at low load."""
    for crossover in analysis.crossovers:
        if crossover.metric in ("output_throughput_tok_s", "tpot_mean_ms"):
            assert crossover.best[0] == ["fp8"]
    rows = {(r.variant, r.level): r.metrics for r in analysis.points}
    for level in factories.H200_LEVELS:
        ratio = rows["gptq", level]["output_throughput_tok_s"].ratio_to_baseline
        assert ratio == pytest.approx(1, abs=0.02)


def test_goodput_counts_requests_of_all_that_were_sent(analysis):
    row = next(r for r in analysis.points if r.variant == "bf16" and r.level == 300)
    good = 0
    for record in factories.h200_records("bf16", 300):
        ttft = record["first_token_s"] - record["sent_s"]
        decode = record["last_token_s"] - record["first_token_s"]
        tpot = decode / max(1, record["output_tokens"] - 1)
        good += ttft <= 1.0 and tpot <= 0.1
    assert 0 < good < 300
    assert row.metrics["goodput_share"].value == pytest.approx(good / 300)
    duration = row.metrics["duration_s"].value
    assert row.metrics["goodput_req_s"].value == pytest.approx(good / duration)


def test_the_slo_is_judged_with_a_warning_where_samples_are_few(analysis):
    row = next(r for r in analysis.points if r.variant == "bf16" and r.level == 300)
    assert row.slo_pass is False
    assert any(s.startswith("ttft_p99_ms: 1,583.0 ms is above") for s in row.slo_failed)
    assert any("300 samples; p99 needs 662" in warning for warning in row.warnings)
    words = {b.variant: b.words for b in analysis.boundaries}
    assert words["bf16"] == "passes up to 100, fails at 300"
