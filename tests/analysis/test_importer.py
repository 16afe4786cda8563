"""Importing measurements made by hand: the published table, the load model, the H200 run."""

from __future__ import annotations

import json
import runpy
import shlex
import sys
from pathlib import Path

import pytest
import yaml

from scripts.import_results import main
from scripts.lib.analysis.import_models import ImportPoint, ImportStudy, canonical_key
from scripts.lib.analysis.import_points import ImportProblem, import_point
from scripts.lib.analysis.import_quality import same_answer
from scripts.lib.analysis.importer import import_study, read_import
from scripts.lib.analysis.summary import Summary
from scripts.lib.base.files import read_json, write_json
from scripts.lib.load.results import LoadResult
from tests.analysis import import_files
from tests.factories import H200_LEVELS, reference

PROJECT = Path(__file__).resolve().parents[2]
FAILED_LOG = """INFO 04-25 03:29:39 [api_server.py:1289] vLLM API server version 0.25.1
(EngineCore pid=1) ERROR torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.
(EngineCore pid=1) ERROR EngineCore failed to start.
"""


def imported(make, folder) -> Summary:
    """Import, judge, tabulate, summarise and render; return the summary."""
    path = make(folder)
    assert main([str(path), "--results", str(folder / "results"), "--report"]) == 0
    name = read_import(path).study
    assert (folder / "results" / name / "report" / "report.html").stat().st_size > 10_000
    return Summary.model_validate(read_json(folder / "results" / name / "summary.json"))


@pytest.fixture(scope="module")
def l40s(tmp_path_factory):
    return imported(import_files.l40s, tmp_path_factory.mktemp("l40s"))


@pytest.fixture(scope="module")
def load_model(tmp_path_factory):
    return imported(import_files.load_model, tmp_path_factory.mktemp("load_model"))


@pytest.fixture(scope="module")
def h200(tmp_path_factory):
    return imported(import_files.h200, tmp_path_factory.mktemp("h200"))


@pytest.fixture(scope="module")
def derived():
    return json.loads(reference("l40s_blog.json").read_text())["derived"]


def point(summary, variant, level):
    return next(r for r in summary.points if (r.variant, r.level) == (variant, float(level)))


def by_variant(rows):
    return {row.variant: row for row in rows}


def test_published_memory_comes_out(l40s, derived):
    rows = by_variant(l40s.ledger)
    for name, percent in derived["weights_vs_baseline_pct"].items():
        assert 100 * (rows[name].weights_gib.ratio_to_baseline - 1) == pytest.approx(percent, abs=1)
    for name, percent in derived["kv_tokens_vs_baseline_pct"].items():
        ratio = rows[name].kv_cache_tokens.ratio_to_baseline
        assert 100 * (ratio - 1) == pytest.approx(percent, abs=1)


def test_published_speed_comes_out(l40s, derived):
    for level, ratios in derived["throughput_ratio"].items():
        for name, ratio in ratios.items():
            found = point(l40s, name, level).metrics["total_throughput_tok_s"]
            assert found.ratio_to_baseline == pytest.approx(ratio, abs=0.01)
    for level, changes in derived["tpot_change_pct"].items():
        for name, percent in changes.items():
            found = point(l40s, name, level).metrics["tpot_mean_ms"].ratio_to_baseline
            assert 100 * (found - 1) == pytest.approx(percent, abs=1)


def best_at(summary, metric, level, lowest):
    rows = [r for r in summary.points if r.level == level and r.metrics[metric].value is not None]
    choose = min if lowest else max
    return choose(rows, key=lambda row: row.metrics[metric].value).variant


def test_published_winners_come_out(l40s, derived):
    assert best_at(l40s, "total_throughput_tok_s", 300, False) == derived["best_throughput_300"]
    assert best_at(l40s, "tpot_mean_ms", 300, True) == derived["best_tpot_300"]
    assert best_at(l40s, "ttft_p99_ms", 300, True) == derived["best_ttft_p99_300"]
    crossover = next(c for c in l40s.crossovers if c.metric == "tpot_mean_ms")
    best = dict(zip(crossover.levels, crossover.best, strict=True))
    assert best[1] == best[10] == ["gptq-int4"]
    assert set(best[100]) == {"fp8-dynamic", "gptq-int4"}
    assert best[300] == ["fp8-dynamic"]


