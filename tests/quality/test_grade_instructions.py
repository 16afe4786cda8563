"""Instruction checks, languages, and degenerate answers."""

from __future__ import annotations

import pytest
from grading_helpers import grade, item
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from scripts.lib.quality.degenerate import is_degenerate
from scripts.lib.quality.graders.instructions import CHECKS
from scripts.lib.quality.probes import Checks

THREE = "- one\n- two\n- three"


def holds(text: str, **checks: object) -> bool | None:
    result = grade({"kind": "instructions", "checks": checks}, text)
    assert result.task_success is None
    return result.format_ok


@pytest.mark.parametrize(
    ("text", "checks"),
    [
        ("one two three", {"max_words": 3, "min_words": 3}),
        ("- one\n- two", {"max_words": 2}),
        ("well-known words", {"max_words": 2}),
        ("양자화는 메모리를 줄입니다.", {"max_words": 3, "min_words": 3}),
        ("The GPU is fast", {"contains": ["gpu"]}),
        ("The GPU is fast", {"contains": ["GPU is", "fast"], "excludes": ["slow"]}),
        ("It’s “done”", {"contains": ['it\'s "done"']}),
        ("  Dear all,", {"starts_with": "Dear"}),
        ("Bye. That is all.\n", {"ends_with": "That is all."}),
        (THREE, {"bullets": 3}),
        ("* one\n* two\n* three", {"bullets": 3}),
        ("• one\n• two\n•three", {"bullets": 3}),
        ("Intro:\n\n- one\n  - two\n- three\n\n---\n**Bold** end", {"bullets": 3}),
        ("1. one\n2. two", {"bullets": 0}),
        ("No list, -5 degrees", {"bullets": 0}),
        ("a\n\nb\n \n\nc", {"paragraphs": 3}),
        ("a\nb", {"paragraphs": 1}),
        ("a\r\n\r\nb", {"paragraphs": 2}),
        ("SPRING, 2 OF THEM!", {"uppercase": True}),
        ("spring, 2 of them!", {"lowercase": True}),
        ("Mixed Case", {"uppercase": False, "lowercase": False, "max_words": 2}),
        ('{"a": 1}', {"json_only": True}),
        (" [1]\n", {"json_only": True}),
        ("The weather is nice today, and it is warm.", {"language": "en"}),
        ("Sure.", {"language": "en"}),
        ("Use `안녕` here, it is the word for it.", {"language": "en"}),
        ("양자화는 vLLM 의 메모리를 줄입니다.", {"language": "ko"}),
        ("안녕", {"language": "ko"}),
    ],
)
def test_checks_that_hold(text, checks):
    assert holds(text, **checks) is True


@pytest.mark.parametrize(
    ("text", "checks"),
    [
        ("one two three", {"max_words": 2}),
        ("one two three", {"min_words": 4}),
        ("one — two", {"min_words": 3}),
        ("The GPU", {"contains": ["gpu", "cpu"]}),
        ("The GPU", {"excludes": ["gpu"]}),
        ("Oh dear", {"starts_with": "Dear"}),
        ("That is all. Really.", {"ends_with": "That is all."}),
        (THREE, {"bullets": 2}),
        (THREE, {"bullets": 4}),
        (THREE, {"bullets": 0}),
        ("a\n\nb", {"paragraphs": 1}),
        ("SPRING is", {"uppercase": True}),
        ("123", {"uppercase": True}),
        ("봄", {"uppercase": True}),
        ("spring Is", {"lowercase": True}),
        ('```json\n{"a": 1}\n```', {"json_only": True}),
        ('Here: {"a": 1}', {"json_only": True}),
        ("{'a': 1}", {"json_only": True}),
        ("안녕하세요, 반갑습니다", {"language": "en"}),
        ("Le temps est beau et il fait chaud dans la ville", {"language": "en"}),
        ("Hello there, how are you", {"language": "ko"}),
        ("양자화는 模型压缩技术 입니다", {"language": "ko"}),
        ("12345", {"language": "ko"}),
        ("", {"max_words": 5}),
        ("  \n", {"excludes": ["x"]}),
    ],
)
def test_checks_that_do_not(text, checks):
    assert holds(text, **checks) is False


def test_every_broken_check_is_named():
    grader = {"kind": "instructions", "checks": {"max_words": 1, "ends_with": "."}}
    assert grade(grader, "a b").reason == "2 words, more than 1; does not end with '.'"


def test_every_check_of_the_model_has_a_function():
    assert set(CHECKS) == set(Checks.model_fields)


@pytest.mark.parametrize("checks", [{}, {"max_word": 3}, {"language": "fr"}, {"uppercase": False}])
def test_unusable_checks_are_refused(checks):
    with pytest.raises(ValidationError):
        item({"kind": "instructions", "checks": checks})


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t",
        "!!!!!!!!!!!!!!!!!!!!",
        "the the the the the the the",
        "안녕하세요 안녕하세요 안녕하세요 안녕하세요",
        "The answer is 42. " + "I am sure. " * 5,
        "The answer is 42.\n\n"
        + "\n".join(["Therefore, the answer is 42."] * 4)
        + "\nTherefore, th",
        "ok " + "0" * 60,
        "ab" * 50,
        "A long sentence that a model cannot stop writing once it has begun it. " * 3,
        "noise " + "\n\n\n" * 3 + "- item\n" * 12,
    ],
)
def test_degenerate(text):
    assert is_degenerate(text)


@pytest.mark.parametrize(
    "text",
    [
        "42",
        "1111",
        "100000000",
        "ha ha ha",
        "no, no, no",
        "Title\n=====================",
        "- a\n- b\n- c",
        "[[0, 0, 0],\n [0, 0, 0],\n [0, 0, 0]]",
        "Row, row, row your boat gently down the stream.",
        "A paragraph that stands there twice.\n\nA paragraph that stands there twice.",
        "1. The first\n2. The second\n3. The third\n4. The fourth",
        "the the the the the the the end",
        "def f(x):\n    return x\n",
    ],
)
def test_not_degenerate(text):
    assert not is_degenerate(text)


def test_a_call_without_text_is_not_degenerate():
    grader = {"kind": "tool", "expected": []}
    call = {"function": {"name": "f", "arguments": "{}"}}
    assert grade(grader, None, calls=[call]).degenerate is False
    assert grade(grader, None).degenerate is True


@given(st.text(alphabet="ab ", min_size=1, max_size=6).filter(str.strip), st.integers(30, 60))
def test_a_repeated_piece_is_degenerate(piece, times):
    assert is_degenerate("Well then: " + piece * times)
