"""The project's own probes: each accepts a good answer and refuses a plausible wrong one."""

from __future__ import annotations

import calendar
import itertools
import re
from pathlib import Path

import pytest
from grading_helpers import grade

from scripts.lib.quality.probes import ProbeItem, load_probes

PROJECT = Path(__file__).parents[2]

# item: (answers that pass, answers that do not)
ANSWERS = {
    "arithmetic-single-digits": (["7", "3 + 4 = 7"], ["8", "34"]),
    "arithmetic-tens": (["50"], ["60"]),
    "arithmetic-double": (["12"], ["8"]),
    "arithmetic-minus": (["6"], ["24", "-6"]),
    "arithmetic-half": (["45"], ["180"]),
    "arithmetic-two-digits": (["83"], ["73"]),
    "arithmetic-times-table": (["56"], ["54"]),
    "arithmetic-boxes": (["There are 60 pencils in 5 boxes."], ["17", "There are 12 pencils."]),
    "arithmetic-negative": (["-5", "minus 5"], ["5", "13"]),
    "arithmetic-percent": (["36 is 15 percent of 240."], ["16", "3.6"]),
    "arithmetic-train": (["1 hour 25 minutes = 85 minutes"], ["1 hour 25 minutes", "125"]),
    "arithmetic-multi-step": (["1847 x 23 = 42481\n42481 - 156 = 42325"], ["42481 - 156 = 42335"]),
    "fact-capital-france": (["Paris"], ["London"]),
    "fact-romeo": (["William Shakespeare"], ["Christopher Marlowe"]),
    "fact-ocean": (["The Pacific Ocean."], ["The Atlantic Ocean."]),
    "fact-nearest-planet": (["Mercury", "Mercury, not Earth"], ["Venus", "Earth"]),
    "fact-gold": (["Au"], ["Ag", "Gold"]),
    "fact-transformer-year": (["2017"], ["2018"]),
    "fact-canberra": (["Canberra"], ["Sydney"]),
    "fact-day-hours": (["24", "24 hours (1,440 minutes)"], ["12"]),
    "fact-japan": (["Tokyo"], ["Kyoto"]),
    "fact-legs": (["8", "A spider has eight legs."], ["6"]),
    "fact-boiling": (["100", "100 °C (212 °F)"], ["212", "0"]),
    "fact-python-author": (["Guido van Rossum", "Van Rossum."], ["James Gosling", "Guido Boöger"]),
    "korean-repeat": (
        ["오늘은 날씨가 좋습니다."],
        ["오늘은 날씨가 좋습니다. " * 2, "날씨가 좋아요."],
    ),
    "korean-capital": (["서울입니다.", "대한민국의 수도는 서울특별시입니다."], ["부산", "서울대"]),
    "korean-thanks": (["감사합니다.", "'고맙습니다'라고 합니다."], ["죄송합니다", "Thank you"]),
    "korean-king": (["세종대왕입니다.", "세종"], ["태조 이성계", "정조", "이도 저도 아닙니다."]),
    "korean-one-sentence": (
        ["바다는 넓고 푸르고 짠 물입니다."],
        ["The sea is wide and blue.", "바다"],
    ),
    "korean-quantization": (
        ["양자화는 모델이 쓰는 메모리를 줄입니다. 작은 GPU에서도 돌아갑니다."],
        ["양자화는 모델의 크기를 줄여 빠르게 만듭니다.", "Quantization saves 메모리 on GPUs."],
    ),
    "korean-greeting": (["안녕하세요!"], ["Hello!", "こんにちは"]),
    "korean-mountain": (
        ["산은 높고 공기가 맑습니다."],
        ["Mountains are high.", "산은 높다.\n\n산은 맑다."],
    ),
    "korean-in-english": (["water", "'Water'입니다."], ["fire", "물"]),
    "korean-sum": (["7", "7개입니다."], ["12", "3개와 4개"]),
    "korean-yes-no": (
        ["아니요", "아니오", "아니요, 고래는 포유류입니다."],
        ["예", "네", "예 또는 아니요"],
    ),
    "korean-opposite": (["작다", "'작다'입니다."], ["크다", "길다"]),
    "logic-next-number": (["10", "2, 4, 6, 8, 10"], ["12"]),
    "logic-yes": (["Yes, Tom is an animal."], ["No."]),
    "logic-second-oldest": (["Bob"], ["Alice", "Bob or Carol"]),
    "logic-not-wet": (["No, it did not rain."], ["Yes."]),
    "logic-weekday": (["Today is Monday, so it is Wednesday."], ["Tuesday"]),
    "logic-letter": (["B", "Box B"], ["A", "B or C"]),
    "logic-some-not-all": (["No, it does not follow."], ["Yes, Dana plays chess."]),
    "logic-bigger": (["Yes"], ["No"]),
    "logic-odd-one": (["hammer", "The word hammer does not belong."], ["cherry"]),
    "logic-before": (["Pia arrived last."], ["Nina"]),
    "logic-halving": (["10"], ["0", "15"]),
    "logic-opposite": (["Yes, it is off."], ["No"]),
    "instructions-short": (
        ["A queue gives items back in the order in which they came."],
        ["Well, a queue is a data structure that gives items back in the order they came in."],
    ),
    "instructions-keyword": (["The island is small."], ["The isle is small."]),
    "instructions-two-words": (["A lamp stood by the river."], ["A lamp stood by the water."]),
    "instructions-bullets": (
        ["- apple\n- pear\n- plum"],
        ["Here are three:\n- apple\n- pear\n- plum", "1. apple\n2. pear\n3. plum", "- apple"],
    ),
    "instructions-capitals": (["SPRING", "SPRING COMES NEXT."], ["Spring", "SUMMER"]),
    "instructions-lower-case": (["the dog sleeps"], ["The dog sleeps", "the dog"]),
    "instructions-beginning": (["Certainly, blue."], ["Blue, certainly.", "Certainly"]),
    "instructions-ending": (
        ["Use a smaller batch. That is all."],
        ["Use a smaller batch.", "Use a smaller batch. That is all. Bye!"],
    ),
    "instructions-excluded": (
        ["Snow falls softly as tiny frozen stars."],
        ["Snow is cold.", "Snow is soft and White."],
    ),
    "instructions-one-word": (["Yes."], ["Yes, it is.", "🔥"]),
    "instructions-two-paragraphs": (
        ["Bread is made of flour.\n\nIt smells good when fresh."],
        [
            "Bread is made of flour. It smells good when fresh.",
            "Here are the two paragraphs:\n\n**Paragraph 1**\n**Paragraph 2**",
        ],
    ),
    "instructions-json-only": (
        ['{"status": "fine"}'],
        ['```json\n{"status": "fine"}\n```', '{"state": "fine"}', "status: fine"],
    ),
}