def test_published_quality_comes_out(l40s, derived):
    views = by_variant(l40s.quality)
    for name, score in derived["accuracy"].items():
        right, asked = map(int, score.split("/"))
        graded = [axis for axis in views[name].axes if axis.items]
        assert sum(axis.passed for axis in graded) == right
        assert sum(axis.items for axis in graded) == asked
    for name, count in derived["identical_outputs"].items():
        assert sum(axis.identical_to_baseline for axis in views[name].axes) == count
        wrong_too = [axis.axis for axis in views[name].axes if axis.baseline_wrong_too]
        assert wrong_too == derived["wrong_answers_not_blamed_on_quantization"]
        assert views[name].lost == 0
    fidelity = {n: views[n].similarity.value for n in derived["identical_outputs"]}
    assert max(fidelity, key=fidelity.get) == derived["best_fidelity"]


def test_published_native_fp8_is_recognised(l40s):
    verdicts = by_variant(l40s.verdicts)
    assert verdicts["fp8-dynamic"].verdict == "as expected"
    assert verdicts["fp8-dynamic"].real_scheme == "w8a8-fp8"
    assert "not what the checkpoint says" not in {v.verdict for v in l40s.verdicts}


def test_published_answers_are_too_few_to_decide(l40s):
    assert l40s.decision.variant == "bf16"
    assert "1.63 times" in l40s.decision.headline
    assert "more probe items might prove it" in l40s.decision.headline
    assert any("Imported" in line for line in l40s.decision.limitations)


def test_published_cost_comes_out(tmp_path, derived):
    path = import_files.l40s(tmp_path, hours=2.83)
    assert main([str(path), "--results", str(tmp_path / "results"), "--report"]) == 0
    summary = read_json(tmp_path / "results" / "l40s-published" / "summary.json")
    assert summary["study_cost_usd"] == pytest.approx(derived["cost_usd"], abs=0.01)


def test_the_load_models_verdicts_come_out(load_model):
    model = json.loads(reference("load_model.json").read_text())
    rows = {row.level: row for row in load_model.points}
    assert [lv for lv, row in rows.items() if row.slo_pass] == model["verdict"]["passes"]
    missed = {text.split(":")[0] for text in rows[64].slo_failed}
    assert missed == set(model["verdict"]["fails"]["64"])
    boundary = load_model.boundaries[0]
    assert boundary.last_pass == model["verdict"]["last_passing_concurrency"]
    fastest = max(rows.values(), key=lambda r: r.metrics["output_throughput_tok_s"].value)
    assert fastest.level == model["verdict"]["highest_raw_throughput"]
    assert rows[64].metrics["throughput_within_slo_tok_s"].value == 0
    assert rows[64].metrics["kv_usage_peak"].value == 1.0
    assert rows[1].metrics["queue_mean_ms"].value is None
    assert "concurrency 32" in load_model.decision.headline
    assert "between 32 and 64" in " ".join(load_model.decision.limitations)
    rules = {finding.rule for finding in load_model.findings}
    assert {"batched beyond the SLO", "requests fail"} <= rules


def test_unknown_counts_and_machines_are_said_to_be_unknown(load_model):
    text = " ".join(load_model.not_measured)
    assert "host.json is not there" in text
    assert "start-up log" not in text  # a start is on record, without facts
    warnings = point(load_model, "model", 8).warnings
    assert "how many requests were sent is not given" in warnings
    assert load_model.host.memory_gib is None


