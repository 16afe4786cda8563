"""Every command line ends with its status, also when its reader goes away."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
COMMANDS = sorted(p for p in (PROJECT / "scripts").glob("*.py") if p.stem != "__init__")
PROBE = (
    '{{"id": "n{0}", "axis": "arithmetic", "messages": [{{"role": "user", "content": "2+2"}}],'
    ' "max_tokens": 8, "grader": {{"kind": "number", "expected": 4}}}}\n'
)


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_each_ends_through_the_shared_place(path):
    assert re.search(r'if __name__ == "__main__":\n    run_main\(main\)\n$', path.read_text())


def run_unread(*arguments: str, unread: str = "stdout") -> tuple[int, str]:
    """Run a command line whose reader has gone; return its status and what else it said."""
    reader, writer = os.pipe()
    os.close(reader)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, unread: writer}
    done = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=PROJECT, text=True, timeout=60, check=False,
        **streams,
    )  # fmt: skip
    os.close(writer)
    return done.returncode, (done.stderr or "") + (done.stdout or "")


def test_a_reader_that_goes_away_ends_it_quietly(tmp_path):
    probes, answers = tmp_path / "p.jsonl", tmp_path / "a.jsonl"
    probes.write_text("".join(PROBE.format(i) for i in range(20)))
    answers.write_text("".join(f'{{"id": "n{i}", "text": "4"}}\n' for i in range(20)))
    grade = ["scripts.grade_completions", "--probes", str(probes), "--completions", str(answers)]
    assert run_unread(*grade) == (141, "")
    scrape = tmp_path / "metrics.txt"
    scrape.write_text("vllm:num_requests_running 1.0\n")
    assert run_unread("scripts.read_metrics", str(scrape)) == (141, "")
    assert run_unread("scripts.plan_variant", "--help")[1] == ""


def test_a_sentence_that_nobody_reads_is_no_traceback():
    assert run_unread("scripts.read_metrics", "none.txt", unread="stderr") == (141, "")


def test_the_status_is_the_commands_own():
    done = subprocess.run(
        [sys.executable, "-m", "scripts.read_metrics", "none.txt"],
        cwd=PROJECT, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (2, "none.txt: no such file or directory\n")
