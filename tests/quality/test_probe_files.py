"""Reading probe files; and the project's own probes, whose answers are checked here."""

from __future__ import annotations

import collections
import datetime
import json
from fractions import Fraction
from pathlib import Path

import pytest
from grading_helpers import all_at_once, grade

from scripts.lib.quality.probes import ProbeError, ProbeItem, load_probes

PROJECT = Path(__file__).parents[2]
ITEM = {
    "id": "one",
    "axis": "a",
    "messages": [{"role": "user", "content": "?"}],
    "max_tokens": 8,
    "grader": {"kind": "number", "expected": 1},
}


def write(path: Path, *items: object) -> None:
    path.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items))


def problems(folder: Path, pattern: str = "*.jsonl") -> str:
    with pytest.raises(ProbeError) as caught:
        load_probes([pattern], folder)
    return str(caught.value)


def test_items_come_in_order_of_files_and_lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(Path("b.jsonl"), ITEM | {"id": "b"})
    Path("a.jsonl").write_text(f"\ufeff{json.dumps(ITEM)}\n\n{json.dumps(ITEM | {'id': 'two'})}")
    assert [item.id for item in load_probes(["*.jsonl"])] == ["one", "two", "b"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"grader": {"kind": "nmber", "expected": 1}},
            'grader.kind is "nmber"; give one of number',
        ),
        ({"grader": {"expected": 1}}, "grader.kind is missing"),
        ({"grader": {"kind": "number"}}, "expected is missing"),
        ({"grader": {"kind": "number", "expected": "many"}}, "expected is"),
        ({"max_tokens": 0}, "max_tokens is 0"),
        ({"maxtokens": 5}, "maxtokens is not a known key"),
        ({"messages": []}, "messages is empty"),
        ({"id": ""}, "id"),
        ({"grader": {"kind": "python", "entry_point": "f", "tests": ["f()"]}}, "asserts nothing"),
        ({"tools": [{"function": {"parameters": {}}}]}, "tools[0].function.name is missing"),
    ],
)
def test_a_wrong_item_is_named_with_file_line_and_key(tmp_path, monkeypatch, change, message):
    monkeypatch.chdir(tmp_path)
    write(Path("p.jsonl"), ITEM, {**ITEM, "id": "x", **change})
    text = problems(Path())
    assert text.startswith("p.jsonl:2: ")
    assert message in text


def test_all_problems_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(Path("p.jsonl"), ITEM, ITEM, ITEM | {"id": "y", "max_tokens": -1})
    Path("q.jsonl").write_text('{"id": \n')
    Path("r.jsonl").write_text("[]\n")
    Path("s.jsonl").write_bytes(b"\xff\xfe{}")
    found = problems(Path()).splitlines()
    assert found[0] == 'p.jsonl:2: id "one" was used at p.jsonl:1'
    assert found[1].startswith("p.jsonl:3: max_tokens")
    assert found[2].startswith("q.jsonl:1: not JSON")
    assert found[3] == "r.jsonl:1: expected a JSON object, found list"
    assert found[4] == "s.jsonl: byte 0 is not UTF-8 text"


def test_files_count_from_the_root_and_not_from_here(tmp_path):
    (tmp_path / "probes").mkdir()
    write(tmp_path / "probes/p.jsonl", ITEM)
    (tmp_path / "probes/q.jsonl").write_text("{")
    assert [item.id for item in load_probes(["probes/p.jsonl"], tmp_path)] == ["one"]
    assert problems(tmp_path, "probes/*.jsonl").startswith("probes/q.jsonl:1: not JSON")


def test_a_pattern_without_a_file(tmp_path):
    assert problems(tmp_path, "none/*.jsonl") == 'no probe file matches "none/*.jsonl"'


@pytest.fixture(scope="module")
def own() -> dict[str, ProbeItem]:
    return {item.id: item for item in load_probes(["config/probes/*.jsonl"], PROJECT)}


def test_eight_axes_of_short_items(own):
    per_axis = collections.Counter(item.axis for item in own.values())
    assert set(per_axis) == {
        "arithmetic",
        "code",
        "fact",
        "instructions",
        "json",
        "korean",
        "logic",
        "tool",
    }
    assert min(per_axis.values()) >= 6
    assert all(item.max_tokens and item.max_tokens <= 160 for item in own.values())
    assert all(item.id.startswith(f"{item.axis}-") for item in own.values())


