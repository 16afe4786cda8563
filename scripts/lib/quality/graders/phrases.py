"""Finds whole words and phrases, in scripts with and without spaces between words.

Korean writes particles and the copula onto a word (서울은, 서울입니다): the phrase 서울 occurs
there, but not in 서울대. Chinese and Japanese put no spaces at all: there a phrase may stand
anywhere.
"""

from __future__ import annotations

import functools
import re
import unicodedata

_HANGUL = "가-힣ㄱ-ㅎㅏ-ㅣ"
_UNSPACED = "぀-ヿ一-鿿㐀-䶿"
_WORD = r"[^\W_]"
_SPACED_WORD = rf"[^\W_{_HANGUL}{_UNSPACED}]"

# Particles, by the sound that the word before them ends in.
_ALWAYS = (
    "의 에 에서 에게 에게서 께 께서 한테 도 만 부터 까지 보다 처럼 같이 마다 조차 마저 밖에 하고 "
    "입니다 입니까 임 인 이다 이며 이고 이에요 이지만 이었다 이었습니다 이었으며 이라서 이므로 "
    "이네요 이군요 인데 이죠 이지요 일까요 이랍니다 등 등의"
)
_AFTER_CONSONANT = (
    "은 이 을 과 으로 으로서 으로써 이나 이랑 이라고 이라는 이라도 이란 이든 이라며 이야"
)
_AFTER_VOWEL = (
    "는 가 를 와 로 로서 로써 나 랑 라고 라는 라도 란 든 라며 "
    "다 며 예요 에요 였다 였습니다 였으며 라서 므로 네요 군요 죠 지요 랍니다 지만"
)
_SECOND = (
    "은 는 이 가 을 를 의 도 만 부터 까지 나 이나 조차 요 "
    "입니다 이다 이에요 예요 라고 이라고 라는 이라는 였습니다 이었습니다"
)
_AMBIGUOUS_AFTER_ONE_SYLLABLE = {
    "임",
    "인",
    "다",
    "나",
    "며",
    "든",
    "란",
    "등",
    "지만",
    "네요",
    "이야",
    "인데",
}


_SUBSCRIPT = re.compile(
    r"(?<=[A-Za-z)])\$?_(?:\{(\d+)\}|(\d))\$?|(?<=[A-Za-z)])<su[bp]>(\d+)</su[bp]>"
)
"""H_2O, H$_{2}$O and H<sub>2</sub>O are H2O."""


def normal(text: str) -> str:
    """Return ``text`` in NFKC, folded case, without invisible characters and digit grouping."""
    text = _SUBSCRIPT.sub(lambda found: found[1] or found[2] or found[3], text)
    return case_kept(text).casefold()


def case_kept(text: str) -> str:
    """Return ``text`` as ``normal`` does, but with its case."""
    text = unicodedata.normalize("NFKC", text)
    text = "".join(c for c in text if unicodedata.category(c) != "Cf")
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    return re.sub(r"\b(?:[^\W\d_]\.){2,}", lambda found: found[0].replace(".", ""), text)


def occurs(phrase: str, text: str) -> bool:
    """Whether ``phrase`` occurs in ``text`` (case and punctuation aside) as whole words."""
    return bool(pattern_of(normal(phrase)).search(normal(text)))


@functools.lru_cache(maxsize=4096)
def pattern_of(phrase: str) -> re.Pattern[str]:
    """Return the pattern of a phrase that was made ``normal`` (or ``case_kept``)."""
    found = list(re.finditer(rf"{_WORD}+[+#]*", phrase))
    if not found:
        return re.compile(re.escape(phrase.strip()) or r"(?!)")
    body = re.escape(found[0][0])
    for before, word in zip(found, found[1:], strict=False):
        between = phrase[before.end() : word.start()]
        may_touch = (_is_hangul(before[0][-1]) and _is_hangul(word[0][0])) or (
            between in _WITHIN_WORDS and before[0][-1].isalpha() and word[0][0].isalpha()
        )
        body += (r"[\W_]*" if may_touch else r"[\W_]+") + re.escape(word[0])
    return re.compile(_left(found[0][0][0]) + body + _right(found[-1][0]))


_WITHIN_WORDS = {"-", "'", "’", "‐", "‑"}
"""Punctuation that joins parts of one word: e-mail is email, don't is dont."""


def _is_hangul(character: str) -> bool:
    return "가" <= character <= "힣"


def _left(first: str) -> str:
    if re.match(f"[{_UNSPACED}]", first):
        return ""
    if _is_hangul(first):
        return f"(?<![{_HANGUL}])"
    return rf"(?<!{_SPACED_WORD})" + (r"(?<!\d[.,])" if first.isdigit() else "")


def _right(word: str) -> str:
    last = word[-1]
    if re.match(f"[{_UNSPACED}]", last):
        return ""
    if _is_hangul(last):
        return rf"(?:{_particles(word)})?(?!{_WORD})"
    if last.isdigit():
        return rf"(?!{_SPACED_WORD})(?![.,]\d)"
    return rf"(?!{_SPACED_WORD}" + ("" if last in "+#" else r"|[+#]+(?!\w)") + ")"


def _particles(word: str) -> str:
    """Return the pattern of what may be written onto a Korean word."""
    final = (ord(word[-1]) - ord("가")) % 28
    fit = f"{_ALWAYS} {_AFTER_CONSONANT if final else _AFTER_VOWEL}".split()
    if final == 8:  # words in -ㄹ take 로, as after a vowel
        fit = [p for p in fit if not p.startswith("으로")] + ["로", "로서", "로써"]
    if len(word) == 1:
        fit = [p for p in fit if p not in _AMBIGUOUS_AFTER_ONE_SYLLABLE]
    first = "|".join(sorted(fit, key=len, reverse=True))
    second = "|".join(sorted(_SECOND.split(), key=len, reverse=True))
    return f"(?:{first})(?:{second})?"
