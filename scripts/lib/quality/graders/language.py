"""Tells whether a text is English or Korean, by its script and its commonest words."""

from __future__ import annotations

import re
import unicodedata

_COMMON = {
    "en": "the of and to in is it that for on with as are was be this by not or from you an at "
    "have has can will they we which their but a i me my so am all do no if more what how there "
    "your our would one when who its",
    "fr": "le la les de des du et est un une dans que qui pour pas sur avec ce il elle sont au "
    "vous nous je tu mes ses aux cette mais où très bien l d qu c aujourd hui comment plus par "
    "bonjour merci être fait",
    "es": "el la los las de y es un una en que por para con no se del al su como son lo más "
    "está muy pero mi tu hola gracias ser entre sobre cuando",
    "de": "der die das und ist ein eine in zu den mit von auf nicht für sich dem des im es sind "
    "wie ich sie wir ihr ihnen aber oder auch wird durch sehr guten",
    "it": "il la lo gli le di e è un una in che per con non si del della sono al da come questo "
    "molto anche più nel ciao",
    "pt": "o a os as de e é um uma em que por para com não se do da no na são ao como mais está "
    "muito mas você",
    "nl": "de het een en is van in dat op te met voor niet zijn die er aan ook maar wordt hoe",
    "id": "yang dan di ke dari untuk dengan ini itu adalah tidak pada saya anda dalam juga",
    "pl": "i w z na się jest nie że do jak to są oraz dla przez",
    "tr": "ve bir bu için ile çok de da ne olarak daha",
}
_COMMON_SETS = {name: frozenset(words.split()) for name, words in _COMMON.items()}
_FENCE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
LEAST_SHARE = {"en": 0.8, "ko": 0.5}
"""Share of a text's words that must be of the language's script (a word with any Hangul: Korean).

Korean prose on technical matters carries many Latin names; English carries few others.
"""
MOST_FOREIGN = 0.1
"""Share of letters in a third script, neither Hangul nor Latin, above which it is neither."""
FEWEST_WORDS = 6
"""Shorter texts are judged by their script only."""


def is_language(text: str, language: str) -> bool:
    """Whether ``text`` is written in ``language`` (``en`` or ``ko``); code passages aside."""
    prose = _FENCE.sub(" ", text)
    words = _WORD.findall(prose) or _WORD.findall(text)
    scripts = [_script_of(word) for word in words]
    letters = sum(len(word) for word in words)
    foreign = sum(_script(c) not in ("HANGUL", "LATIN") for word in words for c in word)
    if not words or foreign > MOST_FOREIGN * letters:
        return False
    share = scripts.count("HANGUL" if language == "ko" else "LATIN") / len(words)
    if share < LEAST_SHARE[language]:
        return False
    return language == "ko" or _reads_as_english(prose)


def _script(character: str) -> str:
    return unicodedata.name(character, "").partition(" ")[0]


def _script_of(word: str) -> str:
    scripts = {_script(character) for character in word}
    return "HANGUL" if "HANGUL" in scripts else scripts.pop()


def _reads_as_english(text: str) -> bool:
    words = re.findall(r"[^\W\d_]+", text.casefold())
    if len(words) < FEWEST_WORDS:
        return True
    hits = {name: sum(w in common for w in words) for name, common in _COMMON_SETS.items()}
    return hits["en"] >= max(hits.values())