def _minutes(begin: str, end: str) -> float:
    day = "2026-01-01T"
    span = datetime.datetime.fromisoformat(day + end) - datetime.datetime.fromisoformat(day + begin)
    return span.total_seconds() / 60


ARITHMETIC = {
    "arithmetic-single-digits": 3 + 4,
    "arithmetic-tens": 20 + 30,
    "arithmetic-double": 2 * 6,
    "arithmetic-minus": 15 - 9,
    "arithmetic-half": Fraction(90, 2),
    "arithmetic-two-digits": 45 + 38,
    "arithmetic-times-table": 7 * 8,
    "arithmetic-boxes": 12 * 5,
    "arithmetic-negative": 4 - 9,
    "arithmetic-percent": Fraction(15, 100) * 240,
    "arithmetic-train": _minutes("09:40", "11:05"),
    "arithmetic-multi-step": 1847 * 23 - 156,
    "korean-sum": 3 + 4,
    "logic-next-number": 8 + (8 - 6),
    "logic-halving": Fraction(20, 2),
}


def test_sums_are_right(own):
    arithmetic = {i for i, item in own.items() if item.axis == "arithmetic"}
    assert arithmetic <= ARITHMETIC.keys()
    for name, value in ARITHMETIC.items():
        assert own[name].grader.expected == value, name


REFERENCE = {
    "code-add": "def add(a, b):\n    return a + b",
    "code-even": "def is_even(n):\n    return n % 2 == 0",
    "code-reverse": "def reverse_text(s):\n    return ''.join(reversed(s))",
    "code-largest": "def largest(numbers):\n    return max(numbers, default=None)",
    "code-palindrome": (
        "def is_palindrome(s):\n    kept = [c for c in s.lower() if c.isalnum()]\n"
        "    return kept == kept[::-1]"
    ),
    "code-run-length": (
        "from itertools import groupby\n\ndef run_lengths(s):\n"
        "    return [(c, len(list(run))) for c, run in groupby(s)]"
    ),
    "code-square": "def square(x):\n    return x ** 2",
    "code-greet": "def greet(name):\n    return f'Hello, {name}!'",
    "code-count-vowels": "def count_vowels(s):\n    return sum(c in 'aeiou' for c in s)",
    "code-factorial": "from math import factorial",
    "code-unique": "def unique(items):\n    return list(dict.fromkeys(items))",
    "code-leap-year": "from calendar import isleap as is_leap_year",
}


def test_every_code_item_can_be_solved(own):
    items = [item for item in own.values() if item.axis == "code"]
    assert {item.id for item in items} == REFERENCE.keys()
    answers = [(item, f"```python\n{REFERENCE[item.id]}\n```", True) for item in items]
    for item in items:
        empty = f"def {item.grader.entry_point}(*args):\n    return NotImplemented"
        answers.append((item, empty, False))

    def is_right(case):
        item, answer, verdict = case
        return grade(item.grader.model_dump(), answer).task_success is verdict

    right = all_at_once(is_right, answers)
    assert [item.id for (item, *_), ok in zip(answers, right, strict=True) if not ok] == []


JSON = {
    "json-copy": {"name": "Ada", "age": 36},
    "json-list": [1, 2, 3],
    "json-boolean": {"done": True},
    "json-extract": {"customer": "Minji", "item": "mug", "quantity": 3, "total": 24},
    "json-nested": {"host": "db1", "ports": [5432, 6432], "limits": {"cpu": 4}},
    "json-null": {"sensor": "t7", "reading": None},
    "json-string": {"color": "green"},
    "json-two-strings": {"first": "Grace", "last": "Hopper"},
    "json-words": ["red", "amber", "green"],
    "json-empty": [],
    "json-negative": {"celsius": -12.5},
    "json-records": [{"id": 1, "ok": True}, {"id": 2, "ok": False}],
}


def test_every_json_item_can_be_solved(own):
    assert {i for i, item in own.items() if item.axis == "json"} == JSON.keys()
    for name, value in JSON.items():
        grader = own[name].grader.model_dump(by_alias=True, exclude_unset=True)
        result = grade(grader, json.dumps(value))
        assert (result.task_success, result.format_ok) == (True, True), name


def test_expected_calls_fit_the_tools(own):
    for item in (item for item in own.values() if item.axis == "tool"):
        calls = [
            {"function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
            for call in item.grader.expected
        ]
        result = grade(item.grader.model_dump(), "x", calls=calls, tools=item.tools)
        assert (result.tool_success, result.format_ok) == (True, True), item.id
