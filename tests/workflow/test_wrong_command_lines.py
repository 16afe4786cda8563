"""What somebody sees who gives a wrong study, cleans up, or looks at a dry run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.lib.base.files import sha256_of
from tests.workflow.conftest import PROJECT


def make(workspace, *words: str) -> subprocess.CompletedProcess[str]:
    """Run make in the copy with the environment of this test; ``-o``: it counts as made."""
    (workspace.root / ".venv").symlink_to(Path(sys.executable).parents[1])
    return subprocess.run(
        ["make", "-o", ".venv/.ready", *words],
        cwd=workspace.root,
        env={**os.environ, "MAKEFLAGS": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "s.yaml: cannot be read (No such file or directory); give the path of a study"),
        (b"\xff\xfe\x00", "s.yaml: is not text; give a YAML file"),
        (b"", "s.yaml: holds no keys; see config/config.yaml for the shape of a study"),
        (b"- 1", "s.yaml: holds no keys; see config/config.yaml for the shape of a study"),
        (b"a: [1", "s.yaml: line 1: not valid YAML: expected ',' or ']'"),
        ("folder", "s.yaml: cannot be read (Is a directory); give the path of a study"),
    ],
)
def test_make_says_in_a_sentence_that_a_file_is_no_study(workspace, content, expected):
    path = workspace.root / "a s.yaml"
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    done = make(workspace, "report", "STUDY=a s.yaml")
    assert done.returncode != 0
    assert f"a {expected}" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == 2  # the other one is make's


def test_faults_of_files_and_values_stop_before_any_job(workspace):
    (workspace.root / "prompts.jsonl").write_text('{"prompt": "a"}\n{"messages": []}\n')
    (workspace.root / "config/probes/tiny.jsonl").write_text('{"id": "x"}\n')
    workspace.change(
        host={"gpu": "L41S"},
        workloads__short__dataset={"jsonl": "prompts.jsonl"},
    )
    done = workspace.snakemake("plan")
    output = done.stdout + done.stderr
    assert done.returncode != 0
    assert 'config/study.yaml: host.gpu is "L41S"' in output
    assert "dataset.jsonl: prompts.jsonl: line 2 has messages; set endpoint: chat" in output
    assert "quality.probes: config/probes/tiny.jsonl:1:" in output
    assert "Traceback" not in output
    assert not workspace.results.exists()


def test_only_the_first_process_reads_the_files_of_a_study(workspace):
    """A prompt file of gigabytes is looked at once, not by every job's own Snakemake."""
    (workspace.root / "config/probes/tiny.jsonl").write_text('{"id": "x"}\n')
    assert workspace.snakemake("-n").returncode != 0
    done = workspace.snakemake("-n", "--mode", "subprocess")
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_of_a_study_is_left_when_it_is_cleaned(finished):
    done = make(finished, "clean_results", "STUDY=config/study.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    left = [
        path for place in ("results", "logs") for path in (finished.root / place).rglob("*fake*")
    ]
    assert left == []
    assert (finished.root / "model/config.json").is_file()


def test_a_dry_run_says_what_each_job_does_and_why(workspace):
    done = workspace.snakemake("-n")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    for words in (
        "Fetch or make checkpoint tiny",
        "Serve two and run workload short, session 1",
        "Serve one and ask it the probes",
        "The report is results/fake/report/report.html",
    ):
        place = next(i for i, line in enumerate(lines) if line.endswith(f": {words}"))
        assert lines[place + 1].startswith("Reason: ")
    assert not [line for line in lines if line.strip().startswith(("input:", "wildcards:"))]


@pytest.mark.parametrize("path", [*(PROJECT / "rules").glob("*.smk"), PROJECT / "Snakefile"])
def test_every_rule_says_what_it_does(path):
    for block in path.read_text().split("\nrule ")[1:]:
        assert "    message:\n" in block, block.partition(":")[0]


def test_a_lost_record_is_said_and_the_command_given_brings_it_back(finished):
    record = finished.results / "runs/one/short/session1/requests.jsonl.gz"
    record.unlink()
    name = record.relative_to(finished.root).as_posix()
    done = finished.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{name} is missing; put it back from a copy" in done.stderr
    done = finished.snakemake("--forcerun", "build_tables")
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert f"{name}: is missing; put it back from a copy" in said
    assert "Traceback" not in said
    words = said.partition("snakemake --configfile STUDY.yaml --cores 1 ")[2].split("\n")[0]
    done = finished.snakemake(*words.split())
    assert done.returncode == 0, done.stdout + done.stderr
    assert record.is_file()
    assert "is missing" not in finished.snakemake("-n").stderr


def test_answers_that_cannot_be_used_are_said_and_the_command_given_asks_again(finished):
    folder = finished.results / "quality/one"
    asked, report = folder / "asked.json", finished.results / "report/report.html"
    before = [path.stat().st_mtime_ns for path in (asked, report)]
    (folder / "completions.jsonl.gz").write_bytes(b"")
    done = finished.snakemake("--forcerun", "grade_quality")
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "the completions of one are not those of the probe files; ask the probes again" in said
    words = said.partition("snakemake --configfile STUDY.yaml --cores 1 ")[2].split("\n")[0]
    other = (finished.results / "quality/two/asked.json").relative_to(finished.root)
    assert finished.planned(*words.split(), other.as_posix())["probe_quality"] == 2
    done = finished.snakemake(*words.split())
    assert done.returncode == 0, done.stdout + done.stderr
    after = [path.stat().st_mtime_ns for path in (asked, report)]
    assert all(new > old for new, old in zip(after, before, strict=True))
    assert finished.planned() == {}


def test_what_is_measured_is_noted_by_its_hash(finished_root):
    folder = finished_root / "results/fake/runs/two/short/session1"
    noted = json.loads((folder / "load.json").read_text())["records"]
    assert {"requests.jsonl.gz", "itl.npz", "metrics.csv.gz"} <= set(noted)
    assert all(sha256_of(folder / name) == digest for name, digest in noted.items())
