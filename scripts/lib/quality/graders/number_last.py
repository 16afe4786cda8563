"""Which number a text ends on, where none is marked as the answer; and answers that hedge."""

from __future__ import annotations

import bisect
import re
from fractions import Fraction

from scripts.lib.quality.graders.number_text import MARKS
from scripts.lib.quality.graders.number_tokens import Token, numbers

SENTENCE_END = re.compile(r"[.!?。]++(?=[\s\"')\]]|$)|\n")
_BECAUSE = re.compile(
    r"\bbecause\b|,\s*(?:since\b|as\b(?!\s+(?:well|many|much|of)\b))", re.IGNORECASE
)
_BEFORE_GIVEN = re.compile(
    r"\b(?:in|of|at|for|per|by|from|after|with|on|among|across)\s+"
    rf"(?:(?:the|all|those|these|each)\s+)?[\s$€£¥₩{MARKS}]*$",
    re.IGNORECASE,
)
_PART_OF = re.compile(rf"[\s{MARKS}]*(?:%|percent)?[\s{MARKS}]*of\b", re.IGNORECASE)
_SUM = re.compile(rf"[\s{MARKS}]*(?:[^\W\d_]+[\s/]+){{0,3}}?[-+×x*÷/·][\s{MARKS}]*", re.IGNORECASE)
_UNIT = re.compile(rf"[\s{MARKS}%°]*(?:[^\W\d_]+[\s{MARKS}]*){{0,3}}[.!。]?\s*")
_OR = re.compile(
    rf"[\s{MARKS}%]*(?:[^\W\d]{{1,15}}\s*)?,?\s*(?:\bor\b|또는|혹은)\s*[\s$€£₩{MARKS}]*"
)
_REACH = 40


def given(question: str) -> frozenset[Fraction]:
    """Return the values of the numbers that a question holds."""
    return frozenset(value for token in numbers(question) for value in token.values)


def last_number(text: str, tokens: list[Token], asked: frozenset[Fraction]) -> Token:
    """Return the last number that is no reason or detail given after the answer.

    Such are "because 12 × 5", "(12 × 5)", and numbers of the question (``asked``) as in "there
    are 60 pencils in 5 boxes". Where all are of that sort, it is the very last.
    """
    if _is_explained(text, tokens, asked):
        return tokens[0]
    kept = [token for token in _sentence(text, tokens) if not _in_a_sum_in_brackets(text, token)]
    while len(kept) > 1 and _is_detail(text, kept, asked):
        kept.pop()
    return kept[-1] if kept else _outside(text, tokens)


def _is_explained(text: str, tokens: list[Token], asked: frozenset[Fraction]) -> bool:
    """Whether a number makes up the first sentence and the rest restates the question's."""
    first = tokens[0]
    end = SENTENCE_END.search(text, first.end)
    if not asked or first.values & asked or not end or text[: first.start].strip(" *#\n" + MARKS):
        return False
    rest = tokens[1:]
    said = bool(_UNIT.fullmatch(text, first.end, end.end()))
    return said and all(t.start >= end.end() and t.values & asked for t in rest)


def is_reason(text: str, tokens: list[Token], token: Token) -> bool:
    """Whether a number belongs to a reason, "42, since 2x = 84", after another number."""
    ends = [0, *(found.end() for found in SENTENCE_END.finditer(text, 0, token.start))]
    reason = _BECAUSE.search(text, ends[-1], token.start)
    return bool(reason and any(ends[-1] <= t.start < reason.start() for t in tokens))


def _outside(text: str, tokens: list[Token]) -> Token:
    rest = [token for token in tokens if not _in_a_sum_in_brackets(text, token)]
    return (rest or tokens)[-1]


def _sentence(text: str, tokens: list[Token]) -> list[Token]:
    """Return the numbers of the last sentence that has any, without those of a reason."""
    ends = [0, *(found.end() for found in SENTENCE_END.finditer(text))]
    place = bisect.bisect_right(ends, tokens[-1].start) - 1
    inside = [token for token in tokens if ends[place] <= token.start]
    if "때문" in text[ends[place] :] and len(inside) < len(tokens):
        tokens = tokens[: -len(inside)]
        place = bisect.bisect_right(ends, tokens[-1].start) - 1
        inside = [token for token in tokens if ends[place] <= token.start]
    reason = _BECAUSE.search(text, ends[place])
    said = [token for token in inside if not reason or token.start < reason.start()]
    return said or inside


def _in_a_sum_in_brackets(text: str, token: Token) -> bool:
    """Whether a number stands in brackets that hold a sum without a result: (12 × 5)."""
    begin = text.rfind("(", max(0, token.start - _REACH), token.start + 1)
    end = text.find(")", token.end - 1, token.end + _REACH)
    if begin < 1 or end < 0 or ")" in text[begin : token.start]:
        return False
    inside = text[begin + 1 : end]
    parts = numbers(inside)
    if len(parts) < 2 or not re.search(rf"[\d{MARKS}A-Za-z가-힣°%]\s*$", text[:begin]):
        return False
    pairs = zip(parts, parts[1:], strict=False)
    return "=" not in inside and all(_SUM.fullmatch(inside[a.end : b.start]) for a, b in pairs)


def _is_detail(text: str, kept: list[Token], asked: frozenset[Fraction]) -> bool:
    last = kept[-1]
    if not last.values & asked or all(token.values & asked for token in kept):
        return False
    before = text[max(0, last.start - _REACH) : last.start]
    return bool(_BEFORE_GIVEN.search(before) or _PART_OF.match(text, last.end))


def hedged(text: str, tokens: list[Token], chosen: Token) -> Token | None:
    """Return the other number of "7 or 8", where ``chosen`` is one of them; else None."""
    place = next((i for i, token in enumerate(tokens) if token.start == chosen.start), None)
    if place is None:
        return None
    for left, right in ((place - 1, place), (place, place + 1)):
        if left < 0 or right >= len(tokens) or tokens[left].values & tokens[right].values:
            continue
        between = text[tokens[left].end : tokens[right].start]
        if len(between) <= _REACH and _OR.fullmatch(between):
            return tokens[left] if right == place else tokens[right]
    return None
