"""Answers that only repeat the question: they can keep every form and still answer nothing."""

from __future__ import annotations

import re
import unicodedata

from scripts.lib.quality.graders.grade import without_thoughts
from scripts.lib.quality.graders.phrases import occurs
from scripts.lib.quality.probes import ProbeItem

_SENTENCE_END = re.compile(r"(?<=[.?!。？！])\s+|\n+")


def repeats_question(item: ProbeItem, text: str, *, cut: bool = False) -> bool:
    """Whether an answer is nothing but text of the item's question.

    White space, case and punctuation aside, that is the whole question, or whole sentences of it
    with one that asks among them. For ``instructions`` each of its sentences asks; for other
    kinds only one with a question mark or, of a choice, with several options, since "The key is
    in box B." may be right where the question said so. What the grader itself accepts word for
    word is an answer.

    Args:
        item: The question; its last user message is looked at.
        text: The answer.
        cut: Whether it was cut at ``max_tokens``: then the question's beginning is enough.
    """
    question = _question(item)
    asked, answer = _plain(question), _plain(without_thoughts(text))
    if not answer or not asked or answer in {_plain(phrase) for phrase in _wanted(item)}:
        return False
    if answer == asked:
        return True
    sentences = {_plain(one): one for one in _SENTENCE_END.split(question) if _plain(one)}
    said = [_plain(one) for one in _SENTENCE_END.split(without_thoughts(text)) if _plain(one)]
    if not all(one in sentences for one in said):
        return cut and len(said) > 0 and asked.startswith(answer) and len(answer) * 2 > len(asked)
    return any(_asks(item, sentences[one]) for one in said)


def _asks(item: ProbeItem, sentence: str) -> bool:
    """Whether a sentence of the question asks for something, rather than tells it."""
    grader = item.grader
    if grader.kind == "choice" and sum(occurs(one, sentence) for one in grader.options) > 1:
        return True
    return grader.kind == "instructions" or sentence.rstrip(" \"'”’»)*_").endswith(("?", "？"))


def _question(item: ProbeItem) -> str:
    """Return the text of the last user message, be it a string or a list of parts."""
    asked = [m.get("content") for m in item.messages if m.get("role") == "user"]
    content = asked[-1] if asked else ""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _wanted(item: ProbeItem) -> list[str]:
    """Return what an answer may be word for word, even if the question holds it."""
    grader = item.grader
    if grader.kind == "text":
        return grader.accepted
    if grader.kind == "choice":
        return grader.options
    return grader.checks.contains if grader.kind == "instructions" else []


def _plain(text: str) -> str:
    """Return letters and digits only, in one case, NFKC, with single spaces between words."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join("".join(c if c.isalnum() else " " for c in folded).split())
