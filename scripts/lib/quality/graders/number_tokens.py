"""Finds the numbers of a plain text (see ``number_text``) and their values."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, replace
from fractions import Fraction

from scripts.lib.quality.graders.number_text import MARKS

MOST_DIGITS = 400
"""Longer numbers, and powers of ten beyond, are read as numbers without a value."""

_LATIN = r"A-Za-zÀ-ɏͰ-ӿ"
_TOKEN = re.compile(
    rf"""
    (?<![{_LATIN}\d^]) (?<!\d\.) (?<![{_LATIN}\d]_) (?<!\d['’]) (?<!\^[-+])
    (?P<sign>[-+](?!\s*[-+]))?
    (?P<currency>\s?(?:US|CA|AU)?[$€£¥₩₹]\s?|(?:USD|EUR|GBP|KRW|JPY)\s?)?
    (?P<inner>-)?
    (?=\.?\d)
    (?P<whole>
        \d{{1,3}}(?:,\d{{3}})+(?![\d]|,\d)          # 42,325
      | \d{{1,2}}(?:,\d{{2}})+,\d{{3}}(?![\d]|,\d)  # 1,00,000
      | \d{{1,3}}(?:[ '’_]\d{{3}})+(?!\d|[ '’_]\d|/\d)  # 42 325, 42'325, 42_325
      | \d+
    )?
    (?P<decimals>\.\d+)?
    (?P<dotted>(?:\.\d+)+)?                         # a version or an address: no number
    (?:
        (?P<e>[eE][-+]?\d+)(?![\w])
      | \s*[×x*·]\s*10\s*\^\s*\(?(?P<ten>[-+]?\d+)\)?
      | \s*\^\s*\(?(?P<power>[-+]?\d+)\)?
      | (?P<mixed>\s\d+)?/(?P<below>\d+)(?![\d/]|\.\d)
      | (?P<percent>\s?%)
    )?
    """,
    re.VERBOSE,
)
_OPERAND = re.compile(rf"[{_LATIN}\d)\]}}%]$")
_NUMBER = re.compile(rf"[\d)\]}}%][{MARKS}]*$")
_DATE = re.compile(
    r"(?<![\d./-])(?:(\d{4})\s*년\s*(\d{1,2})\s*월(?:\s*(\d{1,2})\s*일)?"
    r"|(\d{4})-(0[1-9]|1[0-2])(?:-([0-2]\d|3[01]))?|(\d{1,2})/(\d{1,2})/(\d{4}))(?![\d/]|-\d)"
)
_CLOCK = re.compile(r"(?<![\d:.])\d{1,2}:[0-5]\d(?::[0-5]\d)?(?![\d:]|\.\d)")
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b|번째")
_SCALE = re.compile(
    r"\s*(?P<word>thousand|million|billion|trillion)\b"
    r"|(?P<k>k)\b"
    r"|(?-i:(?P<letter>[MB]|bn|mn)\b)"
    r"|\s?(?P<ko>[만억조])(?![약나큼들족점화])"
    r"|(?P<ko_small>[천백십])(?![천국사문화])",
    re.IGNORECASE,
)
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "k": 1000}
_LETTERS = {"K": 10**3, "M": 10**6, "mn": 10**6, "B": 10**9, "bn": 10**9}
_KOREAN = {"십": 10, "백": 100, "천": 10**3, "만": 10**4, "억": 10**8, "조": 10**12}


@dataclass(frozen=True)
class Token:
    """One number of a text: where it stands and which values it may mean.

    ``50%`` means 50 and 1/2. No values: a number too long to be computed with.
    """

    start: int
    end: int
    values: frozenset[Fraction]
    weak: bool = False
    """An ordinal, a time of day or a list's label: an answer only where there is nothing else."""


def numbers(text: str) -> list[Token]:
    """Return the numbers of a plain text, in order."""
    tokens = [_token(text, found) for found in _TOKEN.finditer(text) if not found["dotted"]]
    tokens = _join_korean(text, [_scaled(text, token) for token in _join_dates(text, tokens)])
    return _label(text, tokens)


def _token(text: str, found: re.Match[str]) -> Token:
    sign = found["sign"] or ""
    start = found.start()
    if sign and _is_operator(text, start):
        sign, start = "", start + 1
    negative = (sign == "-") != bool(found["inner"])
    values = frozenset(-v if negative else v for v in _values(found))
    return Token(start, found.end(), values, weak=bool(_ORDINAL.match(text, found.end())))


def _is_operator(text: str, position: int) -> bool:
    """Whether the sign at ``position`` stands between two operands, or is a range's dash."""
    if position == 0 or text[position - 1] in MARKS:
        return False
    before = text[:position].rstrip(" ")
    attached = len(before) == position
    return bool((_OPERAND if attached else _NUMBER).search(before))


def _values(found: re.Match[str]) -> set[Fraction]:
    digits = re.sub(r"[,\s'’_]", "", found["whole"] or "0")
    if len(digits) + len(found["decimals"] or "") > MOST_DIGITS:
        return set()
    base = Fraction(digits + (found["decimals"] or ""))
    exponent = found["e"][1:] if found["e"] else found["ten"] or found["power"]
    if exponent:
        if len(exponent) > 5 or abs(int(exponent)) > MOST_DIGITS:
            return set()
        return _powers(base, int(exponent), plain_power=bool(found["power"]))
    if found["below"]:
        return _fractions(base, found)
    if found["percent"]:
        return {base, base / 100}
    return {base}


def _powers(base: Fraction, exponent: int, *, plain_power: bool) -> set[Fraction]:
    if not plain_power:
        return {base * Fraction(10) ** exponent}
    if base == 0 and exponent < 0:
        return set()
    return {base**exponent}


def _fractions(base: Fraction, found: re.Match[str]) -> set[Fraction]:
    if len(found["below"]) > MOST_DIGITS or int(found["below"]) == 0:
        return set()
    below = int(found["below"])
    if found["mixed"] and len(found["mixed"]) <= MOST_DIGITS:
        return {base + Fraction(int(found["mixed"]), below)}
    return {base / below}


def _join_dates(text: str, tokens: list[Token]) -> list[Token]:
    """Read a date as one token that may mean its year, month or day; mark times of day as weak."""
    spans = [(*found.span(), False) for found in _DATE.finditer(text)]
    spans += [(*found.span(), True) for found in _CLOCK.finditer(text)]
    for start, end, clock in sorted(spans, reverse=True):
        first = bisect.bisect_left(tokens, start, key=lambda token: token.start)
        last = bisect.bisect_left(tokens, end, key=lambda token: token.start)
        inside = tokens[first:last]
        if clock:
            tokens[first:last] = [replace(token, weak=True) for token in inside]
        elif inside:
            values = frozenset(Fraction(part) for part in re.findall(r"\d+", text[start:end]))
            tokens[first:last] = [Token(start, max(end, inside[-1].end), values)]
    return tokens


def _scaled(text: str, token: Token) -> Token:
    """Apply the word or letter after a number that multiplies it: 1.5 million, 42k.

    A capital letter may be a unit as well (273 K, 5 M): both are possible.
    """
    found = _SCALE.match(text, token.end)
    if not found or not (found["word"] or found["k"] or found["letter"]):
        return token
    letter = found["letter"] or (found["k"] if found["k"] == "K" else None)
    factor = _LETTERS[letter] if letter else _SCALES[(found["word"] or found["k"]).lower()]
    values = frozenset(v * factor for v in token.values)
    return replace(token, end=found.end(), values=values | token.values if letter else values)


def _join_korean(text: str, tokens: list[Token]) -> list[Token]:
    """Read 4만 2325 or 3억 5천만 as one number."""
    joined: list[Token] = []
    position = 0
    while position < len(tokens):
        token, position = _korean(text, tokens, position)
        joined.append(token)
    return joined


def _korean(text: str, tokens: list[Token], position: int) -> tuple[Token, int]:
    """Add up the parts from ``position`` on: each smaller than the unit of the one before."""
    first = tokens[position]
    total, end, limit, taken = Fraction(0), first.end, Fraction(0), 0
    for token in tokens[position:]:
        if len(token.values) != 1 or (taken and text[end : token.start] not in ("", " ")):
            break
        value, stop, scale = _korean_part(text, token)
        if taken and value * scale >= limit:
            break
        total, end, limit, taken = total + value * scale, stop, Fraction(scale), taken + 1
        if scale == 1:
            break
    if end == first.end:
        return first, position + 1
    return Token(first.start, end, frozenset({total})), position + taken


def _korean_part(text: str, token: Token) -> tuple[Fraction, int, int]:
    """Return a number, where its Korean units end, and their product: 5천만 is 5 times 10^7."""
    (value,) = token.values
    end, scale = token.end, 1
    while found := _SCALE.match(text, end):
        unit = found["ko"] or found["ko_small"]
        if not unit or (end != token.end and text[end] == " "):
            break
        end, scale = found.end(), scale * _KOREAN[unit]
    return value, end, scale


def _label(text: str, tokens: list[Token]) -> list[Token]:
    """Mark the labels of a numbered list (1. 2. 3. at the beginning of lines) as weak."""
    expected, labels = 1, []
    for token in tokens:
        line = text[text.rfind("\n", 0, token.start) + 1 : token.start]
        labelled = not line.strip(" \t#>-*" + MARKS) and re.match(
            rf"[{MARKS}]?[.)][{MARKS}]?\s+\S", text[token.end :]
        )
        if labelled and token.values == {Fraction(expected)}:
            labels.append(token)
            expected += 1
    if len(labels) == 1 and len(tokens) == 1:
        return tokens
    return [Token(t.start, t.end, t.values, weak=True) if t in labels else t for t in tokens]
