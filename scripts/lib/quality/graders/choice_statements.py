"""Finds what an answer says about which option is right."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from scripts.lib.quality.graders.choice_options import (
    Mention,
    Option,
    final_of,
    groups_of,
    joined,
    mentions_in,
)

_MARKER = re.compile(
    r"(?P<final>\bfinal\s+|최종\s*)?"
    r"(?:\b(?:answer|choice|conclusion|solution)\b[^.!?\n]{0,80}?(?:\b(?:is|be|was)\b|[:=→])"
    r"|\b(?:correct|right|best)\s+(?:one|option)\b[^.!?\n]{0,80}?(?:\b(?:is|be|was)\b|[:=→])"
    r"|\b(?:answer|answers)\b(?=\s+\W?[A-Z]\b)"
    r"|\b(?:choose|chose|pick|picked|select|selected|go with|going with|vote for)\b"
    r"|(?<![응대])답(?!변)\s*(?:은|는|이|:|=)?|답변\s*[은:]|결론\s*[은:]|선택\s*[은:])",
    re.IGNORECASE,
)
_IS_RIGHT = re.compile(
    r"\W*\s*(?:option\s+)?(?:\b(?:is|was)\b\s*)(?:clearly\s+|therefore\s+|indeed\s+)?(?:the\s+)?"
    r"(?:(?:final|only|most)\s+)*(?:correct|right|best|true|answer)\b"
    r"|\s+it\s+is\b|\W*(?:이|가)?\s*(?:정답|답|맞)",
    re.IGNORECASE,
)
_FILLER = re.compile(
    r"(?:[\s\"'`*_~:=\-(\[→]|\b(?:the|option|choice|letter|answer|number|clearly|definitely|certainly"
    r"|therefore|thus|so|then|probably|likely|most|is|be|would|should|must|actually|only|still"
    r"|also)\b)*+",
    re.IGNORECASE,
)
_SMALL_LETTER = re.compile(
    r"\W*(?:(?:option|choice|letter)\s+)?\(?(?P<letter>[a-z])(?=[).,:;]|\s+(?:because|since|as)\b|\s*$)"
)
_DENIED = re.compile(r"\b(?:not|cannot|never)\b|n['’]t\b", re.IGNORECASE)
_TURN = re.compile(
    r"\b(?:wait|actually|correction|but|however|instead|rather|on second thought|no,|sorry|let me"
    r"|re-?check|hmm)|아니|하지만|다시|정정",
    re.IGNORECASE,
)
CORRECTION = re.compile(
    r"\b(?:no,?\s+wait|wait|actually|correction|on second thoughts?|scratch that|oops|sorry"
    r"|let me (?:re-?\w+|think|correct)|I made an? (?:mistake|error)|hmm)\b[\s,.:;!…—–-]*"
    r"|(?<=[.,;?!…])\s*\bno,\s+|아니(?:다|야)?(?=[,.!\s])[\s,.!]*|잠깐[\s,.!]*|정정[\s:,]*"
    r"|다시\s*생각[^.,\n]{0,10}[.,]?",
    re.IGNORECASE,
)
SENTENCE = re.compile(r"[^.!?。\n]+(?:[.!?。]+(?!\s|$)[^.!?。\n]+)*[.!?。]*")
_REASON_FIRST = re.compile(
    r"\s*(?:since|because|as|if|given|when|while|although|though)\b[^,\n]{0,200}"
    r"(?:,\s*(?:and|but|or)\b[^,\n]{0,200})*,|.*(?:므로|니까|때문에)",
    re.IGNORECASE | re.DOTALL,
)
_REASON_LAST = re.compile(r",?\s*\b(?:because|since)\b.*", re.IGNORECASE | re.DOTALL)
_IS = re.compile(
    r"(?:\b(?P<it>it|that|this|he|she)(?:['’]s|\s+(?:is|was|must\s+be|would\s+be|has\s+to\s+be|can\s+only\s+be"
    r"|will\s+be|should\s+be))"
    r"|\b(?:is|are|was|be|leaves|leaving|means|so|therefore|thus|hence|then)\b|[:=→⇒]"
    r"|따라서|그러므로|그래서|결국|즉|므로)[\s\"'`*_,:(\[]*"
    r"(?:\b(?:the|only|thus|therefore|actually|clearly|option|choice)\s+)*[\"'`*_(\[]*"
    r"(?:\bin\s+)?(?:\b(?:box|option|door|choice|group|item)\s+)?[\"'`*_(\[]*$",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"\b(?:if|whether|suppose|assume|assuming|unless|might|could|may)\b[^,.;\n]*$", re.IGNORECASE
)
_IS_KOREAN = re.compile(
    r"[\"'`*_)\]]*\s?(?:번|상자)?(?:입니다|이다|이에요|예요|이야|임)(?=[\s.,!]|$)"
)
_POSITIVE = re.compile(r"\b(?:correct|right|true|yes)\b|[✓✔✅]|맞|정답|옳", re.IGNORECASE)
_NEGATIVE = re.compile(
    r"\b(?:in|not\s+)?(?:incorrect|wrong|false|no|not)\b|n['’]t\b|[✗✘❌]|틀|오답|아니|아닙",
    re.IGNORECASE,
)
_LABELLED = re.compile(
    r"[\s>*+•-]*(?:\d{1,2}[.)]\s+)?(?:(?:option|choice|box)\s+)?[(\[]?(?P<rest>.*)", re.IGNORECASE
)


@dataclass(frozen=True)
class Statement:
    """A place that says which option is the answer, and those it names."""

    options: frozenset[str]
    start: int
    end: int
    final: bool


def stated(text: str, mentions: list[Mention], options: list[Option]) -> frozenset[str]:
    """Return what the statements of an answer choose in the end.

    A "final answer" goes before others. A later statement replaces an earlier one if a word
    such as "wait" or "actually" stands between; else both count.
    """
    statements = sorted(
        [*_after_markers(text, mentions, options), *_called_right(text, mentions)],
        key=lambda s: s.start,
    )
    if any(s.final for s in statements):
        statements = [s for s in statements if s.final]
    choices: list[frozenset[str]] = []
    end = 0
    for statement in statements:
        if _TURN.search(text, end, statement.start):
            choices = []
        choices.append(statement.options)
        end = statement.end
    return final_of(choices)


def _after_markers(
    text: str, mentions: list[Mention], options: list[Option]
) -> Iterable[Statement]:
    for marker in _MARKER.finditer(text):
        first = next((i for i, m in enumerate(mentions) if m.start >= marker.end()), None)
        if first is not None and _leads_to(text, marker.end(), mentions[first].start):
            named, end = joined(text, mentions, first)
            yield Statement(named, marker.start(), end, bool(marker["final"]))
            continue
        line_end = text.find("\n", marker.end())
        rest = text[marker.end() : line_end if line_end >= 0 else None][:80]
        if _DENIED.search(marker[0]):
            continue
        small = _SMALL_LETTER.match(rest)
        piece = small["letter"] if small else rest.split(".")[0]
        alone = frozenset(option.name for option in options if option.is_named_by(piece))
        if alone:
            end = marker.end() + len(rest)
            yield Statement(alone, marker.start(), end, bool(marker["final"]))


def _leads_to(text: str, start: int, end: int) -> bool:
    """Whether only filler, or "not X but", stands between a marker and an option."""
    between = text[start:end]
    if _FILLER.fullmatch(between):
        return True
    return bool(
        re.match(r"\W*(?:not|isn't)\b", between, re.IGNORECASE)
        and re.search(r"\b(?:but|it's|it is|rather|instead)\b|,", between, re.IGNORECASE)
        and not re.search(r"[.!?]\s", between)
    )


def _called_right(text: str, mentions: list[Mention]) -> Iterable[Statement]:
    for mention in mentions:
        if _IS_RIGHT.match(text, mention.end):
            yield Statement(frozenset({mention.option}), mention.start, mention.end, final=False)


def called_right_in_lines(text: str, options: list[Option]) -> frozenset[str]:
    """Return the one option whose line calls it right: "A: wrong", "B: correct"."""
    for pieces in (text.split("\n"), SENTENCE.findall(text)):
        right = _called_right_in(pieces, options)
        if right:
            return right
    return frozenset()


def _called_right_in(pieces: list[str], options: list[Option]) -> frozenset[str]:
    verdicts: dict[str, bool] = {}
    for line in pieces:
        rest = _LABELLED.match(line)
        first = mentions_in(rest["rest"][:200], options)[:1] if rest else []
        if not rest or not first or first[0].start > 0:
            continue
        said = rest["rest"][first[0].end :]
        if not re.match(r"\s*[)\].:–—-]|\s+[✓✔✅✗✘❌]", said):
            continue
        verdicts[first[0].option] = bool(_POSITIVE.search(said) and not _NEGATIVE.search(said))
    right = [option for option, verdict in verdicts.items() if verdict]
    return frozenset(right) if len(right) == 1 and len(verdicts) > 1 else frozenset()


def without_reasons(text: str, options: list[Option]) -> str:
    """Return the main clauses: without "since A is empty," and "because B is older"."""
    sentences = SENTENCE.findall(text.replace(";", ".\n"))
    return "\n".join(_main_clause(sentence, options) for sentence in sentences)


def _main_clause(sentence: str, options: list[Option]) -> str:
    first = _REASON_FIRST.match(sentence)
    if first and mentions_in(sentence[first.end() :], options):
        sentence = sentence[first.end() :]
    last = _REASON_LAST.search(sentence)
    if last and mentions_in(sentence[: last.start()], options):
        sentence = sentence[: last.start()]
    return sentence


def concluded(text: str, mentions: list[Mention]) -> frozenset[str]:
    """Return what "it is X" says, else the last "… is X", "so X" or "X입니다" of a text.

    One subject with two different options ("the key is in A", "the key is in B") chooses both.
    """
    found = []
    for group in groups_of(text, mentions):
        says = [it for mention in group if (it := _says(text, mention)) is not None]
        if says:
            begin = text.rfind("\n", 0, group[0].start) + 1
            subject = text[begin : group[0].start].strip().casefold()
            found.append((subject, any(says), frozenset(m.option for m in group)))
    about_it = [options for _, it, options in found if it]
    if about_it or not found:
        return final_of(about_it)
    last, _, chosen = found[-1]
    return final_of([*(o for subject, _, o in found if subject == last and subject), chosen])


def _says(text: str, mention: Mention) -> bool | None:
    """Return None unless something is said to be the option; True if it is "it" or the like."""
    if re.match(r"['’]s\b", text[mention.end : mention.end + 3]):
        return None
    before = text[max(0, mention.start - 60) : mention.start]
    if _SUPPOSED.search(before):
        return None
    found = _IS.search(before)
    if found:
        return bool(found["it"])
    return False if _IS_KOREAN.match(text, mention.end) else None


def corrections(text: str) -> Iterator[str]:
    """Yield what follows the last "wait", "actually" or the like, if there is any."""
    for found in list(CORRECTION.finditer(text))[-1:]:
        yield text[found.end() :]