def test_h200_tables_of_four_points(h200):
    assert {row.level for row in h200.points} == set(map(float, H200_LEVELS))
    for variant in ("bf16", "fp8", "gptq"):
        for level in H200_LEVELS:
            raw = json.loads(reference(f"h200/{variant}/{variant}.{level}.json").read_text())
            row = point(h200, variant, level)
            metrics = row.metrics
            assert (row.sent, row.completed) == (raw["num_prompts"], raw["completed"])
            assert row.valid
            for name, key in (
                ("output_throughput_tok_s", "output_throughput"),
                ("total_throughput_tok_s", "total_token_throughput"),
                ("ttft_mean_ms", "mean_ttft_ms"),
                ("tpot_mean_ms", "mean_tpot_ms"),
                ("e2el_mean_ms", "mean_e2el_ms"),
                ("duration_s", "duration"),
            ):
                assert metrics[name].value == pytest.approx(raw[key], rel=2e-3), (name, level)
            assert metrics["goodput_req_s"].value is not None


def test_h200_percentiles_without_enough_requests_are_withheld(h200):
    assert point(h200, "bf16", 10).metrics["ttft_p99_ms"].missing.startswith("too few: n=10")
    assert point(h200, "bf16", 300).metrics["ttft_p95_ms"].value is not None
    assert point(h200, "bf16", 300).metrics["ttft_p99_ms"].missing.startswith("too few: n=300")


def test_the_h200_trap_is_caught_and_disqualified(h200):
    verdict = by_variant(h200.verdicts)["gptq"]
    assert verdict.verdict == "not what the checkpoint says"
    assert verdict.real_scheme == "bf16"
    assert h200.decision.variant == "fp8"
    candidate = next(c for c in h200.decision.candidates if c.variant == "gptq")
    assert candidate.qualifies is False
    assert next(g for g in candidate.gates if g.passed is False).gate == "kernel"
    assert "BF16" in point(h200, "gptq", 1).stamp
    assert any("random weights" in line for line in h200.decision.limitations)


def test_the_scrape_shows_that_the_client_saw_other_latencies(h200):
    warnings = point(h200, "fp8", 1).warnings
    assert any("client's mean TTFT" in w and "engine's own histogram" in w for w in warnings)
    findings = {f.variant: f for f in h200.findings if f.rule == "client and engine disagree"}
    assert any("16.88 ms" in line and "14.59 ms" in line for line in findings["fp8"].evidence)
    assert not any(f.rule == "API-server-bound" for f in h200.findings)


def test_raw_files_are_kept_with_their_hashes(h200):
    names = [name for name in h200.files if name.startswith("runs/fp8/")]
    for part in ("imported/fp8.300.json", "imported/metrics.prom", "server.log", "load.json"):
        assert any(name.endswith(part) for name in names), part


def run_module(capsys, monkeypatch, name, *words):
    """Run ``python -m name words…`` in this process; return its status and output."""
    monkeypatch.setattr(sys, "argv", [name, *words])
    monkeypatch.delitem(sys.modules, name, raising=False)
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(name, run_name="__main__")
    return ended.value.code, capsys.readouterr().out


def test_the_chain_runs_through_the_command_lines_and_gives_the_same(
    load_model, tmp_path, capsys, monkeypatch
):
    path = import_files.load_model(tmp_path)
    results = tmp_path / "results"

    status, output = run_module(
        capsys, monkeypatch, "scripts.import_results", str(path), "--results", str(results)
    )
    assert status == 0
    commands = [shlex.split(command)[2:] for command in json.loads(output)["next"]]
    steps = ("judge_kernels", "build_tables", "summarise_study", "render_report")
    assert [command[0] for command in commands] == [f"scripts.{step}" for step in steps]
    for command in commands:
        status, _ = run_module(capsys, monkeypatch, *command)
        assert status == 0, (command, capsys.readouterr().err)
    folder = results / "load-model"
    again = Summary.model_validate(read_json(folder / "summary.json"))
    unstable = {"provenance"}  # without dates, the time of making it
    assert again.model_dump(exclude=unstable) == load_model.model_dump(exclude=unstable)
    assert (folder / "report" / "report.md").exists()
    assert "groups" in (folder / "alerts.yaml").read_text()


# The file's own rules


