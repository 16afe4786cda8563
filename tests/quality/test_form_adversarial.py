"""Realistic answers that name something, follow instructions, or hold code."""

from __future__ import annotations

import pytest
from grading_helpers import grade

from scripts.lib.quality.graders.python_code import candidates


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("서울", "서울임"),
        ("서울", "대한민국의 수도인 서울인데요"),
        ("H2O", "$H_2O$"),
        ("H2O", "H$_2$O"),
        ("CO2", "CO<sub>2</sub>"),
        ("don't", "I dont know"),
        ("e-mail", "by email"),
        ("e-mail", "by e mail"),
        ("co-operate", "cooperate"),
        ("Paris", "[Paris](https://example.org)"),
        ("New York", "New\nYork City"),
    ],
)
def test_phrases_that_occur(phrase, text):
    assert grade({"kind": "text", "accepted": [phrase]}, text).task_success is True


@pytest.mark.parametrize(
    ("phrase", "text"),
    [("물", "물임금"), ("3-4", "34"), ("Paris", "Pa-ris"), ("H2O", "H_20"), ("서울", "서울인들")],
)
def test_phrases_that_do_not(phrase, text):
    assert grade({"kind": "text", "accepted": [phrase]}, text).task_success is False


@pytest.mark.parametrize(
    ("text", "checks"),
    [
        ("**Certainly**, red", {"starts_with": "Certainly"}),
        ('"Certainly, red"', {"starts_with": "Certainly"}),
        ("Close it. **That is all.**", {"ends_with": "That is all."}),
        ('"Close it. That is all."', {"ends_with": "That is all."}),
        ('"quoted"', {"starts_with": '"', "ends_with": '"'}),
        ("one\n\n---\n\ntwo", {"paragraphs": 2}),
        ("one\n\n***\n\ntwo", {"paragraphs": 2}),
        ("```\na\n\nb\n```", {"paragraphs": 1}),
        ("-Apple\n-Pear\n-Plum", {"bullets": 3}),
        ("*Apple\n*Pear", {"bullets": 2}),
        ("> - a\n> - b", {"bullets": 2}),
        ("○ 사과\n○ 배", {"bullets": 2}),
        ("✓ a\n✓ b", {"bullets": 2}),
        ("*Apple* is red\n-5 degrees", {"bullets": 0}),
        ("The Korean word for hello is 안녕하세요.", {"language": "en"}),
        ("vLLM은 GPU 메모리를 절약하는 inference engine입니다.", {"language": "ko"}),
        ("안녕하세요 (Annyeonghaseyo)", {"language": "ko"}),
    ],
)
def test_instructions_kept(text, checks):
    assert grade({"kind": "instructions", "checks": checks}, text).format_ok is True


@pytest.mark.parametrize(
    ("text", "checks"),
    [
        ("Certain", {"starts_with": "Certainly"}),
        ("quoted", {"starts_with": '"'}),
        ("That is all. Bye", {"ends_with": "That is all."}),
        ("Bonjour, comment allez-vous aujourd'hui mes amis?", {"language": "en"}),
        ("Guten Morgen, wie geht es Ihnen heute?", {"language": "en"}),
        ("Laut adalah air asin yang luas dan dalam", {"language": "en"}),
        ("The sea is wide. 바다는 넓고 푸릅니다.", {"language": "en"}),
        ("The sea is wide. 바다는 넓습니다.", {"language": "ko"}),
        ("Sure! Here is a greeting in Korean: 안녕하세요! 반갑습니다.", {"language": "ko"}),
    ],
)
def test_instructions_broken(text, checks):
    assert grade({"kind": "instructions", "checks": checks}, text).format_ok is False


ADD = "def add(a, b):\n    return a + b\n"
INDENTED = "    def add(a, b):\n        return a + b\n"


@pytest.mark.parametrize(
    "text",
    [
        f"Here is the function:\n\n{INDENTED}\nDone.",
        f"python\n{ADD}",
        f"\ufeff{ADD}",
        f"{ADD}\nadd(1, 2)\n>>> 3",
    ],
)
def test_code_is_found(text):
    found = list(candidates(text, "add"))
    assert found
    assert found[0].strip().startswith("def add")


def test_a_method_is_no_function():
    assert not list(candidates(f"class S:\n\n{INDENTED}", "add"))


def test_the_code_runs_as_it_would_anywhere():
    """A name that is missing in an annotation is missing; nothing is imported on the side."""
    grader = {"kind": "python", "entry_point": "f", "tests": ["assert f([1]) == 1"]}
    result = grade(grader, "def f(x: List[int]) -> int:\n    return x[0]")
    assert result.task_success is False
    assert "List" in result.reason
