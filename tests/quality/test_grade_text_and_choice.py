"""Words, phrases and options as they occur in answers."""

from __future__ import annotations

import pytest
from grading_helpers import grade, item
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError


def found(accepted: list[str], text: str, rejected: list[str] | None = None) -> bool | None:
    grader = {"kind": "text", "accepted": accepted, "rejected": rejected or []}
    return grade(grader, text).task_success


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("Paris", "It is **PARIS**!"),
        ("Paris", "Paris's river"),
        ("New York", "new-york"),
        ("don't", "I don’t"),
        ("USA", "in the U.S.A. only"),
        ("Straße", "STRASSE"),
        ("fish", "a ﬁsh"),
        ("Paris", "Pa\u200bris"),
        ("3.14", "about 3.14."),
        ("42325", "42,325"),
        ("C++", "written in C++."),
        ("2017", "2017년입니다"),
        ("서울", "대한민국의 수도는 서울입니다."),
        ("서울", "서울은 크다"),
        ("서울", "서울에서는"),
        ("서울", "서울로 간다"),
        ("토끼", "토끼와 거북이"),
        ("사과", "이것은 사과다"),
        ("Seoul", "Seoul은"),
        ("세종 대왕", "세종대왕이 만들었다"),
        ("東京", "首都は東京です"),
    ],
)
def test_phrases_that_occur(phrase, text):
    assert found([phrase], text) is True


@pytest.mark.parametrize(
    ("phrase", "text"),
    [
        ("Paris", "Parisian"),
        ("Paris", ""),
        ("art", "party"),
        ("2017", "20170"),
        ("14", "3.14"),
        ("3.14", "3.14159"),
        ("C", "C++"),
        ("cafe", "café"),
        ("New York", "New old York"),
        ("서울", "서울대에 다닌다"),
        ("서울", "서울역"),
        ("전문", "전문가"),
        ("바", "바다"),
        ("물", "물론"),
    ],
)
def test_phrases_that_do_not(phrase, text):
    assert found([phrase], text) is False


def test_one_accepted_is_enough_and_one_rejected_too_much():
    assert found(["Mercury", "Merkur"], "Merkur") is True
    assert found(["Mercury"], "Mercury, or Venus", ["Venus"]) is False
    assert found(["Mercury"], "Mercury, not Venusian", ["Venus"]) is True
    assert grade({"kind": "text", "accepted": ["a"]}, "a").format_ok is None


LETTERS = ["A", "B", "C", "D"]
NAMES = ["Alice", "Bob", "Carol"]
YES_NO = ["yes", "no"]
SEVERAL = None


def chosen(options: list[str], text: str) -> set[str]:
    return {
        o
        for o in options
        if grade({"kind": "choice", "options": options, "expected": o}, text).task_success
    }


@pytest.mark.parametrize(
    ("options", "text", "expected"),
    [
        (LETTERS, "B", "B"),
        (LETTERS, "(b)", "B"),
        (LETTERS, "b", "B"),
        (LETTERS, "**B**", "B"),
        (LETTERS, "\\boxed{C}", "C"),
        (LETTERS, "B) Lyon", "B"),
        (LETTERS, "D. All of the above", "D"),
        (LETTERS, "The answer is B.", "B"),
        (LETTERS, "**Answer: B**", "B"),
        (LETTERS, "The answer is:\n\nB", "B"),
        (LETTERS, "answer: d", "D"),
        (LETTERS, "It is not B, it is C.", "C"),
        (LETTERS, "The answer is not A but C.", "C"),
        (LETTERS, "The answer is B (not C).", "B"),
        (LETTERS, "The answer is B, C is wrong.", "B"),
        (LETTERS, "Neither A nor B. C.", "C"),
        (LETTERS, "A is wrong because it is small. B is correct.", "B"),
        (LETTERS, "Both A and B are wrong, so the answer is D", "D"),
        (LETTERS, "The answer is C because A and B are too small", "C"),
        (LETTERS, "A cat sat. The answer is (D).", "D"),
        (LETTERS, "A cat sat on B.", "B"),
        (LETTERS, "A) Paris\nB) Lyon\n\nThe answer is A) Paris", "A"),
        (LETTERS, "The answer is B. Wait, actually the answer is C.", "C"),
        (LETTERS, "I think the answer is A, but the final answer is B", "B"),
        (LETTERS, "정답은 B입니다.", "B"),
        (LETTERS, "B가 정답입니다", "B"),
        (LETTERS, "A는 아닙니다. C입니다", "C"),
        (LETTERS, "I think it is B", "B"),
        (NAMES, "Bob is the second oldest.", "Bob"),
        (NAMES, "Alice is older than Bob, who is older than Carol. So it must be Bob.", "Bob"),
        (NAMES, "The second oldest is **Bob**, since Alice is the oldest.", "Bob"),
        (NAMES, "The answer is Bob because Alice is older than Carol", "Bob"),
        (YES_NO, "Yes, because no other divides it.", "yes"),
        (YES_NO, "No. It is not.", "no"),
        (["1", "2", "3"], "정답은 3번입니다", "3"),
        (["Bob", "Bob Smith"], "Bob Smith", "Bob Smith"),
        (["red", "blue"], "The answer is Blue, not red.", "blue"),
        (["가", "나", "다"], "나", "나"),
        (["예", "아니오"], "아니오, 그렇지 않습니다", "아니오"),
        (LETTERS, "<think>The answer is A</think>The answer is B", "B"),
    ],
)
def test_what_is_chosen(options, text, expected):
    assert chosen(options, text) == {expected}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (LETTERS, ""),
        (LETTERS, "I do not know."),
        (LETTERS, "The answer is not B."),
        (LETTERS, "The correct answer is a cat"),
        (LETTERS, "The answer is A. The answer is B."),
        (LETTERS, "Final answer: A\nFinal answer: B"),
        (LETTERS, "A or B"),
        (LETTERS, "Answer: A/B"),
        (LETTERS, "The answer is A and B."),
        (LETTERS, "A\nB"),
        (LETTERS, "A) Paris\nB) Lyon\nC) Nice\nD) Brest"),
        (LETTERS, "\\boxed{A} or \\boxed{B}"),
        (NAMES, "Bob and Carol"),
        (NAMES, "Alice is older than Bob."),
        (YES_NO, "Yes. No."),
        (["1", "2"], "The answer is 10"),
    ],
)
def test_no_single_choice(options, text):
    assert chosen(options, text) == set()


def test_expected_must_be_an_option():
    with pytest.raises(ValidationError, match="none of the options"):
        item({"kind": "choice", "options": ["A"], "expected": "B"})


@given(st.text(alphabet="AB ab().,:*\n아니answer isnot or", max_size=60))
def test_never_two_right_options(text):
    assert len(chosen(["A", "B"], text)) <= 1
