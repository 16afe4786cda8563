"""Finds where a text names options, and which of these places reject the option."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from scripts.lib.quality.graders.phrases import case_kept, pattern_of

_OTHER_SPELLINGS = {
    "예": ("네",),
    "네": ("예",),
    "아니오": ("아니요", "아뇨"),
    "아니요": ("아니오", "아뇨"),
}
_ORDER = frozenset("가나다라마바사아자차카타파하")
_ARTICLE_OR_PRONOUN = {"A", "I"}
_AFTER_A_LETTER = (
    r"(?!\s+(?!(?:is|was|or|and|because|since|as|would|has|seems|fits|must|it)\b)[a-z])"
)
_AFTER_NO = (
    r"(?=\s*(?:$|[^\w\s\-])|\s*\n|\s+(?:it|he|she|they|we|you|i|this|that|there|the|because|since|as"
    r"|and|or|but|nor|wait|actually)\b)"
)
_YES = r"(?<!\w)네(?=\s*(?:$|[.,!?\"'”’)]|입니다|이다))"
_AFTER_ORDER = r"(?=$|[^가-힣]|번|항|입니다|이다|이에요|예요|[이가은는]\s*(?:정답|답|맞))"
_KIND = r"(?:the|an?|option|choice|answer|letter|either|both|in|inside|box|door|group)"
_NEGATED_BEFORE = re.compile(
    r"(?:\b(?:not|never|neither|nor|cannot be|can't be|isn't|wasn't|aren't|rather than|instead of"
    r"|except|excluding|eliminates?|eliminated|rules? out|ruled out|reject(?:s|ed)?)|n['’]t)\s+"
    rf"(?:(?:be|{_KIND})\s+)*+[\"'`*_(\[]*$",
    re.IGNORECASE,
)
_NO_REJECTION = (
    r"(?!\s*(?:belong|fit|match|go)\b|\s+(?:like|part of|one of)\b"
    r"|\s+an?\s+(?!(?:\w+\s+)?(?:correct|right|valid|good|possible|viable|suitable|answer|option"
    r"|solution|choice)\b))"
)
_NEGATED_AFTER = re.compile(
    r"[\"'`*_)\].:,]*\s*(?:(?:is|was|are|were|does|do|can|could|would|must)\s*"
    r"(?:also\s+|clearly\s+|simply\s+|both\s+|all\s+)?"
    rf"(?:(?:not\b|n't\b|n’t\b){_NO_REJECTION}|incorrect|wrong|false|out\b|impossible|ruled|eliminated"
    r"|excluded)|cannot\b"
    rf"|(?:can|is|are|was|were|do|does|did|could|would|wo)n['’]t\b{_NO_REJECTION}"
    r"|(?:이|가|은|는|도)?\s*(?:아니(?!오|요)|아닙|아닌|틀|오답)|말고|대신)",
    re.IGNORECASE,
)
_LINK = (
    r"[\s\"'`*_).\]]*(?:,\s*(?:or|and|nor)\b|\bor\b|\band\b|\bnor\b|/|,|&|또는|혹은|\bas well as\b"
    r"|와|과|나)[\s\"'`*_(\[]*(?:(?:the|option|choice|box|also|maybe|perhaps|possibly)\s+)*+"
)
ALSO = re.compile(_LINK, re.IGNORECASE)
_LAST_LINK = re.compile(r"\b(?:or|and|nor)\b|/|&|또는|혹은|와|과|나", re.IGNORECASE)
_SAID = re.compile(r"(?:\b(?:is|be|was)\b|[:=])\W*(?:option\s+|choice\s+)?$", re.IGNORECASE)


@dataclass(frozen=True)
class Option:
    """An option with its spellings and the pattern that finds them."""

    name: str
    spellings: frozenset[str]
    pattern: re.Pattern[str]

    def is_named_by(self, piece: str) -> bool:
        """Whether a piece of text consists of the option, whatever its case."""
        bare = re.sub(r"^\s*(?:option|choice|answer|box)\s+", "", piece, flags=re.IGNORECASE)
        return bare.strip(" \t\n.,:;!?\"'`*_()[]{}-").casefold() in self.spellings


@dataclass(frozen=True)
class Mention:
    """One place where an option is named."""

    option: str
    start: int
    end: int


def read_options(names: list[str]) -> list[Option]:
    """Return the options of a question, with the spellings that mean the same."""
    return [_option(name, names) for name in names]


def _option(name: str, names: list[str]) -> Option:
    others = {spelling for spelling in _OTHER_SPELLINGS.get(name, ()) if spelling not in names}
    pattern = "|".join(f"(?:{_pattern(spelling, names)})" for spelling in [name, *sorted(others)])
    spellings = {case_kept(s).strip(" .:;!?()[]").casefold() for s in [name, *others]} - {""}
    return Option(name, frozenset(spellings), re.compile(pattern, re.MULTILINE))


def _pattern(name: str, names: list[str]) -> str:
    """Return the pattern of one spelling; single Latin letters never as words of prose."""
    name = case_kept(name).strip()
    if name.casefold() == "no":
        return rf"(?i:{pattern_of(name).pattern}{_AFTER_NO})"
    if re.fullmatch("[A-Za-z]", name) and not {"yes", "no"} & {n.casefold() for n in names}:
        return _letter(name)
    if name == "네":
        return _YES
    if name in _ORDER and _ORDER.issuperset(names):
        return rf"(?<![가-힣]){name}{_AFTER_ORDER}"
    return rf"(?i:{pattern_of(name).pattern})" + (r"(?!를\s*들|\s*들어)" if name == "예" else "")


def _letter(name: str) -> str:
    upper, lower = name.upper(), name.lower()
    after = _AFTER_A_LETTER if upper in _ARTICLE_OR_PRONOUN else ""
    left, right = r"(?<![A-Za-z0-9'’])", r"(?![A-Za-z0-9'’])"
    alone = f"|{lower}" if name == lower and upper not in _ARTICLE_OR_PRONOUN else ""
    return rf"{left}(?:{upper}|(?<!\w ){lower}(?=\))|(?<=\(){lower}(?=\)){alone}){right}{after}"


def mentions_in(text: str, options: Iterable[Option]) -> list[Mention]:
    """Return where options are named, in order; of overlapping places the longest."""
    found = [
        Mention(option.name, match.start(), match.end())
        for option in options
        for match in option.pattern.finditer(text)
    ]
    kept: list[Mention] = []
    for mention in sorted(found, key=lambda m: (m.start, -m.end)):
        if not kept or mention.start >= kept[-1].end:
            kept.append(mention)
    return kept


def not_rejected(text: str, mentions: list[Mention]) -> list[Mention]:
    """Return the mentions that are not negated: "not A", "A and B are wrong", "A가 아니라"."""
    rejected: set[Mention] = set()
    for group in groups_of(text, mentions):
        before = text[max(0, group[0].start - 60) : group[0].start]
        if _NEGATED_BEFORE.search(before) or _NEGATED_AFTER.match(text, group[-1].end):
            rejected.update(group)
    return [mention for mention in mentions if mention not in rejected]


def groups_of(text: str, mentions: list[Mention]) -> list[list[Mention]]:
    """Split mentions into lists such as "A, C and D"; one that is said ("is B, C…") ends a list."""
    groups: list[list[Mention]] = []
    for mention in mentions:
        last = groups[-1] if groups else None
        if last and ALSO.fullmatch(text, last[-1].end, mention.start):
            last.append(mention)
        else:
            groups.append([mention])
    return [part for group in groups for part in _parts(text, group)]


def _parts(text: str, group: list[Mention]) -> list[list[Mention]]:
    if len(group) == 1:
        return [group]
    if not _LAST_LINK.search(text, group[-2].end, group[-1].start):
        return [[mention] for mention in group]
    before = text[max(0, group[0].start - 20) : group[0].start]
    comma = "," in text[group[0].end : group[1].start]
    rejected = _NEGATED_AFTER.match(text, group[-1].end)
    if rejected and comma and _SAID.search(before) and not _NEGATED_BEFORE.search(before):
        return [group[:1], group[1:]]
    return [group]


def final_of(choices: Iterable[frozenset[str]]) -> frozenset[str]:
    """Return what several choices come to: "B or C" and later "B" is B; "B" and "C" is both."""
    kept: list[frozenset[str]] = []
    for choice in choices:
        kept = [earlier for earlier in kept if not choice < earlier]
        kept.append(choice)
    return frozenset().union(*kept)


def joined(text: str, mentions: list[Mention], first: int) -> tuple[frozenset[str], int]:
    """Return an option with those joined to it by "or", "and" or a comma, and where they end."""
    named, end = {mentions[first].option}, mentions[first].end
    for mention in mentions[first + 1 :]:
        if not ALSO.fullmatch(text, end, mention.start):
            break
        named.add(mention.option)
        end = mention.end
    return frozenset(named), end
