"""Answers that only repeat the question, and answers that were cut before they were whole."""

from __future__ import annotations

import pytest
from grading_helpers import grade

ONE_SENTENCE = {"language": "ko", "min_words": 3, "max_words": 30, "paragraphs": 1}
MOUNTAIN = "산에 대해 한국어로 한 문장만 쓰세요."
SEA = "바다를 한국어 한 문장으로 설명해 주세요."


def form(text, question, *, finish_reason="stop", **checks):
    grader = {"kind": "instructions", "checks": checks}
    return grade(grader, text, question=question, finish_reason=finish_reason)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (MOUNTAIN, MOUNTAIN),
        (f" “{MOUNTAIN}”\n", MOUNTAIN),
        (f"<think>산?</think>{MOUNTAIN}", MOUNTAIN),
        ("다음을 보세요. 한 문장만 바로 쓰세요.", "다음을 보세요. 한 문장만 바로 쓰세요."),
        ("한 문장만 바로 쓰세요.", "다음을 보세요. 한 문장만 바로 쓰세요."),
    ],
)
def test_the_question_itself_follows_no_instruction(text, question):
    result = form(text, question, **ONE_SENTENCE)
    assert (result.format_ok, result.reason) == (False, "repeats the question")


@pytest.mark.parametrize(
    ("grader", "text", "question"),
    [
        ({"kind": "text", "accepted": ["Paris"]}, "Is it Paris or Rome?", "Is it Paris or Rome?"),
        (
            {"kind": "text", "accepted": ["Paris"]},
            "IS IT PARIS OR ROME",
            "Think well. Is it Paris or Rome? Answer in one word.",
        ),
        ({"kind": "number", "expected": 7}, "Is 5 + 2 = 7?", "Is 5 + 2 = 7?"),
        ({"kind": "json", "expected": {"a": 1}}, 'Copy {"a": 1}', 'Copy {"a": 1}'),
    ],
)
def test_the_question_itself_is_not_right(grader, text, question):
    result = grade(grader, text, question=question)
    assert (result.task_success, result.reason) == (False, "repeats the question")


@pytest.mark.parametrize(
    ("grader", "text", "question"),
    [
        ({"kind": "text", "accepted": ["Good morning"]}, "Good morning!", "Good morning!"),
        (
            {"kind": "text", "accepted": ["box B"]},
            "The key is in box B.",
            "The key is in box B. The lamp is in box A. Where is the key?",
        ),
        ({"kind": "choice", "options": ["red", "blue"], "expected": "red"}, "Red.", "Red."),
        ({"kind": "number", "expected": 7}, "What is 3 + 4? It is 7.", "What is 3 + 4?"),
        ({"kind": "tool", "expected": []}, "Good morning!", "Good morning!"),
    ],
)
def test_what_the_question_says_may_be_the_answer(grader, text, question):
    result = grade(grader, text, question=question)
    assert (result.task_success or result.tool_success) is True


def test_a_copy_that_was_asked_for_is_no_echo():
    checks = {"contains": ["The dog sleeps"], "max_words": 3}
    question = "Copy the next sentence. The dog sleeps."
    assert form("The dog sleeps.", question, **checks).format_ok is True


def test_parts_of_a_message_are_read_as_its_text():
    question = [{"type": "text", "text": MOUNTAIN}]
    assert form(MOUNTAIN, question, **ONE_SENTENCE).format_ok is False


def test_a_cut_echo_is_one_too():
    found = form(SEA[:-3], SEA, finish_reason="length", **ONE_SENTENCE)
    assert found.reason == "repeats the question (cut at max_tokens)"


@pytest.mark.parametrize(
    "checks",
    [
        {"max_words": 30},
        {"paragraphs": 1},
        {"excludes": ["cold"]},
        {"bullets": 0},
        {"lowercase": True},
        {"contains": ["island"], "max_words": 30},
    ],
)
def test_an_unfinished_answer_has_not_kept_a_limit(checks):
    text = "the island is small, it is a small island, it is a small"
    assert form(text, "?", **checks).format_ok is True
    cut = form(text, "?", finish_reason="length", **checks)
    assert cut.format_ok is False
    assert cut.reason.startswith("not finished")


def test_what_an_unfinished_answer_already_keeps_is_kept():
    checks = {"starts_with": "Certainly", "min_words": 2, "contains": ["blue"]}
    assert form("Certainly, blue is", "?", finish_reason="length", **checks).format_ok is True


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("The answer is 12", False),
        ("1, 12", False),
        ("12", False),
        ("The answer is 12.", True),
        ("The answer is 12 ", True),
        ("2 * 6 = 12\n\nIn a math context, 2 * 6 = 12", True),
    ],
)
def test_a_number_that_may_go_on_is_not_yet_said(text, right):
    grader = {"kind": "number", "expected": 12}
    assert grade(grader, text).task_success is True
    assert grade(grader, text, finish_reason="length").task_success is right
