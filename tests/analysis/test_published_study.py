"""The published three-way comparison: from what was measured, all that its author derived.

The measured numbers go through ``import_results`` and the ordinary analysis; every key of the
author's ``derived`` has a check here, and a key without one fails.
"""

import json

import pytest

from scripts.import_results import main
from scripts.lib.analysis.summary import Summary
from scripts.lib.base.files import read_json
from tests.analysis import import_files
from tests.factories import reference


@pytest.fixture(scope="module")
def derived():
    return json.loads(reference("l40s_blog.json").read_text())["derived"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    base = tmp_path_factory.mktemp("published")
    path = import_files.l40s(base)
    assert main([str(path), "--results", str(base / "results"), "--report"]) == 0
    return base / "results" / "l40s-published"


@pytest.fixture(scope="module")
def summary(folder):
    return Summary.model_validate(read_json(folder / "summary.json"))


def by_variant(rows):
    return {row.variant: row for row in rows}


def point(summary, variant, level):
    return next(r for r in summary.points if (r.variant, r.level) == (variant, float(level)))


def percent_of_baseline(value):
    return 100 * (value.ratio_to_baseline - 1)


def memory(field):
    def check(summary, told):
        rows = by_variant(summary.ledger)
        for name, percent in told.items():
            assert percent_of_baseline(getattr(rows[name], field)) == pytest.approx(percent, abs=1)

    return check


def throughput_ratios(summary, told):
    for level, ratios in told.items():
        for name, ratio in ratios.items():
            found = point(summary, name, level).metrics["total_throughput_tok_s"]
            assert found.ratio_to_baseline == pytest.approx(ratio, abs=0.01), (name, level)


def tpot_changes(summary, told):
    for level, changes in told.items():
        for name, percent in changes.items():
            found = point(summary, name, level).metrics["tpot_mean_ms"]
            assert percent_of_baseline(found) == pytest.approx(percent, abs=1), (name, level)


def accuracy(summary, told):
    views = by_variant(summary.quality)
    for name, score in told.items():
        axes = views[name].axes
        assert f"{sum(a.passed for a in axes)}/{sum(a.items for a in axes)}" == score
        assert views[name].lost == 0


def identical_outputs(summary, told):
    for name, count in told.items():
        axes = by_variant(summary.quality)[name].axes
        assert sum(axis.identical_to_baseline for axis in axes) == count


def not_blamed(summary, told):
    for view in summary.quality:
        if view.variant != summary.baseline:
            assert [axis.axis for axis in view.axes if axis.baseline_wrong_too] == told
            assert not [item for axis in view.axes for item in axis.lost]


def best_at_300(metric):
    def check(summary, told):
        found = next(c for c in summary.crossovers if c.metric == metric)
        assert dict(zip(found.levels, found.best, strict=True))[300] == [told]

    return check


def best_fidelity(summary, told):
    views = by_variant(summary.quality)
    alike = {n: v.similarity.value for n, v in views.items() if n != summary.baseline}
    assert max(alike, key=alike.get) == told


def crossover_tpot(summary, told):
    tpot = next(c for c in summary.crossovers if c.metric == "tpot_mean_ms")
    both = ["fp8-dynamic", "gptq-int4"]
    assert dict(zip(tpot.levels, tpot.best, strict=True)) == {
        1: ["gptq-int4"],
        10: ["gptq-int4"],
        100: both,
        300: ["fp8-dynamic"],
    }
    assert "fp8-dynamic and gptq-int4 tied at 100; fp8-dynamic at 300." in tpot.words
    for words in ("between concurrency 100 and 300", "equal within the noise at 100"):
        assert words in told


def cost_usd(summary, told):
    assert summary.study_cost_usd == pytest.approx(told, abs=0.005)


def load_seconds_comparable(summary, told):
    """Loading times are on record, and nothing compares them."""
    assert told is False
    assert by_variant(summary.ledger)["bf16"].model_load_s.value == 600
    for row in summary.ledger:
        assert row.model_load_s.value is not None
        assert row.model_load_s.ratio_to_baseline is row.ready_s.ratio_to_baseline is None
    compared = {one.metric for one in (*summary.comparisons, *summary.crossovers)}
    metrics = {name for row in summary.points for name in row.metrics}
    assert not {name for name in compared | metrics if "load_s" in name or "ready" in name}


def kernel_path(summary, told):
    verdicts = by_variant(summary.verdicts)
    assert verdicts.keys() == told.keys()
    assert {v.verdict for v in verdicts.values()} == {"as expected"}
    real = {name: verdict.real_scheme for name, verdict in verdicts.items()}
    assert real == {"bf16": "bf16", "fp8-dynamic": "w8a8-fp8", "gptq-int4": "w4a16"}
    assert told["bf16"] == "unquantized"
    assert "no quantization is named" in verdicts["bf16"].summary
    assert told["fp8-dynamic"] == "native w8a8-fp8 (no Marlin line, capability 8.9)"
    assert "the device has the units, no fallback was noted" in verdicts["fp8-dynamic"].summary
    assert summary.host.gpus[0].compute_capability == "8.9"
    assert told["gptq-int4"] == "marlin w4a16"
    said = [piece.says for piece in verdicts["gptq-int4"].evidence]
    assert any("its name points to the kernels of the family marlin" in text for text in said)
    assert verdicts["gptq-int4"].kernel_family == []  # a hint is no proof


CHECKS = {
    "weights_vs_baseline_pct": memory("weights_gib"),
    "kv_tokens_vs_baseline_pct": memory("kv_cache_tokens"),
    "throughput_ratio": throughput_ratios,
    "tpot_change_pct": tpot_changes,
    "accuracy": accuracy,
    "identical_outputs": identical_outputs,
    "wrong_answers_not_blamed_on_quantization": not_blamed,
    "best_throughput_300": best_at_300("total_throughput_tok_s"),
    "best_tpot_300": best_at_300("tpot_mean_ms"),
    "best_ttft_p99_300": best_at_300("ttft_p99_ms"),
    "best_fidelity": best_fidelity,
    "crossover_tpot": crossover_tpot,
    "cost_usd": cost_usd,
    "load_seconds_comparable": load_seconds_comparable,
    "kernel_path": kernel_path,
}


def test_every_derived_value_is_checked(derived):
    assert set(derived) == set(CHECKS)


@pytest.mark.parametrize("key", CHECKS)
def test_the_derived_value_comes_out(key, summary, derived):
    CHECKS[key](summary, derived[key])


# What was not published


def test_single_runs_name_no_winner(summary):
    assert summary.comparisons
    assert {c.outcome for c in summary.comparisons} == {"undecided"}
    assert all(value.value is None for value in summary.noise_floor.values())


def test_published_answers_are_too_few_to_decide(summary):
    assert summary.decision.variant == "bf16"
    assert "1.63 times" in summary.decision.headline
    assert "more probe items might prove it" in summary.decision.headline
    assert any("Imported" in line for line in summary.decision.limitations)


def test_no_limit_was_published_so_none_is_judged(summary):
    assert summary.slo == []
    assert summary.boundaries == []
    assert {row.slo_pass for row in summary.points} == {None}
    assert "it was measured up to concurrency 300" in summary.decision.headline
    assert "SLO" not in summary.decision.headline


def test_what_was_not_published_is_null_and_never_0(folder, summary):
    load = read_json(folder / "runs" / "bf16" / "sharegpt" / "session1" / "load.json")
    published, point_at_10 = load["points"][3], load["points"][1]
    for name in ("completed", "failed", "input_tokens", "output_tokens", "request_throughput"):
        assert published[name] is None, name
    assert load["origin_unix_s"] is None
    assert (published["sent"], published["duration_s"]) == (300, 32.3)
    assert (point_at_10["sent"], point_at_10["duration_s"]) == (10, None)
    assert published["ttft_ms"]["n"] is None
    assert published["client"]["processes"] is None
    manifest = read_json(folder / "checkpoints" / "bf16.json")
    assert manifest["real_bytes"] is None
    row = point(summary, "bf16", 10)
    assert (row.sent, row.completed) == (10, None)
    for name, value in row.metrics.items():
        assert (value.value is None) == (value.missing is not None), name
    for name, why in (
        ("success_rate", "how many requests completed is not known"),
        ("oom", "how many requests ran out of memory is not known"),
        ("duration_s", "the load result does not say"),
        ("output_tokens_mean", "the load result does not say"),
        ("kv_usage_mean", "no /metrics time series"),
    ):
        assert row.metrics[name].missing == why
    assert row.metrics["usd_per_million_output_tokens"].value is None


def test_a_published_tail_of_few_requests_is_passed_on_with_a_warning(summary):
    row = point(summary, "bf16", 300)
    assert row.metrics["ttft_p99_ms"].value == 4228
    assert "p99 needs 662 requests, there are 300" in row.warnings


def test_the_report_says_that_and_what_somebody_else_measured(folder):
    text = (folder / "report" / "report.md").read_text()
    assert "Imported, not measured by this workflow: published three-way" in text
    assert "5.27 USD" in text
    assert "2.83 hours, as the import file says" in text
    assert "The import file does not say with which command it was served." in text
    assert "temperature not recorded" in text
    assert "The study sets no limits" in text
    for wrong in (
        "No server was started",
        "made from the seed",
        "localhost",
        "ShareGPT format",
        "SLO by load",
        "Set in the study file",
    ):
        assert wrong not in text, wrong
