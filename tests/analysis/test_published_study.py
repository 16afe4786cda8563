"""The published three-way comparison: from what was measured, what its author derived."""

import json

import pytest

from scripts.lib.analysis.analyse import analyse_study
from scripts.lib.analysis.points.cost import study_cost_usd
from scripts.lib.base.files import write_json
from scripts.lib.engine.startup import LogFacts
from scripts.lib.quality.results import ItemResult, QualityResult
from scripts.lib.study.models import Study
from tests import factories

NAMES = ("bf16", "fp8-dynamic", "gptq-int4")
LEVELS = {"1": 10, "10": 10, "100": 100, "300": 300}


@pytest.fixture(scope="module")
def blog():
    return json.loads(factories.reference("l40s_blog.json").read_text())


@pytest.fixture(scope="module")
def analysis(blog, tmp_path_factory):
    folder = tmp_path_factory.mktemp("blog")
    study = published_study(blog)
    for name in NAMES:
        write_variant(folder, name, blog["measured"])
    return analyse_study(study, folder)


def published_study(blog) -> Study:
    return Study.model_validate(
        {
            "study": "published",
            "baseline": blog["baseline"],
            "engine": {"address": "http://127.0.0.1:8000"},
            "checkpoints": {name: {"path": name} for name in NAMES},
            "variants": {name: {"checkpoint": name} for name in NAMES},
            "workloads": {
                "sharegpt": {
                    "dataset": {"sharegpt": "sharegpt.json"},
                    "concurrency": [int(level) for level in LEVELS],
                    "requests_per_point": list(LEVELS.values()),
                }
            },
            "price": {"usd_per_hour": blog["host"]["usd_per_hour"]},
        }
    )


def write_variant(folder, name, measured) -> None:
    points = []
    for index, (level, requests) in enumerate(LEVELS.items()):
        told = {
            metric: measured[metric].get(level, {}).get(name)
            for metric in ("total_throughput_tok_s", "mean_tpot_ms", "ttft_p99_ms", "duration_s")
        }
        latency = factories.UNKNOWN.model_copy(update={"n": requests})
        points.append(
            factories.make_point(
                [
                    factories.record(
                        sent_s=1, first_token_s=2, last_token_s=3, input_tokens=1, output_tokens=2
                    )
                ]
                * requests,
                workload_point=index,
                concurrency=int(level),
                input_tokens=0,
                output_tokens=0,
                duration_s=told["duration_s"] or 0,
                output_throughput_tok_s=None,
                request_throughput=None,
                achieved_rate=None,
                total_throughput_tok_s=told["total_throughput_tok_s"],
                ttft_ms=latency.model_copy(update={"p99": told["ttft_p99_ms"]}),
                tpot_ms=latency.model_copy(update={"mean": told["mean_tpot_ms"]}),
                e2el_ms=latency,
                server=None,
            )
        )
    startup = measured["startup"][name]
    factories.write_run(
        folder,
        name,
        "sharegpt",
        [(point, []) for point in points],
        with_requests=False,
        series=False,
        facts=LogFacts.model_validate({**startup, "ready": True}),
    )
    write_json(folder / "quality" / name / "quality.json", published_quality(name, measured))


def published_quality(name, measured) -> QualityResult:
    answers, alike = measured["answers"], measured["similarity_to_baseline_pct"]
    items = []
    for axis in alike:
        key = {"reasoning": "reasoning", "fact": "fact", "arithmetic": "arithmetic"}.get(axis)
        graded = key is not None
        text = answers[key][name] if key else ""
        items.append(
            ItemResult(
                id=axis,
                axis=axis,
                task_success=text == answers[key]["expected"] if graded else None,
                format_ok=None,
                tool_success=None,
                degenerate=False,
                reason="as published",
                text=text,
            )
        )
    told = {axis: values.get(name, 100) / 100 for axis, values in alike.items()}
    return QualityResult(
        variant=name, items=items, probe_files={}, settings={"similarity_to_baseline": told}
    )


