"""Makes the many ways to write a number in prose, Markdown and LaTeX plain.

Bold and boxed passages stay visible as pairs of private-use characters, since they mark
answers.
"""

from __future__ import annotations

import re
import unicodedata

BOXED, BOXED_END = "\ue000", "\ue001"
BOLD, BOLD_END = "\ue002", "\ue003"
MARKS = BOXED + BOXED_END + BOLD + BOLD_END
LONGEST_TEXT = 100_000

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
_VULGAR = re.compile("(?<=[0-9])(?=[¼½¾⅐-⅞])")
_DASHES = str.maketrans({"−": "-", "‐": "-", "‑": "-", "–": "-", "⁄": "/", "∕": "/"})
_BRACES = r"\{((?:[^{}]|\{[^{}]*\})*)\}"

_LATEX = (
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"(?<=\d)\\[,;:! ](?=\d{3})"), ","),
    (re.compile(r"\\[,;:!]"), " "),
    (re.compile(r"\\([$%&#_])"), r"\1"),
    (re.compile(r"\\(?:times|cdot)(?![A-Za-z])"), " × "),
    (re.compile(r"\\div(?![A-Za-z])"), " ÷ "),
    (re.compile(r"\\approx(?![A-Za-z])"), " ≈ "),
    (re.compile(r"\\[dt]?frac\s*\{\s*(-?\d+)\s*\}\s*\{\s*(\d+)\s*\}"), r"\1/\2"),
    (re.compile(r"\\[dt]?frac\s*(\d)\s*(\d)"), r"\1/\2"),
    (re.compile(r"\\(?:text|mathrm|mbox|textrm)\s*\{([^{}]*)\}"), r" \1 "),
    (re.compile(r"\^\s*\{\s*([-+]?\d+)\s*\}"), r"^\1"),
    (re.compile(rf"\\(?:textbf|mathbf|bm|boldsymbol)\s*{_BRACES}"), rf"{BOLD}\1{BOLD_END}"),
    (re.compile(rf"\\?\b(?:boxed|fbox)\s*{_BRACES}"), rf"{BOXED}\1{BOXED_END}"),
    (re.compile(r"\\boxed\s+([-+]?[\d.,]*\d)"), rf"{BOXED}\1{BOXED_END}"),
)
_POWER = re.compile(r"(?<=\d)\*\*(?=\d)")
_BOLD = (
    re.compile(r"\*\*\*?(?=\S)(?P<in>(?:[^*\n]|\*(?!\*)|\n(?!\n))*?)(?<=\S)\*\*\*?"),
    re.compile(r"(?<!\w)__(?=\S)(?P<in>[^_\n]+?)(?<=\S)__(?!\w)"),
    re.compile(r"<(b|strong)>(?P<in>.*?)</\1>", re.IGNORECASE | re.DOTALL),
)
_SPACED_SIGN = re.compile(r"(?<=[=:(])[ \t]*-[ \t]+(?=[$€£¥₩]?\d)")
_WORD_SIGN = re.compile(
    r"(?<![\d)])(\s|^)(?:minus|negative|마이너스|음수|영하)\s+(?=[$€£¥₩]?\s?\d)", re.IGNORECASE
)
_BELOW_ZERO = re.compile(
    r"(?<![-\d.,])(?=\d[\d.]{0,9}\s*(?:°\s?[CF]?|degrees?(?:\s+(?:Celsius|Fahrenheit))?)?"
    r"\s+below\s+(?:zero|freezing))|(?<=영하)(?=\d)",
    re.IGNORECASE,
)
_DOTTED_GROUPS = re.compile(
    r"(?<![\d.,])(?P<whole>\d{1,3}(?:(?:\.\d{3}){2,}(?:,(?P<a>\d+))?|(?:\.\d{3})+,(?P<b>\d{1,2})))"
    r"(?![\d.]*\d|,\d)"
)
_DECIMAL_COMMA = re.compile(r"(?<![\d.,(\[{])(\d+),(\d{1,2})(?![\d,)\]}]|\.\d)")


def plain(text: str) -> str:
    """Return ``text`` with Unicode, LaTeX and Markdown forms of numbers made plain ones."""
    text = text[-LONGEST_TEXT:].replace("\r\n", "\n")
    text = "".join(c for c in text if c not in MARKS and unicodedata.category(c) != "Cf")
    text = _SUPERSCRIPT.sub(lambda found: "^" + found[0].translate(_SUPERSCRIPTS), text)
    text = unicodedata.normalize("NFKC", _VULGAR.sub(" ", text)).translate(_DASHES)
    for pattern, replacement in _LATEX:
        text = pattern.sub(replacement, text)
    text = _POWER.sub("^", text)
    for pattern in _BOLD:
        text = pattern.sub(rf"{BOLD}\g<in>{BOLD_END}", text)
    text = _DECIMAL_COMMA.sub(r"\1.\2", _DOTTED_GROUPS.sub(_without_dots, text))
    text = _BELOW_ZERO.sub("-", text)
    return _WORD_SIGN.sub(r"\1-", _SPACED_SIGN.sub(" -", text))


def _without_dots(found: re.Match[str]) -> str:
    """Write 1.234.567,89 as 1234567.89."""
    whole, _, decimals = found["whole"].partition(",")
    return whole.replace(".", "") + (f".{decimals}" if decimals else "")


def without_marks(text: str) -> str:
    """Return ``text`` with the marks of bold and boxed passages removed."""
    return text.translate(dict.fromkeys(map(ord, MARKS)))


def passages(text: str, begin: str, end: str) -> list[tuple[int, int]]:
    """Return ``(start, end)`` of what stands between each pair of marks."""
    return [
        (found.start() + 1, found.end() - 1)
        for found in re.finditer(f"{begin}[^{begin}{end}]*{end}", text)
    ]