def small(tmp_path, **changes):
    content = {
        "study": "small",
        "source": "a test",
        "baseline": "a",
        "workload": {"dataset": "prompts"},
        "variants": {"a": {"points": [{"concurrency": 1, "output_tok_s": 10.0}]}},
    }
    return import_files.write(tmp_path / "small.yaml", {**content, **changes})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"baseline": "b"}, 'baseline is "b"; the variants are a'),
        ({"colour": "red"}, "colour: is no key of an import file"),
        ({"source": None}, "source"),
        ({"variants": {}}, "variants"),
        ({"variants": {"a": {}}}, "no variant has a load point"),
        ({"variants": {"a": {"points": [{"output_tok_s": 1}]}}}, "give a file, or a concurrency"),
        ({"variants": {"a": {"points": [{"file": "gone.json"}]}}}, "gone.json: cannot be read"),
        ({"tables": {"output_tok_s": {1: {"zz": 3}}}}, '"zz" is no variant of this file'),
        ({"host": {"gpu": "L4"}}, "a GPU needs memory_mib and compute_capability"),
        (
            {"variants": {"a": {"points": [{"concurrency": 1}, {"rate": 2.0}]}}},
            "different workloads",
        ),
        (
            {"variants": {"a": {"log": "no.log", "points": [{"concurrency": 1}]}}},
            "no.log (variants.a.log)",
        ),
    ],
)
def test_a_bad_import_file_is_one_sentence_and_status_2(tmp_path, capsys, changes, words):
    path = small(tmp_path, **changes)
    assert main([str(path), "--results", str(tmp_path / "results")]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ""


@pytest.mark.parametrize("text", ["", "[]", "a: [", "just words"])
def test_a_file_that_is_no_import_is_refused(tmp_path, capsys, text):
    path = tmp_path / "x.yaml"
    path.write_text(text)
    assert main([str(path), "--results", str(tmp_path / "results")]) == 2
    assert str(path) in capsys.readouterr().err


def test_a_measured_study_is_never_overwritten(tmp_path):
    write_json(tmp_path / "results" / "small" / "study.json", {})
    with pytest.raises(ImportProblem, match="holds a study that was measured"):
        import_study(small(tmp_path), tmp_path / "results")


def test_importing_again_replaces_the_former_import(tmp_path):
    results = tmp_path / "results"
    two = {n: {"points": [{"concurrency": 1, "output_tok_s": 1.0}]} for n in ("a", "b")}
    import_study(small(tmp_path, variants=two), results)
    assert (results / "small" / "runs" / "b").exists()
    import_study(small(tmp_path), results)
    assert not (results / "small" / "runs" / "b").exists()


@pytest.mark.parametrize(
    ("key", "own"),
    [
        ("mean_ttft_ms", "ttft_mean_ms"),
        ("median_tpot_ms", "tpot_p50_ms"),
        ("p99_e2el_ms", "e2el_p99_ms"),
        ("ttft_p95_ms", "ttft_p95_ms"),
        ("output_tok_s", "output_throughput_tok_s"),
        ("kv_usage", "kv_usage_peak"),
    ],
)
def test_usual_names_of_metrics_are_known(key, own):
    assert canonical_key(key) == own


def test_a_number_given_under_two_names_is_refused():
    with pytest.raises(ValueError, match="given twice"):
        ImportPoint.model_validate({"concurrency": 1, "mean_ttft_ms": 1.0, "ttft_mean_ms": 2.0})


def test_a_file_and_typed_numbers_do_not_mix():
    with pytest.raises(ValueError, match="takes its numbers from there"):
        ImportPoint.model_validate({"file": "x.json", "ttft_mean_ms": 1.0})


def bench(tmp_path, **changes):
    content = {
        "num_prompts": 3,
        "max_concurrency": 2,
        "request_rate": "inf",
        "duration": 2.0,
        "completed": 2,
        "total_input_tokens": 20,
        "total_output_tokens": 6,
        "request_throughput": 1.0,
        "output_throughput": 3.0,
        "total_token_throughput": 13.0,
        "input_lens": [10, 10, 10],
        "output_lens": [3, 3, 0],
        "ttfts": [0.1, 0.2, 0.0],
        "itls": [[0.01, 0.03], [0.02, 0.02], []],
        "errors": ["", "", "Traceback\nTimeoutError: no answer"],
        "start_times": [100.0, 100.5, 101.0],
        **changes,
    }
    (tmp_path / "bench.json").write_text(json.dumps(content))
    return ImportPoint(file="bench.json")


def test_requests_of_a_detailed_result_are_kept(tmp_path):
    one = import_point(bench(tmp_path), tmp_path, 10.0)
    assert [r["ok"] for r in one.records] == [True, True, False]
    assert one.records[1]["sent_s"] == 10.5
    assert one.records[1]["first_token_s"] == pytest.approx(10.7)
    assert one.records[1]["last_token_s"] == pytest.approx(10.74)
    assert one.records[2]["error"] == "TimeoutError: no answer"
    assert one.point.errors == {"TimeoutError: no answer": 1}
    assert one.point.valid is False
    assert (one.point.sent, one.point.completed, one.point.failed) == (3, 2, 1)


def test_percentiles_a_file_does_not_print_come_from_its_requests(tmp_path):
    one = import_point(bench(tmp_path), tmp_path, 0.0).point
    assert one.ttft_ms.mean == pytest.approx(150)
    assert one.ttft_ms.p50 == pytest.approx(150)
    assert one.tpot_ms.mean == pytest.approx(20)
    assert one.itl_ms.n == 4
    printed = import_point(bench(tmp_path, mean_ttft_ms=151.0), tmp_path, 0.0).point
    assert printed.ttft_ms.mean == 151.0


def test_without_send_times_there_are_latencies_but_no_records(tmp_path):
    one = import_point(bench(tmp_path, start_times=None), tmp_path, 0.0)
    assert one.records == []
    assert one.point.tpot_ms.mean == pytest.approx(20)


def test_a_concurrency_that_contradicts_the_file_is_refused(tmp_path):
    bench(tmp_path)
    with pytest.raises(ImportProblem, match="was run at concurrency 2, the import file says 4"):
        import_point(ImportPoint(file="bench.json", concurrency=4), tmp_path, 0.0)


def test_open_loop_results_become_rates(tmp_path):
    bench(tmp_path, max_concurrency=None, request_rate=2.5)
    path = small(tmp_path, variants={"a": {"points": [{"file": "bench.json"}]}})
    study, folder = import_study(path, tmp_path / "r")
    assert study.workloads["imported"].rate == [2.5]
    load = read_json(folder / "runs" / "a" / "imported" / "session1" / "load.json")
    assert load["points"][0]["rate"] == 2.5


def test_a_load_that_nothing_names_is_asked_for(tmp_path):
    bench(tmp_path, max_concurrency=None)
    with pytest.raises(ImportProblem, match="does not say its concurrency or rate"):
        import_point(ImportPoint(file="bench.json"), tmp_path, 0.0)


def test_requests_of_half_of_the_points_are_not_taken_for_all(tmp_path):
    bench(tmp_path)
    points = [{"file": "bench.json"}, {"concurrency": 4, "output_tok_s": 9.0}]
    _, folder = import_study(small(tmp_path, variants={"a": {"points": points}}), tmp_path / "r")
    run = folder / "runs" / "a" / "imported" / "session1"
    assert not (run / "requests.jsonl.gz").exists()
    warnings = read_json(run / "load.json")["points"][1]["warnings"]
    assert any("taken as printed" in warning for warning in warnings)


def test_paths_and_secrets_of_an_import_are_not_passed_on(tmp_path):
    variant = {
        "command": "/opt/llm/bin/vllm serve /srv/models/m --api-key s3cret",
        "env": {"HF_TOKEN": "hf_abcdefghijklmnopqrst"},
        "points": [{"concurrency": 1, "output_tok_s": 1.0}],
    }
    _, folder = import_study(small(tmp_path, variants={"a": variant}), tmp_path / "r")
    startup = read_json(folder / "runs" / "a" / "imported" / "session1" / "startup.json")
    assert startup["command"] == ["<path>/vllm", "serve", "<path>/m", "--api-key", "***"]
    assert startup["environment"] == {"HF_TOKEN": "***"}
    assert "hf_abc" not in (folder / "imported.yaml").read_text()
    assert "/srv/models" not in (folder / "imported.yaml").read_text()


def test_a_printed_table_is_read(tmp_path):
    (tmp_path / "table.txt").write_text(
        "============ Serving Benchmark Result ============\n"
        "Successful requests:                     10\n"
        "Benchmark duration (s):                  5.00\n"
        "Total input tokens:                      100\n"
        "Total generated tokens:                  200\n"
        "Request throughput (req/s):              2.00\n"
        "Output token throughput (tok/s):         40.00\n"
        "Total Token throughput (tok/s):          60.00\n"
        "Mean TTFT (ms):                          12.50\n"
        "Mean TPOT (ms):                          3.50\n"
        "==================================================\n"
    )
    path = small(tmp_path, variants={"a": {"points": [{"file": "table.txt", "concurrency": 4}]}})
    _, folder = import_study(path, tmp_path / "results")
    load = LoadResult.model_validate(
        read_json(folder / "runs" / "a" / "imported" / "session1" / "load.json")
    )
    found = load.points[0]
    assert (found.concurrency, found.completed, found.output_throughput_tok_s) == (4, 10, 40.0)
    assert found.ttft_ms.mean == 12.5
    assert found.ttft_ms.p99 is None


def test_repetitions_and_sessions_are_counted(tmp_path):
    points = [
        {"concurrency": 1, "output_tok_s": 10.0},
        {"concurrency": 1, "output_tok_s": 10.2},
        {"concurrency": 1, "output_tok_s": 9.9, "session": 2},
    ]
    study, folder = import_study(
        small(tmp_path, variants={"a": {"points": points}}), tmp_path / "r"
    )
    assert study.workloads["imported"].repetitions == 2
    assert study.workloads["imported"].sessions == 2
    first = read_json(folder / "runs" / "a" / "imported" / "session1" / "load.json")
    assert [p["repetition"] for p in first["points"]] == [1, 2]


def test_a_variant_that_did_not_start_is_a_failure_row(tmp_path):
    variants = yaml.safe_load(small(tmp_path).read_text())["variants"]
    variants["b"] = {"log_text": FAILED_LOG}
    path = small(tmp_path, variants=variants)
    assert main([str(path), "--results", str(tmp_path / "results"), "--report"]) == 0
    summary = Summary.model_validate(read_json(tmp_path / "results" / "small" / "summary.json"))
    assert [(f.variant, f.failure.kind) for f in summary.failures] == [("b", "oom")]
    assert summary.decision.rejected["b"]


def test_a_log_and_typed_facts_complete_one_another(tmp_path):
    log = "Model loading took 14.25 GiB and 2.6 seconds\nGPU KV cache size: 444,592 tokens\n"
    variants = {
        "a": {
            "log_text": log,
            "startup": {"vllm_version": "0.8.5", "weights_gib": 99.0},
            "points": [{"concurrency": 1}],
        }
    }
    _, folder = import_study(small(tmp_path, variants=variants), tmp_path / "r")
    run = folder / "runs" / "a" / "imported" / "session1"
    facts = read_json(run / "startup.json")["facts"]
    assert facts["weights_gib"] == 14.25  # the log's word stands
    assert facts["vllm_version"] == "0.8.5"
    assert (run / "server.log").read_text() == log


@pytest.mark.parametrize(
    ("answer", "expected", "same"),
    [
        ("42,325", "42325", True),
        ("42325.0", "42325", True),
        ("41939", "42325", False),
        (" bob. ", "Bob", True),
        ("Bobby", "Bob", False),
    ],
)
def test_typed_answers(answer, expected, same):
    assert same_answer(answer, expected) is same


def test_the_documented_example_is_a_valid_import_file(tmp_path):
    text = (PROJECT / "docs" / "import.md").read_text()
    example = text.split("```yaml")[1].split("```")[0]
    study = ImportStudy.model_validate(yaml.safe_load(example))
    documented = set(yaml.safe_load(example))
    assert documented <= set(ImportStudy.model_fields)
    assert study.points_of(study.baseline)


def test_every_key_of_an_import_file_is_documented():
    text = (PROJECT / "docs" / "import.md").read_text()
    for name in ImportStudy.model_fields:
        assert f"`{name}`" in text, name
