"""Tells whether a text is English or Korean, by its script and its commonest words."""

from __future__ import annotations

import re
import unicodedata

_COMMON = {
    "en": "the of and to in is it that for on with as are was be this by not or from you an at "
    "have has can will they we which their but a i me my so am all do no if more",
    "fr": "le la les de des du et est un une dans que qui pour pas sur avec ce il elle sont au",
    "es": "el la los las de y es un una en que por para con no se del al su como son lo más",
    "de": "der die das und ist ein eine in zu den mit von auf nicht für sich dem des im es sind",
    "it": "il la lo gli le di e è un una in che per con non si del della sono al da",
    "pt": "o a os as de e é um uma em que por para com não se do da no na são ao",
    "nl": "de het een en is van in dat op te met voor niet zijn die er aan",
}
_COMMON_SETS = {name: frozenset(words.split()) for name, words in _COMMON.items()}
_FENCE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
LEAST_SHARE = {"en": 0.9, "ko": 0.5}
"""Share of a text's letters that must be of the language's script.

Korean prose on technical matters carries many Latin names; English carries few others.
"""
MOST_FOREIGN = 0.1
"""Share of letters in a third script, neither Hangul nor Latin, above which it is not Korean."""
FEWEST_WORDS = 6
"""Shorter texts are judged by their script only."""


def is_language(text: str, language: str) -> bool:
    """Whether ``text`` is written in ``language`` (``en`` or ``ko``); code passages aside."""
    letters = [c for c in _FENCE.sub(" ", text) if c.isalpha()] or [c for c in text if c.isalpha()]
    if not letters:
        return False
    hangul = sum(_script(c) == "HANGUL" for c in letters) / len(letters)
    latin = sum(_script(c) == "LATIN" for c in letters) / len(letters)
    if language == "ko":
        return hangul >= LEAST_SHARE["ko"] and 1 - hangul - latin <= MOST_FOREIGN
    return latin >= LEAST_SHARE["en"] and _reads_as_english(_FENCE.sub(" ", text))


def _script(character: str) -> str:
    return unicodedata.name(character, "").partition(" ")[0]


def _reads_as_english(text: str) -> bool:
    words = re.findall(r"[^\W\d_]+", text.casefold())
    if len(words) < FEWEST_WORDS:
        return True
    hits = {name: sum(w in common for w in words) for name, common in _COMMON_SETS.items()}
    return hits["en"] >= max(hits.values())
