"""Reads a number that is spelled out, in English or Korean: for answers without any digit."""

from __future__ import annotations

import re

MOST_WORDS = 15
"""In longer texts a spelled number is part of the prose."""

_BELOW_TWENTY = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
)
_TIMES_TEN = "twenty thirty forty fifty sixty seventy eighty ninety"
_SMALL = {name: value for value, name in enumerate(_BELOW_TWENTY.split())}
_TENS = {name: 10 * value for value, name in enumerate(_TIMES_TEN.split(), start=2)}
_LARGE = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_ENGLISH = {**_SMALL, **_TENS, "hundred": 100, **_LARGE}
_NAMES = "|".join(sorted(_ENGLISH, key=len, reverse=True))
_PHRASE = re.compile(
    rf"\b(?P<sign>minus\s+|negative\s+)?(?P<number>(?:{_NAMES})(?:(?:[\s-]+|\s+and\s+)(?:{_NAMES}))*)\b"
    r"(?![\s-]+(?:half|halves|thirds?|quarters?|fifths?)\b)",
    re.IGNORECASE,
)
_KOREAN_TENS = "열 스물 서른 마흔 쉰 예순 일흔 여든 아흔"
_KOREAN_ONES = "하나/한 둘/두 셋/세 넷/네 다섯 여섯 일곱 여덟 아홉"
_NATIVE_TENS = {name: 10 * value for value, name in enumerate(_KOREAN_TENS.split(), start=1)}
_NATIVE_TENS["스무"] = 20
_NATIVE_ONES = {
    name: value
    for value, names in enumerate(_KOREAN_ONES.split(), start=1)
    for name in names.split("/")
}
_COUNTER = r"(?:\s*(?:개|명|마리|자루|살|시간|시|번|권|대|그루|송이|가지|다리))"
_ENDING = r"(?:입니다|이에요|예요|이다|다)?(?=[\s.!]|$)"
_NATIVE = re.compile(
    rf"(?<![가-힣])(?P<tens>{'|'.join(_NATIVE_TENS)})?(?P<ones>{'|'.join(_NATIVE_ONES)})?"
    rf"(?:{_COUNTER}[가-힣]{{0,5}}|(?<![한두세네무]){_ENDING})"
)
_SINO_DIGITS = {name: value for value, name in enumerate("일이삼사오육칠팔구", start=1)}
_SINO_UNITS = {"십": 10, "백": 100, "천": 1000}
_SINO = re.compile(
    r"(?P<number>[일이삼사오육칠팔구십백천만]+)\s?(?:개|자루|도|분|원|명)?(?:입니다|이다)?[.!]?"
)


def spelled(text: str) -> int | None:
    """Return the only number that a short text spells out, or None."""
    words = text.split()
    if not words or len(words) > MOST_WORDS:
        return None
    found = [_english(match) for match in _PHRASE.finditer(text)]
    if len(found) == 1 and (found[0] not in (1, None) or len(words) <= 3):
        return found[0]
    return None if found else _korean(text.strip())


def _english(match: re.Match[str]) -> int | None:
    total, part = 0, 0
    for word in re.findall("[a-z]+", match["number"].lower()):
        if word == "and":
            continue
        value = _ENGLISH[word]
        if word in _LARGE:
            total, part = total + (part or 1) * value, 0
        elif word == "hundred":
            part = (part or 1) * value
        elif part % 100 and (part % 10 or part % 100 < 20 or value >= 10):
            return None  # "two four": not one number
        else:
            part += value
    return -(total + part) if match["sign"] else total + part


def _korean(text: str) -> int | None:
    found = [m for m in _NATIVE.finditer(text) if m["tens"] or m["ones"]]
    if len(found) == 1:
        return _NATIVE_TENS.get(found[0]["tens"], 0) + _NATIVE_ONES.get(found[0]["ones"], 0)
    sino = None if found else _SINO.fullmatch(text)
    return _sino(sino["number"]) if sino else None


def _sino(name: str) -> int | None:
    total, part, digit = 0, 0, 0
    for character in name:
        if character in _SINO_DIGITS:
            if digit:
                return None
            digit = _SINO_DIGITS[character]
        elif character == "만":
            total, part, digit = (part + digit or 1) * 10_000, 0, 0
        else:
            part, digit = part + (digit or 1) * _SINO_UNITS[character], 0
    return total + part + digit
