"""Grades whether the form of an answer follows instructions; one function per check."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any

from scripts.lib.quality.completions import Completion
from scripts.lib.quality.graders.grade import Grade, short
from scripts.lib.quality.graders.json_values import is_json
from scripts.lib.quality.graders.language import is_language
from scripts.lib.quality.probes import InstructionsGrader, ProbeItem

_BULLET = re.compile(
    r"[\s>]*(?:[-*+]\s+\S|-(?=[^\W\d_])|\*(?=[^\W\d_])[^*]*$"
    r"|[•◦‣▪●·∙–○■□◆◇▶►➢➤✓✔★☆⁃・ㆍ]\s*\S)"
)
_RULE = re.compile(r"\s*(?:[-*_]\s*){3,}")
_FENCED = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_MARKUP = " *_`\"'"
_QUOTES = str.maketrans("‘’“”", "''\"\"")


def _words(text: str) -> int:
    return sum(any(c.isalnum() for c in word) for word in re.split(r"[\s—]+", text))


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).translate(_QUOTES).strip()


def _folded(text: str) -> str:
    return " ".join(_plain(text).casefold().split())


def _max_words(text: str, limit: int) -> str | None:
    count = _words(text)
    return None if count <= limit else f"{count} words, more than {limit}"


def _min_words(text: str, limit: int) -> str | None:
    count = _words(text)
    return None if count >= limit else f"{count} words, fewer than {limit}"


def _contains(text: str, wanted: list[str]) -> str | None:
    missing = next((w for w in wanted if _folded(w) not in _folded(text)), None)
    return None if missing is None else f"'{short(missing)}' is missing"


def _excludes(text: str, banned: list[str]) -> str | None:
    found = next((b for b in banned if _folded(b) in _folded(text)), None)
    return None if found is None else f"'{short(found)}' occurs"


def _starts_with(text: str, wanted: str) -> str | None:
    starts = _begins(_folded(text), _folded(wanted))
    return None if starts else f"does not start with '{short(wanted)}'"


def _ends_with(text: str, wanted: str) -> str | None:
    ends = _begins(_folded(text)[::-1], _folded(wanted)[::-1])
    return None if ends else f"does not end with '{short(wanted)}'"


def _begins(text: str, wanted: str) -> bool:
    """Whether a text begins with ``wanted``, be it in bold or in quotation marks."""
    core = wanted.lstrip(_MARKUP)
    return text.startswith(wanted) or bool(core and text.lstrip(_MARKUP).startswith(core))


def _bullets(text: str, wanted: int) -> str | None:
    lines = [line for line in text.split("\n") if not _RULE.fullmatch(line)]
    count = sum(bool(_BULLET.match(line)) for line in lines)
    return None if count == wanted else f"{count} bullets instead of {wanted}"


def _paragraphs(text: str, wanted: int) -> str | None:
    whole = _FENCED.sub("code", text)
    parts = [part.strip() for part in re.split(r"\n\s*\n", whole)]
    count = sum(bool(part) and not _RULE.fullmatch(part) for part in parts)
    return None if count == wanted else f"{count} paragraphs instead of {wanted}"


def _uppercase(text: str, wanted: bool) -> str | None:
    return None if not wanted or text.isupper() else "not all in capitals"


def _lowercase(text: str, wanted: bool) -> str | None:
    return None if not wanted or text.islower() else "not all in lower case"


def _language(text: str, wanted: str) -> str | None:
    names = {"en": "English", "ko": "Korean"}
    return None if is_language(text, wanted) else f"not in {names[wanted]}"


def _json_only(text: str, wanted: bool) -> str | None:
    return None if not wanted or is_json(text) else "not JSON and nothing else"


CHECKS: dict[str, Callable[[str, Any], str | None]] = {
    "max_words": _max_words,
    "min_words": _min_words,
    "contains": _contains,
    "excludes": _excludes,
    "starts_with": _starts_with,
    "ends_with": _ends_with,
    "bullets": _bullets,
    "paragraphs": _paragraphs,
    "uppercase": _uppercase,
    "lowercase": _lowercase,
    "language": _language,
    "json_only": _json_only,
}
"""Check -> what is wrong with a text, in words (None: it holds)."""

NEED_THE_END = ("max_words", "excludes", "bullets", "paragraphs", "uppercase", "lowercase")
"""Checks that the rest of an answer could still break: of one that was cut nobody knows."""


def _is_made(value: object) -> bool:
    """Whether a check is made with this value; "no bullets" (0) is one too."""
    return value is not None and value is not False and value != []


def grade_instructions(
    grader: InstructionsGrader,
    item: ProbeItem,  # noqa: ARG001
    completion: Completion,
) -> Grade:
    """Grade the form: every check holds. An empty answer follows no instruction.

    Neither does one that was cut at ``max_tokens`` before a check could hold to its end.
    """
    text = completion.text.replace("\r\n", "\n").strip()
    if not text:
        return Grade(format_ok=False, reason="empty")
    given = {name: value for name, value in grader.checks if value is not None}
    broken = [found for name, value in given.items() if (found := CHECKS[name](text, value))]
    limits = [name for name in NEED_THE_END if _is_made(given.get(name))]
    if completion.finish_reason == "length" and limits and not broken:
        broken = [f"not finished, so {' and '.join(limits)} cannot be said to hold"]
    return Grade(format_ok=not broken, reason="; ".join(broken) or "all checks hold")