def ratios(analysis, metric):
    return {
        (row.variant, f"{row.level:g}"): row.metrics[metric].ratio_to_baseline
        for row in analysis.points
    }


def test_throughput_ratios(analysis, blog):
    found = ratios(analysis, "total_throughput_tok_s")
    for level, told in blog["derived"]["throughput_ratio"].items():
        for name, ratio in told.items():
            assert found[name, level] == pytest.approx(ratio, abs=0.01), (name, level)


def test_tpot_changes(analysis, blog):
    found = ratios(analysis, "tpot_mean_ms")
    for level, told in blog["derived"]["tpot_change_pct"].items():
        for name, percent in told.items():
            assert 100 * (found[name, level] - 1) == pytest.approx(percent, abs=1), (name, level)


def test_memory_against_the_baseline(analysis, blog):
    ledger = {row.variant: row for row in analysis.ledger}
    for field, key in (
        ("weights_gib", "weights_vs_baseline_pct"),
        ("kv_cache_tokens", "kv_tokens_vs_baseline_pct"),
    ):
        for name, percent in blog["derived"][key].items():
            ratio = getattr(ledger[name], field).ratio_to_baseline
            assert 100 * (ratio - 1) == pytest.approx(percent, abs=1), (name, field)


def test_loading_times_are_never_compared(analysis):
    for row in analysis.ledger:
        assert row.ready_s.ratio_to_baseline is None
        assert row.model_load_s.ratio_to_baseline is None


def test_the_best_at_300(analysis, blog):
    best = {c.metric: dict(zip(c.levels, c.best, strict=True)) for c in analysis.crossovers}
    derived = blog["derived"]
    assert best["total_throughput_tok_s"][300] == [derived["best_throughput_300"]]
    assert best["tpot_mean_ms"][300] == [derived["best_tpot_300"]]
    assert best["ttft_p99_ms"][300] == [derived["best_ttft_p99_300"]]


def test_the_lowest_tpot_changes_hands_between_100_and_300(analysis):
    tpot = next(c for c in analysis.crossovers if c.metric == "tpot_mean_ms")
    assert tpot.levels == [1, 10, 100, 300]
    assert tpot.best == [["gptq-int4"]] * 2 + [["fp8-dynamic", "gptq-int4"], ["fp8-dynamic"]]


def test_single_runs_name_no_winner(analysis):
    assert analysis.comparisons
    assert {c.outcome for c in analysis.comparisons} == {"undecided"}
    assert all(value.value is None for value in analysis.noise_floor.values())


def test_accuracy_identity_and_blame(analysis, blog):
    derived = blog["derived"]
    views = {view.variant: view for view in analysis.quality}
    for name, told in derived["accuracy"].items():
        value = views[name].task_success
        assert f"{value.value * value.n:.0f}/{value.n}" == told
    for name, identical in derived["identical_outputs"].items():
        assert sum(axis.identical_to_baseline for axis in views[name].axes) == identical
        blameless = [a.axis for a in views[name].axes if a.baseline_wrong_too]
        assert blameless == derived["wrong_answers_not_blamed_on_quantization"]
        assert views[name].lost == 0
    alike = {name: views[name].similarity.value for name in derived["identical_outputs"]}
    assert max(alike, key=alike.get) == derived["best_fidelity"]


def test_cost(blog):
    host = blog["host"]
    cost = study_cost_usd(host["usd_per_hour"], host["hours"])
    assert cost == pytest.approx(blog["derived"]["cost_usd"], abs=0.005)


def test_what_was_not_published_is_not_measured(analysis):
    row = next(row for row in analysis.points if row.level == 10)
    for name in ("output_throughput_tok_s", "goodput_share", "duration_s", "output_tokens_mean"):
        assert row.metrics[name].value is None, name
        assert row.metrics[name].missing
    assert row.metrics["usd_per_million_output_tokens"].value is None
