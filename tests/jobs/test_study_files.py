"""What is wrong in the files of a study is said at its load, naming key, file and line."""

import json
from pathlib import Path

import pytest
import yaml

from scripts.lib.jobs.study_files import MOST, find_file_problems
from scripts.lib.study.load import check_study

PROJECT = Path(__file__).parents[2]
CONVERSATION = {"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}


def found(project: Path, **study: object) -> list[str]:
    return list(find_file_problems({"quality": None, **study}, project))


def prompts(project: Path, kind: str, text: str, **workload: object) -> list[str]:
    (project / "p.json").write_text(text)
    return found(project, workloads={"w": {"dataset": {kind: "p.json"}, **workload}})


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("sharegpt", "[]", "no conversation of two turns"),
        ("sharegpt", json.dumps([{"conversations": [{"a": 1}, {"b": 2}]}]), "entry 1: its turns"),
        ("sharegpt", json.dumps([CONVERSATION])[:-1], "cut off"),
        ("jsonl", "\n", "holds no line"),
        ("jsonl", '{"prompt": "a"}\n{', "line 2 is not JSON"),
        ("jsonl", '{"prompt": "a", "output_tokens": 0}', "output_tokens is 0"),
        ("jsonl", '{"messages": []}', "line 1 has messages; set endpoint: chat"),
        ("jsonl", "[" * 100_000, "line 1: its JSON is nested too deeply"),
        ("sharegpt", "[" * 100_000, "entry 1: its JSON is nested too deeply"),
        ("trace", '{"prompt": "a"}', "line 1: timestamp_s (seconds) is missing"),
        ("trace", '{"timestamp_s": 1, "output_tokens": 2}', "input_tokens is None"),
    ],
)
def test_a_prompt_file_is_looked_at_first(tmp_path, kind, text, expected):
    (problem,) = prompts(tmp_path, kind, text)
    assert problem.startswith(f"workloads.w.dataset.{kind}: p.json: ")
    assert expected in problem


@pytest.mark.parametrize(
    ("kind", "text", "workload"),
    [
        ("sharegpt", json.dumps([CONVERSATION]), {}),
        ("jsonl", '{"messages": []}', {"endpoint": "chat"}),
        ("trace", '{"timestamp_s": 1, "input_tokens": 2, "output_tokens": 2}', {}),
        ("trace", '{"timestamp_s": 1, "prompt": "a"}', {}),
    ],
)
def test_a_good_file_passes(tmp_path, kind, text, workload):
    assert prompts(tmp_path, kind, text, **workload) == []


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"messages": ["hi"]}, "messages holds what is no message"),
        ({"messages": [{"role": "user", "content": "a"}, None]}, "messages holds what is no"),
        ({"prompt": "a", "messages": "hi"}, "give either prompt (text) or messages (list)"),
        ({"prompt": ["a"]}, "give either prompt (text) or messages (list)"),
    ],
)
def test_messages_are_those_of_a_chat(tmp_path, row, expected):
    (problem,) = prompts(tmp_path, "jsonl", json.dumps(row), endpoint="chat")
    assert f"p.json: line 1: {expected}" in problem


def test_a_file_that_is_no_text(tmp_path):
    (tmp_path / "p.json").write_bytes(b'{"prompt": "\xff"}')
    workloads = {"w": {"dataset": {"jsonl": "p.json"}}}
    assert "p.json: not UTF-8 text" in found(tmp_path, workloads=workloads)[0]


def test_a_calibration_text_is_looked_at_too(tmp_path):
    (tmp_path / "c.json").write_text("[1]")
    checkpoints = {"q": {"quantize": {"from": "b", "calibration": "c.json"}}}
    (problem,) = found(tmp_path, checkpoints=checkpoints)
    assert problem.startswith("checkpoints.q.quantize.calibration: c.json: no conversation")


def test_probe_files_are_read_and_their_problems_counted(tmp_path):
    (tmp_path / "p.jsonl").write_text('{"id": "x"}\n' * 20)
    problems = found(tmp_path, quality={"probes": ["*.jsonl"]})
    assert problems[0].startswith("quality.probes: p.jsonl:1: ")
    assert len(problems) == MOST + 1
    assert problems[-1].endswith("more problems in these files")


@pytest.mark.parametrize("quality", [None, 1, {"probes": None}, {"probes": [1, ""]}, {"probes": 2}])
@pytest.mark.parametrize("workloads", [None, [], {"w": {"dataset": {"jsonl": "x" * 5000}}}])
def test_nonsense_is_left_to_the_other_checks(tmp_path, quality, workloads):
    assert found(tmp_path, quality=quality, workloads=workloads) == []


def test_the_default_study_has_no_problem():
    raw = yaml.safe_load((PROJECT / "config/config.yaml").read_text())
    check_study(raw, PROJECT, [find_file_problems])
