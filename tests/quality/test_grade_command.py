"""The command line ``python -m scripts.grade_completions``."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.grade_completions import main

PROJECT = Path(__file__).parents[2]
PROBES = [
    {
        "id": name,
        "axis": axis,
        "messages": [{"role": "user", "content": "?"}],
        "max_tokens": 8,
        "grader": grader,
    }
    for name, axis, grader in (
        ("n", "arithmetic", {"kind": "number", "expected": 42325}),
        ("t", "fact", {"kind": "text", "accepted": ["Paris"]}),
        ("i", "instructions", {"kind": "instructions", "checks": {"max_words": 3}}),
    )
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("probes.jsonl").write_text("\n".join(map(json.dumps, PROBES)))
    return tmp_path


def run(capsys, *completions: object, name: str = "completions.jsonl"):
    text = "".join(c if isinstance(c, str) else json.dumps(c) + "\n" for c in completions)
    data = text.encode()
    Path(name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    status = main(["--probes", "probes.jsonl", "--completions", name])
    out, err = capsys.readouterr()
    return status, [json.loads(line) for line in out.splitlines()], err


def answer(name: str, text: str | None, **more: object) -> dict[str, object]:
    return {"id": name, "text": text, "tool_calls": None, "finish_reason": "stop", **more}


def test_one_object_a_line_with_just_the_keys_of_the_contract(folder, capsys):
    status, graded, err = run(
        capsys, answer("t", "Paris"), answer("n", "**42,325**"), answer("i", "a b c d")
    )
    assert (status, err) == (0, "")
    assert graded[1] == {
        "id": "n",
        "axis": "arithmetic",
        "task_success": True,
        "format_ok": None,
        "tool_success": None,
        "degenerate": False,
        "reason": "found 42,325",
    }
    assert [g["task_success"] for g in graded] == [True, True, None]
    assert graded[2]["format_ok"] is False


def test_gzipped_completions_and_extra_keys(folder, capsys):
    status, graded, _ = run(
        capsys, answer("n", "42325", usage={"completion_tokens": 3}), name="c.jsonl.gz"
    )
    assert status == 0
    assert graded[0]["task_success"] is True


def test_an_item_without_completion_is_unknown_and_not_wrong(folder, capsys):
    _, graded, _ = run(capsys, answer("n", "1"))
    assert [(g["id"], g["task_success"], g["reason"]) for g in graded[1:]] == [
        ("t", None, "no completion"),
        ("i", None, "no completion"),
    ]


def test_a_failed_request_is_not_graded(folder, capsys):
    _, graded, _ = run(capsys, answer("n", None, error="HTTP 500: oops"))
    assert graded[0]["task_success"] is None
    assert graded[0]["degenerate"] is False
    assert graded[0]["reason"] == "no answer: HTTP 500: oops"


def test_an_empty_answer_is_wrong_and_degenerate(folder, capsys):
    _, graded, _ = run(capsys, answer("n", None))
    assert (graded[0]["task_success"], graded[0]["degenerate"]) == (False, True)


def test_a_completion_of_no_probe_is_told_of(folder, capsys):
    status, graded, err = run(capsys, answer("zzz", "1"), answer("n", "42325"))
    assert status == 0
    assert [g["id"] for g in graded] == ["n", "t", "i"]
    assert err == 'completions.jsonl: no probe has the id "zzz"; left out\n'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{oops\n", "completions.jsonl:2: not JSON"),
        ("[1]\n", "completions.jsonl:2: expected a JSON object, found list"),
        ('{"text": "x"}\n', "completions.jsonl:2: id: Field required"),
        ('{"id": "n", "text": 5}\n', "completions.jsonl:2: text: "),
        ('{"id": "n", "tool_calls": "f()"}\n', "completions.jsonl:2: tool_calls: "),
    ],
)
def test_what_cannot_be_read_exits_2_with_a_sentence(folder, capsys, line, message):
    status, graded, err = run(capsys, answer("n", "1"), line)
    assert (status, graded) == (2, [])
    assert err.startswith(message)
    assert err.count("\n") == 1


def test_missing_and_broken_files(folder, capsys):
    assert main(["--probes", "none.jsonl", "--completions", "probes.jsonl"]) == 2
    assert capsys.readouterr().err == "none.jsonl: cannot be read: No such file or directory\n"
    Path("bad.jsonl.gz").write_bytes(b"no gzip")
    assert main(["--probes", "probes.jsonl", "--completions", "bad.jsonl.gz"]) == 2
    assert "bad.jsonl.gz: cannot be read" in capsys.readouterr().err


def test_as_a_program(folder):
    Path("c.jsonl").write_text(json.dumps(answer("n", "답은 42,325입니다")), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "scripts.grade_completions", "--probes", folder / "probes.jsonl"]
        + ["--completions", folder / "c.jsonl"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["task_success"] is True
