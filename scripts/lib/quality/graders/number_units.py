"""Recognises a quantity that is said twice, in two units: 85 minutes (1 hour 25 minutes)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from scripts.lib.quality.graders.number_text import MARKS
from scripts.lib.quality.graders.number_tokens import Token

# unit: (dimension, what one of it is in the dimension's base unit, value of the base's zero)
_UNITS: dict[str, tuple[str, Fraction, Fraction]] = {
    r"seconds?|secs?|s|초": ("time", Fraction(1), Fraction(0)),
    r"minutes?|mins?|분": ("time", Fraction(60), Fraction(0)),
    r"hours?|hrs?|h|시간": ("time", Fraction(3600), Fraction(0)),
    r"days?|일": ("time", Fraction(86400), Fraction(0)),
    r"weeks?|주": ("time", Fraction(604800), Fraction(0)),
    r"centimet(?:er|re)s?|cm": ("length", Fraction(1, 100), Fraction(0)),
    r"kilomet(?:er|re)s?|km": ("length", Fraction(1000), Fraction(0)),
    r"met(?:er|re)s?|m": ("length", Fraction(1), Fraction(0)),
    r"inch(?:es)?|in": ("length", Fraction(254, 10_000), Fraction(0)),
    r"feet|foot|ft": ("length", Fraction(3048, 10_000), Fraction(0)),
    r"miles?|mi": ("length", Fraction(1_609_344, 1000), Fraction(0)),
    r"kilograms?|kg": ("mass", Fraction(1), Fraction(0)),
    r"grams?|g": ("mass", Fraction(1, 1000), Fraction(0)),
    r"pounds?|lbs?": ("mass", Fraction(45_359_237, 100_000_000), Fraction(0)),
    r"°\s?C|degrees?\s+C(?:elsius)?|C(?:elsius)?": ("temperature", Fraction(1), Fraction(0)),
    r"°\s?F|degrees?\s+F(?:ahrenheit)?|F(?:ahrenheit)?": (
        "temperature",
        Fraction(5, 9),
        Fraction(32),
    ),
}
_AFTER = [
    (re.compile(rf"[\s{MARKS}-]*(?:{names})(?![A-Za-z])", re.IGNORECASE), unit)
    for names, unit in _UNITS.items()
]
_KOREAN_DEGREES = re.compile(r"(?P<scale>섭씨|화씨)\s*$")
_TOGETHER = re.compile(rf"[\s,{MARKS}]*(?:and\s+)?", re.IGNORECASE)
_FARTHEST = 40
"""Characters between two sayings of one quantity."""
_SAME = Fraction(1, 100)
"""Relative difference that rounding to another unit may make."""


@dataclass(frozen=True)
class _Quantity:
    tokens: tuple[Token, ...]
    end: int
    dimension: str
    value: Fraction
    unit: Fraction


def said_again(
    text: str, tokens: list[Token], chosen: Token
) -> tuple[frozenset[Fraction], list[Token]]:
    """Return what ``chosen`` may mean, and the numbers that say it again in another unit.

    Of "85 minutes (1 hour 25 minutes)" that is 85, whichever of the three is chosen.
    """
    values = set(chosen.values)
    again: list[Token] = []
    quantities = _quantities(text, tokens)
    for left, right in zip(quantities, quantities[1:], strict=False):
        both = (*left.tokens, *right.tokens)
        if any(token.start == chosen.start for token in both) and _equal(left, right):
            again += both
            for side in (left, right):
                values |= side.tokens[0].values if len(side.tokens) == 1 else set()
    return frozenset(values), again


def _equal(left: _Quantity, right: _Quantity) -> bool:
    one_unit = left.unit == right.unit and len(left.tokens) == len(right.tokens)
    if left.dimension != right.dimension or one_unit:
        return False
    if right.tokens[0].start - left.end > _FARTHEST:
        return False
    return abs(left.value - right.value) <= _SAME * max(abs(left.value), abs(right.value))


def _quantities(text: str, tokens: list[Token]) -> list[_Quantity]:
    found: list[_Quantity] = []
    for token in tokens:
        one = _quantity(text, token)
        if one is None:
            continue
        last = found[-1] if found else None
        if last and _goes_on(text, last, one):
            both = (*last.tokens, token)
            found[-1] = _Quantity(both, one.end, "time", last.value + one.value, one.unit)
        else:
            found.append(one)
    return found


def _goes_on(text: str, left: _Quantity, right: _Quantity) -> bool:
    """Whether two times are one: 1 hour and 25 minutes."""
    return (
        left.dimension == right.dimension == "time"
        and left.unit > right.unit
        and bool(_TOGETHER.fullmatch(text, left.end, right.tokens[0].start))
    )


def _quantity(text: str, token: Token) -> _Quantity | None:
    if len(token.values) != 1:
        return None
    (value,) = token.values
    korean = _KOREAN_DEGREES.search(text, max(0, token.start - 6), token.start)
    if korean:
        celsius = korean["scale"] == "섭씨"
        one, zero = (Fraction(1), Fraction(0)) if celsius else (Fraction(5, 9), Fraction(32))
        return _Quantity((token,), token.end, "temperature", (value - zero) * one, one)
    for pattern, (dimension, one, zero) in _AFTER:
        unit = pattern.match(text, token.end)
        if unit:
            return _Quantity((token,), unit.end(), dimension, (value - zero) * one, one)
    return None
