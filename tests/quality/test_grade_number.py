"""The number grader, against the many ways in which models write a final answer."""

from __future__ import annotations

import pytest
from grading_helpers import grade
from hypothesis import given
from hypothesis import strategies as st


def right(text: str, expected: float, **more: object) -> bool | None:
    return grade({"kind": "number", "expected": expected, **more}, text).task_success


RIGHT = [
    "42325",
    "42,325",
    "42,325.0",
    "$42,325",
    "42325 USD",
    "USD 42,325",
    "**42325**",
    "__42,325__",
    "<b>42325</b>",
    "`42325`",
    "\\boxed{42325}",
    "$$\\boxed{\\$42{,}325\\text{ apples}}$$",
    "\\(42\\,325\\)",
    "\\mathbf{42325}",
    "42325.",
    "42 325",
    "42\u202f325",
    "42'325",
    "42_325",
    "４２３２５",
    "+42325",
    "4.2325e4",
    "4.2325 × 10^4",
    "4.2325 \\times 10^{4}",
    "4.2325 × 10⁴",
    "42.325 thousand",
    "4만 2325",
    "4만 2천 325",
    "답은 42,325입니다",
    "정답: 42325",
    "답은 **42,325**입니다. 1847에 23을 곱하고 156을 뺍니다.",
    "The answer is 42 325",
    "42325 is the answer, since 1847 × 23 = 42481.",
    "The answer is 42325 because 1847 × 23 = 42481 and 42481 − 156 = 42325.",
    "The answer to 1847 x 23 - 156 is 42325.",
    "The answer is 1847 × 23 − 156 = 42325",
    "The answer is not 41939 but 42325.",
    "Answer:\n\n42325",
    "답은 41939가 아니라 42325입니다",
    "**Answer**: 42325, after 2 steps",
    "Answer = 42,325 (not 41939)",
    "41939 is wrong; the answer is 42325",
    "\\boxed{\\text{42325}}",
    "x² = 25 aside, x = 42325",
    "Answer:\n1847 × 23 = 42481\n42481 − 156 = 42325",
    "**Answer:** 42325\n\nThere were 2 steps.",
    "#### 42325",
    "1847 × 23 = 42481, and 42481 − 156 = 42325, in 2 steps",
    "42325 = 1847 × 23 − 156",
    "1847*23-156=42325",
    "1847 \\cdot 23 - 156 = 42325",
    "**42325** (1847 × 23 = 42481, then minus 156)",
    "**42325**\n\nCheck: 42325 + 156 = 42481",
    "Step 1: **42481**. Step 2: 42481 - 156 = 42325",
    "**Step 1:** 1847 × 23 = 42481\n**Step 2:** 42481 − 156 = 42325",
    "First guess, the answer is 41939. Final answer: 42325. It took 2 minutes.",
    "1. Multiply 1847 by 23.\n2. Subtract 156 to get 42325.",
    "Multiply, which gives 42481. Subtract 156. It is 42325",
    "<think>Is the answer 41939?</think>42325",
]


@pytest.mark.parametrize("text", RIGHT)
def test_ways_to_say_42325(text):
    assert right(text, 42325) is True


WRONG = [
    "",
    "no idea",
    "423250",
    "142325",
    "42325.5",
    "42.325",
    "-42325",
    "42,3250",
    "x42325",
    "1.42325.2",
    "42325e3",
    "42325/2",
    "42325 million",
    "The answer is 41905, although 42325 would be near.",
    "42325 + 1 = 42326",
    "\\boxed{41939} and not 42325",
    "**41939**, not 42325",
    "the answer is not 42325",
    "답은 42325가 아닙니다",
    "42325 then 41939",
    "9" * 5000,
    "1e999999999",
    "1/0",
]


@pytest.mark.parametrize("text", WRONG)
def test_texts_that_do_not_say_42325(text):
    assert right(text, 42325) is False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-5", -5),
        ("−5 °C", -5),
        ("minus 5 degrees", -5),
        ("x = - 5", -5),
        ("\\boxed{-5}", -5),
        ("**-5**", -5),
        ("-$5", -5),
        ("$-5$", -5),
        ("- 5 apples", 5),
        ("the total is 10-5", 5),
        ("pages 10–15", 15),
        ("1/2", 0.5),
        ("½", 0.5),
        ("3 1/2", 3.5),
        ("3½", 3.5),
        ("\\frac{1}{2}", 0.5),
        ("\\boxed{-\\frac{3}{4}}", -0.75),
        ("$1,234.50", 1234.5),
        ("5*10^3", 5000),
        ("1.0e-3 m", 0.001),
        (".5", 0.5),
        ("50%", 50),
        ("50%", 0.5),
        ("2**10", 1024),
        ("10⁵", 100000),
        ("an area of 25 m²", 25),
        ("1,00,000", 100000),
        ("3억 5천만 원", 350_000_000),
        ("1.5 million", 1_500_000),
        ("It is the 3rd", 3),
        ("17 is the 7th prime", 17),
        ("H2O boils at 100", 100),
        ("In 2017 300 people came", 300),
        ("007", 7),
        ("0", 0),
        (12345678901234567890, 12345678901234567890),
    ],
)
def test_values(text, expected):
    assert right(str(text), expected) is True


def test_tolerance_is_absolute_and_exact():
    assert right("3.15", 3.14, tolerance=0.01) is True
    assert right("3.1501", 3.14, tolerance=0.01) is False
    assert right("0.30000000000000004", 0.3) is False


@pytest.mark.parametrize(
    "text", ["42,325", " 42325\n", "41939", "-5", "42325.0", "4e4", "1/2", "−5"]
)
def test_only_a_number(text):
    result = grade({"kind": "number", "expected": 42325, "only_number": True}, text)
    assert result.format_ok is True


@pytest.mark.parametrize(
    "text",
    ["", "The answer is 42325", "42325 apples", "**42325**", "$42,325", "42325 41939", "-", "1,2"],
)
def test_more_than_a_number(text):
    result = grade({"kind": "number", "expected": 42325, "only_number": True}, text)
    assert result.format_ok is False


def test_no_format_measure_unless_asked_for():
    assert grade({"kind": "number", "expected": 1}, "1").format_ok is None


@given(
    st.integers(-(10**12), 10**12), st.sampled_from(["{}", "{:,}", "**{:,}**", "The answer is {}."])
)
def test_every_integer_is_found_and_no_other(value, form):
    text = form.format(value)
    assert right(text, value) is True
    assert right(text, value + 1) is False
    assert right(text + "0" if form in ("{}", "{:,}") else form.format(value * 10 + 1), value) in (
        (value == 0 and form != "**{:,}**"),
        False,
    )


@given(st.text(alphabet="0123456789.,-+*=/%^$\\{}()eE ×−½²만천억 \nanswer is답", max_size=60))
def test_no_text_breaks_it(text):
    assert right(text, 42) in (True, False)
