"""Importing measurements made by hand: the load model, the H200 run, the example of the docs."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest
import yaml

from scripts.import_results import main
from scripts.lib.analysis.import_models import ImportStudy
from scripts.lib.analysis.import_numbers import ImportPoint, canonical_key
from scripts.lib.analysis.import_points import ImportProblem, import_point
from scripts.lib.analysis.import_quality import same_answer
from scripts.lib.analysis.importer import import_study, read_import
from scripts.lib.analysis.summary import Summary
from scripts.lib.base.files import read_json, write_json
from scripts.lib.engine.startup import Startup
from scripts.lib.load.results import LoadResult
from scripts.lib.plan.judge_runs import judge_runs
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
def load_model(tmp_path_factory):
    return imported(import_files.load_model, tmp_path_factory.mktemp("load_model"))


@pytest.fixture(scope="module")
def h200(tmp_path_factory):
    return imported(import_files.h200, tmp_path_factory.mktemp("h200"))


def point(summary, variant, level):
    return next(r for r in summary.points if (r.variant, r.level) == (variant, float(level)))


def by_variant(rows):
    return {row.variant: row for row in rows}


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
    assert [row.metrics["queue_p95_ms"].value for row in rows.values()] == [0, 0, 0, 205.8, 1130]
    assert rows[1].metrics["oom"].value == 0
    assert rows[1].metrics["success_rate"].missing == "how many requests were sent is not known"
    assert rows[1].metrics["kv_usage_mean"].value is None
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
    assert load_model.timelines == []
    assert {(row.sent, row.completed) for row in load_model.points} == {(None, None)}
    assert load_model.workloads[0].load_words.endswith("how many requests is not recorded")
    assert load_model.workloads[0].dataset_words == "none: a formula"
    assert load_model.workloads[0].seed is None
    assert load_model.machine_hours is load_model.study_cost_usd is None


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


@pytest.mark.parametrize("make", [import_files.load_model, import_files.h200])
def test_the_report_judges_kernels_as_the_command_does(make, tmp_path, capsys, monkeypatch):
    """The same data give the same verdict, with the same evidence: log, weights and speed."""
    words = [str(make(tmp_path)), "--results", str(tmp_path / "results")]
    assert main(words) == 0
    by_command = {}
    for command in json.loads(capsys.readouterr().out)["next"]:
        name, *rest = shlex.split(command)[2:]
        if name == "scripts.judge_kernels":
            assert run_module(capsys, monkeypatch, name, *rest)[0] == 0
            by_command[Path(rest[-1])] = read_json(Path(rest[-1]))
    assert main([*words, "--report"]) == 0
    assert by_command == {path: read_json(path) for path in by_command}
    if make is import_files.h200:
        (trap,) = [v for v in by_command.values() if v["verdict"].startswith("not what")]
        assert "speed" in {piece["level"] for piece in trap["evidence"]}


def test_what_is_typed_stays_in_the_verdict_where_the_log_says_nothing(tmp_path):
    (tmp_path / "a.log").write_text("INFO [api_server.py:1289] vLLM API server version 0.9.1\n")
    variant = {
        "checkpoint": import_files.quantized(import_files.GPTQ),
        "log": "a.log",
        "startup": {"weights_gib": 14.2, "vllm_version": "0.1.0"},
        "points": [{"concurrency": 1, "output_tok_s": 10.0}],
    }
    path = small(tmp_path, variants={"a": variant}, engine_versions={"vllm": "0.2.0"})
    study, folder = import_study(path, tmp_path / "results")
    (start,) = folder.glob("runs/a/*/session1/startup.json")
    assert start.with_name("server.log").is_file()
    kept = Startup.model_validate(read_json(start))
    assert (kept.facts.weights_gib, kept.facts.vllm_version) == (14.2, "0.9.1")
    verdict = judge_runs(
        study,
        "a",
        host=None,
        manifest=folder / "checkpoints/a.json",
        baseline_manifest=None,
        startups=[start],
        baseline_startups=[],
    )
    assert any("14.2" in piece.says for piece in verdict.evidence if piece.level == "weights")


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


def test_every_key_of_an_import_file_is_documented():
    text = (PROJECT / "docs" / "import.md").read_text()
    for name in ImportStudy.model_fields:
        assert f"`{name}`" in text, name


# Unknown is null, never 0


def typed(**numbers):
    return import_point(ImportPoint(concurrency=2, **numbers), Path(), 0.0).point


@pytest.mark.parametrize(
    ("given", "counts"),
    [
        ({}, (None, None, None)),
        ({"requests": 9}, (9, None, None)),
        ({"requests": 9, "failed": 0}, (9, 9, 0)),
        ({"requests": 9, "completed": 7}, (9, 7, 2)),
        ({"completed": 7, "failed": 2}, (9, 7, 2)),
        ({"failed": 2}, (None, None, 2)),
    ],
)
def test_the_third_count_follows_from_two_and_never_from_one(given, counts):
    point = typed(**given)
    assert (point.sent, point.completed, point.failed) == counts
    assert point.duration_s is point.input_tokens is point.output_tokens is None
    assert point.ttft_ms.n == counts[1]


@pytest.mark.parametrize(
    ("given", "errors"), [({}, {}), ({"oom": 0}, {"out of memory": 0}), ({"failed": 2}, {})]
)
def test_errors_are_only_those_that_are_named(given, errors):
    assert typed(**given).errors == errors


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"requests": 3, "failed": 4}, "4 failed of 3 requests is too many"),
        ({"requests": 3, "oom": 4}, "4 oom of 3 requests is too many"),
        ({"requests": 9, "completed": 7, "failed": 1}, "7 completed and 1 failed are not 9"),
        ({"failed": 1, "oom": 2}, "2 ran out of memory of 1 that failed"),
    ],
)
def test_counts_that_contradict_each_other_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        ImportPoint(concurrency=1, **given)


def test_a_file_that_does_not_say_how_many_were_sent(tmp_path):
    point = import_point(bench(tmp_path, num_prompts=None, errors=[]), tmp_path, 0.0).point
    assert (point.sent, point.completed, point.failed) == (None, 2, None)
    given = ImportPoint(file="bench.json", requests=2)
    assert import_point(given, tmp_path, 0.0).point.failed == 0


def test_a_limit_on_what_is_not_known_is_not_judged(tmp_path):
    points = [{"concurrency": 1, "requests": 700, "output_tok_s": 10.0}]
    path = small(tmp_path, variants={"a": {"points": points}}, slo={"tpot_mean_ms": 50})
    assert main([str(path), "--results", str(tmp_path / "results"), "--report"]) == 0
    summary = Summary.model_validate(read_json(tmp_path / "results" / "small" / "summary.json"))
    (row,) = summary.points
    assert row.slo_pass is None
    assert "success_rate: not measured, so its limit was not judged" in row.warnings
    assert summary.decision.outcome == "undecided"


def test_a_measured_zero_stays_zero(tmp_path):
    numbers = {"requests": 700, "failed": 0, "preemptions": 0, "waiting_peak": 0, "oom": 0}
    path = small(tmp_path, variants={"a": {"points": [{"concurrency": 1, **numbers}]}})
    assert main([str(path), "--results", str(tmp_path / "results"), "--report"]) == 0
    summary = Summary.model_validate(read_json(tmp_path / "results" / "small" / "summary.json"))
    (row,) = summary.points
    for name in ("preemptions", "waiting_peak", "oom"):
        assert row.metrics[name].value == 0, name
    assert row.metrics["success_rate"].value == 1


def test_the_time_of_a_measurement_is_as_exact_as_known(tmp_path, h200):
    assert h200.measured_at == "2026-11-30T07:30:59"
    note = small(tmp_path, measured_at="2026-09-18")
    import_study(note, tmp_path / "results")
    assert (
        read_json(tmp_path / "results" / "small" / "imported.json")["measured_at"] == "2026-09-18"
    )


# The documented example


def examples():
    text = (PROJECT / "docs" / "import.md").read_text()
    return [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]


def test_the_documented_example_runs_and_catches_the_trap(tmp_path):
    path = import_files.write(tmp_path / "mine.yaml", examples()[0])
    assert main([str(path), "--results", str(tmp_path / "results"), "--report"]) == 0
    folder = tmp_path / "results" / "h200-by-hand"
    assert (folder / "report" / "report.html").stat().st_size > 10_000
    summary = Summary.model_validate(read_json(folder / "summary.json"))
    verdicts = {v.variant: v for v in summary.verdicts}
    assert {n: v.verdict for n, v in verdicts.items()} == {
        "bf16": "as expected",
        "fp8": "as expected",
        "int4": "not what the checkpoint says",
    }
    assert verdicts["fp8"].kernels == ["CutlassFP8ScaledMMLinearKernel"]
    assert summary.decision.variant == "fp8"
    assert any("kernel" in why for why in summary.decision.rejected["int4"])
    assert {row.slo_pass for row in summary.points} == {True}
    assert summary.study_cost_usd == pytest.approx(0.64)


def test_the_documented_parts_are_valid(tmp_path):
    whole, parts = examples()
    assert ImportStudy.model_validate(whole | {"questions": parts["questions"]})
    assert ImportStudy.model_validate(whole | {"variants": whole["variants"] | parts["variants"]})


def test_copied_files_are_byte_for_byte(tmp_path):
    log = b"INFO host secret.example token=abc /home/somebody\r\nModel loading took 1.5 GiB\n"
    (tmp_path / "x.log").write_bytes(log)
    bench(tmp_path)
    variant = {"log": "x.log", "points": [{"file": "bench.json"}]}
    import_study(small(tmp_path, variants={"a": variant}), tmp_path / "results")
    run = tmp_path / "results" / "small" / "runs" / "a" / "imported" / "session1"
    assert (run / "server.log").read_bytes() == log
    copied = (run / "imported" / "bench.json").read_bytes()
    assert copied == (tmp_path / "bench.json").read_bytes()