@pytest.fixture(scope="module")
def own() -> dict[str, ProbeItem]:
    return {item.id: item for item in load_probes(["config/probes/*.jsonl"], PROJECT)}


def passed(item: ProbeItem, text: str) -> bool | None:
    result = grade(
        item.grader.model_dump(by_alias=True, exclude_unset=True),
        text,
        question=item.messages[-1]["content"],
    )
    return result.format_ok if result.task_success is None else result.task_success


def test_every_item_of_text_has_answers_here(own):
    elsewhere = {"code", "json", "tool"}
    assert ANSWERS.keys() == {i for i, item in own.items() if item.axis not in elsewhere}


@pytest.mark.parametrize("name", ANSWERS)
def test_good_answers_pass_and_bad_ones_do_not(own, name):
    good, bad = ANSWERS[name]
    assert [text for text in good if not passed(own[name], text)] == []
    assert [text for text in bad if passed(own[name], text) is not False] == []


def test_no_item_accepts_its_own_question(own):
    """Nor its instruction alone, nor its question alone: "한 문장만 쓰세요." is no sentence."""
    for item in own.values():
        if item.axis == "tool":
            continue
        question = item.messages[-1]["content"]
        echoes = [question, question.lower(), f"**{question}**", question.replace(" ", "\n")]
        echoes += [part for part in re.split(r"(?<=[.?!])\s+", question) if part != question]
        assert [text for text in echoes if passed(item, text) is not False] == [], item.id


def follows(premises, claim, variables: int) -> bool:
    """Whether a claim holds in every case that the premises allow."""
    cases = itertools.product([False, True], repeat=variables)
    return all(claim(*case) for case in cases if premises(*case))


def test_what_follows_from_the_premises(own):
    expected = {name: item.grader.expected for name, item in own.items() if item.axis == "logic"}
    rained = follows(lambda rain, wet: (not rain or wet) and not wet, lambda rain, wet: rain, 2)  # noqa: ARG005
    dry = follows(lambda rain, wet: (not rain or wet) and not wet, lambda rain, wet: not rain, 2)  # noqa: ARG005
    assert (rained, dry, expected["logic-not-wet"]) == (False, True, "no")
    dana = follows(lambda dana, other: dana or other, lambda dana, other: dana, 2)  # noqa: ARG005
    assert (dana, expected["logic-some-not-all"]) == (False, "no")
    off = follows(lambda on, off: on != off and not on, lambda on, off: off, 2)  # noqa: ARG005
    assert (off, expected["logic-opposite"]) == (True, "yes")
    assert expected["logic-weekday"] == calendar.day_name[calendar.MONDAY + 2]
    boxes = [box for box in "ABC" if box not in ("A", "C")]
    assert boxes == [expected["logic-letter"]]


def test_orders(own):
    ages = list(itertools.permutations(["Alice", "Bob", "Carol"]))
    ages = [o for o in ages if o.index("Alice") < o.index("Bob") < o.index("Carol")]
    assert {order[1] for order in ages} == {own["logic-second-oldest"].grader.expected}
    arrivals = list(itertools.permutations(["Nina", "Omar", "Pia"]))
    arrivals = [o for o in arrivals if o.index("Nina") < o.index("Omar") < o.index("Pia")]
    assert {order[-1] for order in arrivals} == {own["logic-before"].grader.expected}


def test_text_instead_of_a_needed_call_and_a_needless_call_are_wrong(own):
    for item in (item for item in own.values() if item.axis == "tool"):
        grader = item.grader.model_dump()
        any_call = {"function": {"name": item.tools[0]["function"]["name"], "arguments": "{}"}}
        wrong = [] if item.grader.expected else [any_call]
        result = grade(grader, "Sure.", calls=wrong, tools=item.tools)
        assert result.tool_success is False, item.id
