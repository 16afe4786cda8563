"""Grades answers that are one number."""

from __future__ import annotations

import bisect
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

from scripts.lib.quality.completions import Completion
from scripts.lib.quality.graders.grade import Grade, short, without_thoughts
from scripts.lib.quality.graders.number_last import (
    SENTENCE_END,
    given,
    hedged,
    is_reason,
    last_number,
)
from scripts.lib.quality.graders.number_text import (
    BOLD,
    BOLD_END,
    BOXED,
    BOXED_END,
    MARKS,
    passages,
    plain,
    without_marks,
)
from scripts.lib.quality.graders.number_tokens import Token, numbers
from scripts.lib.quality.graders.number_units import said_again
from scripts.lib.quality.graders.number_words import spelled
from scripts.lib.quality.probes import NumberGrader, ProbeItem

_DIGITS = "0123456789"
_ONLY_NUMBER = re.compile(
    r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d{2})+,\d{3}|\d{1,3}(?:[ '’]\d{3})+|\d+)?"
    r"(?:\.\d+)?(?:[eE][-+]?\d+|/\d+)?"
)

# Quantifiers are possessive (`*+`) where parts could match the same text: no backtracking.
_NOISE = rf"[\s{MARKS}(\[\"'`~:*_$\\{{]|approximately|about|roughly|around|exactly|약|USD|EUR|KRW"
_COPULA = (
    r"\b(?:is|was|are|be|equals?|therefore|thus|so|then|just|simply|now|also|indeed|would|should"
    r"|must|will|comes?|to|out)\b|(?<=[답변])\s*[은는이]|[=≈]|→|->"
)
_ANSWER = re.compile(
    rf"(?P<final>final\s+|최종\s*)?[{MARKS}]*"
    r"(?:\banswers?\b(?!\s+(?:the|this|that|these|your)\b)|####|(?<![응대])답(?!변)|답변)",
    re.IGNORECASE,
)
_DIRECT = re.compile(rf"(?:{_COPULA}|{_NOISE})*+", re.IGNORECASE)
_IS = re.compile(rf"(?:\b(?:is|was|are|be|equals?)\b|[=≈:]|→|[은는])(?:{_NOISE})*+$", re.IGNORECASE)
_NOT = re.compile(
    r"(?:\b(?:not|never|cannot\s+be|can['’]t\s+be|isn['’]t|wasn['’]t|instead of|rather than)|!=|≠)"
    rf"(?:{_NOISE})*+$",
    re.IGNORECASE,
)
_IS_NOT = re.compile(
    rf"[\s{MARKS}]*(?:[가-힣]{{0,3}}?\s*(?:이|가|은|는)?\s*(?:아니|아닌|아닙|틀)"
    r"|(?:(?:is|was)\s+(?:clearly\s+)?(?:wrong|incorrect|not\s+(?:right|correct|the\s+answer))"
    r"|isn['’]t\b))",
    re.IGNORECASE,
)
_CORRECTED = re.compile(
    r"(?:\b(?:wait|actually|correction|sorry|oops|scratch that|I mean)\b[\s,.:;!…—–-]*"
    r"|(?<=[\s,.;…?!])no,\s+|정정\s*:?\s*|아니(?:다|야)?[,.]\s*)"
    r"(?:no,\s+)?(?:(?:it|that)(?:['’]s|\s+is|\s+should\s+be)\s+|make\s+(?:it|that)\s+)?"
    rf"(?:{_NOISE})*+$",
    re.IGNORECASE,
)
_LABELLED = re.compile(rf"[\s#{MARKS}]*")
_NUMBER_IS_ANSWER = re.compile(
    rf"[\s{MARKS}.%]*+(?:(?!is|was)[A-Za-z]+\s+)?(?:(?:is|was)\b|[이가])\s*"
    rf"(?:(?:the|my|our|your|final|correct|right)\s+)*+[{MARKS}]*",
    re.IGNORECASE,
)
_OPERATOR = re.compile(
    rf"[\s{MARKS}$%)\]]*+(?:[A-Za-z가-힣]{{2,15}}\s+)?[-+×x*÷/·][\s{MARKS}$(\[]*+", re.IGNORECASE
)
_TIMES = re.compile(r"\s+(?:times|plus|minus|divided by|multiplied by|곱하기|더하기|빼기)\s+", re.I)
_EQUALS = re.compile(r"(?<![!<>=])[=≈]{1,2}(?!>)")
_FILLER = re.compile(rf"(?:{_NOISE})*+", re.IGNORECASE)
_MARKED_SPACE = re.compile(rf"[\s{MARKS}]*")
_REACH = 80
"""How far, in characters, words before a number are looked at."""
_CHECK = re.compile(
    r"\b(?:(?:double[- ]?)?check(?:ing)?|verify|verification|verifying)\b|검산|확인", re.IGNORECASE
)
_SIGNS = str.maketrans({"−": "-", "⁄": "/"})
_AND = re.compile(r"\s*,?\s*(?:\b(?:or|nor|and)\b|또는|혹은)\s*", re.IGNORECASE)
_FACTOR = re.compile(r"[\dA-Za-z)]\s*\(\s*$")
_OF = re.compile(rf"\bof[\s$€£{MARKS}]*$", re.IGNORECASE)
_STEP = re.compile(
    r"(?:step|part|case|phase|question|problem|example|option|단계|문제)\s*$", re.IGNORECASE
)


def grade_number(grader: NumberGrader, item: ProbeItem, completion: Completion) -> Grade:
    """Grade a number: see ``docs/quality.md`` for what counts as the final answer."""
    format_ok = is_only_number(completion.text) if grader.only_number else None
    text = plain(without_thoughts(completion.text))
    token = final_number(text, given(plain(question(item))))
    if token is None:
        return Grade(task_success=False, format_ok=format_ok, reason="no number in the text")
    right = _matches(token.values, grader)
    found = short(text[token.start : token.end].strip(" " + MARKS))
    expected = f"{grader.expected:,}" if isinstance(grader.expected, int) else grader.expected
    reason = f"found {found}" if right else f"found {found}, expected {expected}"
    if right and not _stands_without_its_end(grader, item, completion):
        right, reason = False, f"found {found}, which may be the beginning of another number"
    return Grade(task_success=right, format_ok=format_ok, reason=reason)


def _stands_without_its_end(grader: NumberGrader, item: ProbeItem, completion: Completion) -> bool:
    """Whether an answer does not rest on a number at which it was cut: "12" may be 120."""
    text = completion.text
    if completion.finish_reason != "length" or text[-1:] not in tuple(_DIGITS):
        return True
    whole = {"text": text.rstrip(f"{_DIGITS}.,"), "finish_reason": None}
    return bool(grade_number(grader, item, completion.model_copy(update=whole)).task_success)


def _matches(values: Iterable[Fraction], grader: NumberGrader) -> bool:
    expected = Fraction(str(grader.expected))
    tolerance = Fraction(str(grader.tolerance))
    return any(abs(value - expected) <= tolerance for value in values)


def is_only_number(text: str) -> bool:
    """Whether the stripped text is a number and nothing else: no unit, no markup, no full stop."""
    text = unicodedata.normalize("NFKC", text.strip()).translate(_SIGNS)
    return bool(_ONLY_NUMBER.fullmatch(text)) and any(c.isdigit() for c in text)


def question(item: ProbeItem) -> str:
    """Return the text that the last message of an item asks."""
    content = item.messages[-1].get("content")
    return content if isinstance(content, str) else ""


def final_number(text: str, asked: frozenset[Fraction] = frozenset()) -> Token | None:
    """Return the number that a plain text gives as its answer, or None.

    The last boxed one; else the one said to be the answer; else one marked by bold or an equals
    sign; else the last. ``asked``: the numbers of the question. Of "7 or 8" neither is it.
    """
    every = numbers(text)
    tokens = _not_negated(text, every)
    tokens = [token for token in tokens if not token.weak] or tokens
    if not tokens:
        return None if every else _spelled(text)
    chosen = (
        _boxed(text, tokens)
        or _corrected(text, tokens, _answered(text, tokens))
        or _bold_or_equal(text, tokens)
        or last_number(text, tokens, asked)
    )
    values, again = said_again(text, every, chosen)
    other = hedged(text, tokens, chosen)
    if other is not None and other not in again:
        start, end = min(chosen.start, other.start), max(chosen.end, other.end)
        return Token(start, end, frozenset())
    return replace(chosen, values=values)


def _spelled(text: str) -> Token | None:
    value = spelled(without_marks(text))
    return None if value is None else Token(0, len(text), frozenset({Fraction(value)}))


def _before(text: str, token: Token, start: int = 0) -> str:
    return text[max(start, token.start - _REACH) : token.start]


def _not_negated(text: str, tokens: list[Token]) -> list[Token]:
    kept: list[Token] = []
    negated: Token | None = None
    for token in tokens:
        goes_on = negated is not None and _AND.fullmatch(text, negated.end, token.start)
        negated = token if goes_on or _is_negated(text, token) else None
        kept += [token] if negated is None else []
    return kept


def _is_negated(text: str, token: Token) -> bool:
    return bool(_NOT.search(_before(text, token)) or _IS_NOT.match(text, token.end))


def _within(tokens: list[Token], start: int, end: int) -> list[Token]:
    return [token for token in tokens if start <= token.start and token.end <= end]


def _boxed(text: str, tokens: list[Token]) -> Token | None:
    for start, end in reversed(passages(text, BOXED, BOXED_END)):
        inside = _within(tokens, start, end)
        if inside:
            return _last_result(text, inside) or inside[-1]
    return None


def _answered(text: str, tokens: list[Token]) -> Token | None:
    """Return the number after the last "answer" that names one; "final answer" goes first."""
    found = list(_ANSWER.finditer(text))
    for marker in sorted(found, key=lambda m: (bool(m["final"]), m.start()), reverse=True):
        token = _before_marker(text, tokens, marker) or _after_marker(text, tokens, marker)
        if token is not None:
            return token
    return None


def _corrected(text: str, tokens: list[Token], answer: Token | None) -> Token | None:
    """Return a number said after "wait", "actually" or "no," that replaces the answer before."""
    if answer is None:
        return None
    later = [token for token in tokens if token.start > answer.start]
    said = [token for token in later if _CORRECTED.search(_before(text, token, answer.end))]
    return said[-1] if said else answer


def _after_marker(text: str, tokens: list[Token], marker: re.Match[str]) -> Token | None:
    sentence_end = SENTENCE_END.search(text, marker.end())
    end = sentence_end.start() if sentence_end else len(text)
    region = _within(tokens, marker.end(), end)
    if len(region) > 1 and _is_label_of_answer(text, marker.end(), region[0]):
        region = region[1:]
    if not region:
        return _below_heading(text, tokens, marker.end(), end)
    first = region[0]
    if _DIRECT.fullmatch(text, marker.end(), first.start):
        if not _is_operand(text, region, 0):
            return first
        return _last_result(text, region)
    said = [token for token in region if _IS.search(_before(text, token, marker.end()))]
    return said[-1] if said else None


def _is_label_of_answer(text: str, start: int, token: Token) -> bool:
    """Whether a number only counts the answers: "Answer 1: 36"."""
    colon = text[token.end : token.end + 2].startswith((":", " :"))
    return colon and bool(_LABELLED.fullmatch(text, start, token.start))


def _below_heading(text: str, tokens: list[Token], start: int, end: int) -> Token | None:
    """Return the answer in the lines below "Answer:", where its own line has no number."""
    line = text[start:end].strip(" " + MARKS + "*_")
    below = _within(tokens, end, len(text))
    if not below or not (line == "" or line.endswith((":", "is", "은", "는"))):
        return None
    return _bold_or_equal(text, below) or below[-1]


def _before_marker(text: str, tokens: list[Token], marker: re.Match[str]) -> Token | None:
    """Return the number of "42 is the answer"."""
    before = [token for token in tokens if token.end <= marker.start()]
    if before and _NUMBER_IS_ANSWER.fullmatch(text, before[-1].end, marker.start()):
        return before[-1]
    return None


def _bold_or_equal(text: str, tokens: list[Token]) -> Token | None:
    """Return the number marked by bold or "=".

    A bold number goes first unless a later calculation goes on from it.
    """
    bold, result = _last_bold(text, tokens), _before_check(text, tokens)
    if result and is_reason(text, tokens, result):
        result = None
    if bold is None or result is None:
        return bold or result
    if result.start <= bold.start or _CHECK.search(text[bold.end : result.start]):
        return bold
    later = [i for i, token in enumerate(tokens) if bold.start <= token.start < result.start]
    goes_on = any(tokens[i].values == bold.values and _is_operand(text, tokens, i) for i in later)
    return result if goes_on else bold


def _before_check(text: str, tokens: list[Token]) -> Token | None:
    """Return the last result of a text, but not that of a check which uses the answer.

    "42481 − 156 = 42325. Check: 42325 + 156 = 42481".
    """
    result = _last_result(text, tokens)
    checks = list(_CHECK.finditer(text, 0, result.start)) if result else []
    if result is None or not checks:
        return result
    answer = _last_result(text, [t for t in tokens if t.end <= checks[-1].start()])
    used = [i for i, t in enumerate(tokens) if checks[-1].end() <= t.start < result.start]
    if answer and any(
        tokens[i].values == answer.values
        and (_is_operand(text, tokens, i) or _FACTOR.search(_before(text, tokens[i])))
        for i in used
    ):
        return answer
    return result


def _last_bold(text: str, tokens: list[Token]) -> Token | None:
    for start, end in reversed(passages(text, BOLD, BOLD_END)):
        inside = _within(tokens, start, end)
        if inside and not _is_heading(text, start, end, inside):
            return _last_result(text, inside) or inside[-1]
    return None


def _is_heading(text: str, start: int, end: int, inside: list[Token]) -> bool:
    """Whether a bold passage is a heading, label or sum ("Step 2:", "15% of 240") and no answer."""
    passage = text[start:end].rstrip()
    if passage.endswith(":") or text[end + 1 :].lstrip(" ").startswith(":"):
        return True
    if len(inside) > 1 and "=" not in passage:
        last = inside[-1]
        if _OF.search(text[start : last.start]) or _joined(text, inside[-2], last):
            return True
    return bool(_STEP.search(text[start : inside[-1].start]))


def _last_result(text: str, tokens: list[Token]) -> Token | None:
    """Return the result of the last equation: the plain number on one side of its "="."""
    if not tokens:
        return None
    begin = max(0, tokens[0].start - _REACH)
    for equals in reversed(list(_EQUALS.finditer(text, begin, tokens[-1].end))):
        token = _result_of(text, tokens, equals)
        if token is not None:
            return token
    return None


def _result_of(text: str, tokens: list[Token], equals: re.Match[str]) -> Token | None:
    right = bisect.bisect_left([token.start for token in tokens], equals.end())
    left = right - 1
    if right < len(tokens) and _FILLER.fullmatch(text, equals.end(), tokens[right].start):
        if not _is_operand(text, tokens, right):
            return tokens[right]
    elif right < len(tokens) or left < 0:
        return None
    touching = left >= 0 and _MARKED_SPACE.fullmatch(text, tokens[left].end, equals.start())
    return tokens[left] if touching and not _is_operand(text, tokens, left) else None


def _is_operand(text: str, tokens: list[Token], position: int) -> bool:
    """Whether an operator stands between this number and a neighbour."""
    pairs = [(position - 1, position), (position, position + 1)]
    return any(_joined(text, tokens[a], tokens[b]) for a, b in pairs if a >= 0 and b < len(tokens))


def _joined(text: str, left: Token, right: Token) -> bool:
    between = text[left.end : right.start]
    return len(between) < 40 and bool(_OPERATOR.fullmatch(between) or _TIMES.fullmatch(between))
