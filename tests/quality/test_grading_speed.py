"""No answer, however odd, makes grading slow: nothing grows with the square of its length."""

from __future__ import annotations

import time

import pytest
from grading_helpers import grade

GRADERS = [
    {"kind": "number", "expected": 1},
    {"kind": "text", "accepted": ["서울 시", "New York"], "rejected": ["x"]},
    {"kind": "choice", "options": ["A", "B", "C"], "expected": "A"},
    {"kind": "json", "schema": {}},
    {"kind": "instructions", "checks": {"bullets": 2, "language": "en", "json_only": True}},
    {"kind": "python", "entry_point": "f", "tests": ["assert f()"]},
]
PIECES = [
    "a",
    "**",
    "= ",
    "[",
    "1+1=",
    "\\boxed{",
    '"',
    "A\n",
    "정답은 ",
    "answer: ",
    "```\n",
    "def f(",
]


@pytest.mark.parametrize("grader", GRADERS, ids=lambda grader: grader["kind"])
def test_long_odd_answers(grader):
    begin = time.process_time()
    for piece in PIECES:
        grade(grader, piece * (10_000 // len(piece)))
    assert time.process_time() - begin < 8
