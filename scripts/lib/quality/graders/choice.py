"""Grades answers that choose one of several options."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from scripts.lib.quality.completions import Completion
from scripts.lib.quality.graders.grade import Grade, without_thoughts
from scripts.lib.quality.graders.number_text import (
    BOLD,
    BOLD_END,
    BOXED,
    BOXED_END,
    passages,
    plain,
    without_marks,
)
from scripts.lib.quality.graders.phrases import case_kept, pattern_of
from scripts.lib.quality.probes import ChoiceGrader, ProbeItem

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
    r"|\W*(?:이|가)?\s*(?:정답|답|맞)",
    re.IGNORECASE,
)
_FILLER = re.compile(
    r"(?:[\s\"'`*_~:=\-(\[→]|\b(?:the|option|choice|letter|answer|number|clearly|definitely|certainly"
    r"|therefore|thus|so|then|probably|likely|most|is|be|would|should|must|actually|only|still)\b)*+",
    re.IGNORECASE,
)
_ALSO = re.compile(
    r"[\s\"'`*_).\]]*(?:\bor\b|\band\b|/|,|&|또는|혹은|\bas well as\b|와|과|나)[\s\"'`*_(\[]*"
    r"(?:(?:the|option|choice|also)\s+)*+",
    re.IGNORECASE,
)
_NEGATED_BEFORE = re.compile(
    r"(?:\b(?:not|never|neither|nor|cannot be|can't be|isn't|wasn't|aren't|rather than|instead of"
    r"|except|excluding|eliminates?|eliminated|rules? out|ruled out|reject(?:s|ed)?)|n't)\s+"
    r"(?:(?:be|the|an?|option|choice|answer|letter|either|both)\s+)*+[\"'`*_(\[]*$",
    re.IGNORECASE,
)
_NEGATED_AFTER = re.compile(
    r"[\"'`*_)\].:,]*\s*(?:(?:is|was|are|does|can|could|would|must)\s*(?:also\s+|clearly\s+|simply\s+)?"
    r"(?:not\b|n't\b|n’t\b|incorrect|wrong|false|out\b|impossible|ruled|eliminated)|cannot\b|can't\b|isn't\b"
    r"|(?:이|가|은|는|도)?\s*(?:아니|아닙|아닌|틀|오답)|말고|대신)",
    re.IGNORECASE,
)
_TURN = re.compile(
    r"\b(?:wait|actually|correction|but|however|instead|rather|on second thought|no,|sorry|let me"
    r"|re-?check|hmm)|아니|하지만|다시|정정",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(
    r"\b(?:so|therefore|thus|hence|conclusion|conclude|must be|correct|right|best|fits|finally)\b"
    r"|따라서|그러므로|그래서|즉|결론|결국|맞|정답",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?。\n]+(?:[.!?。]+(?!\s|$)[^.!?。\n]+)*[.!?。]*")
_LABEL = re.compile(r"(?P<name>.{1,60}?)[),.:;!–—-]\W*\s")
_LONGEST_LABEL = 80
_ARTICLE_OR_PRONOUN = {"A", "I"}
_AFTER_A_LETTER = r"(?!\s+(?!(?:is|was|or|and|because|since|as|would|has|seems|fits|must)\b)[a-z])"


@dataclass(frozen=True)
class Mention:
    """One place where an option is named."""

    option: str
    start: int
    end: int


@dataclass(frozen=True)
class Statement:
    """A place that says which option is the answer, and those it names."""

    options: frozenset[str]
    start: int
    end: int
    final: bool


def grade_choice(grader: ChoiceGrader, item: ProbeItem, completion: Completion) -> Grade:  # noqa: ARG001
    """Grade a choice: the option finally chosen is the expected one."""
    chosen, how = chosen_options(without_thoughts(completion.text), grader.options)
    if len(chosen) > 1:
        names = "', '".join(sorted(chosen))
        return Grade(task_success=False, reason=f"chose more than one: '{names}'")
    if not chosen:
        return Grade(task_success=False, reason=how)
    (option,) = chosen
    wanted = "" if option == grader.expected else f", expected '{grader.expected}'"
    return Grade(task_success=option == grader.expected, reason=f"chose '{option}' ({how}){wanted}")


def chosen_options(text: str, options: list[str]) -> tuple[frozenset[str], str]:
    """Return the options that ``text`` finally chooses, and by what it does so (or why none)."""
    marked = case_kept(plain(text))
    patterns = {option: _pattern(option, options) for option in options}
    boxed = _inside(marked, BOXED, BOXED_END, patterns)
    if boxed:
        return boxed, "boxed"
    clean = without_marks(marked)
    mentions = [m for m in _mentions(clean, patterns) if not _is_negated(clean, m)]
    stated = _stated(clean, mentions, patterns)
    if stated:
        return stated, "said to be the answer"
    for how, find in (("stands alone", _bare), ("begins the answer", _opening)):
        found = find(clean, patterns)
        if found:
            return found, how
    bold = _inside(marked, BOLD, BOLD_END, patterns)
    if len(bold) == 1:
        return bold, "bold"
    return _mentioned(clean, mentions)


def _pattern(option: str, options: list[str]) -> re.Pattern[str]:
    """Return the pattern of an option; single Latin letters only as capitals, never as words."""
    name = case_kept(option).strip()
    if re.fullmatch("[A-Za-z]", name) and not {"yes", "no"} & {o.casefold() for o in options}:
        letter = name.upper()
        after = _AFTER_A_LETTER if letter in _ARTICLE_OR_PRONOUN else ""
        return re.compile(
            rf"(?<![A-Za-z0-9'’])(?:{letter}|(?<=\(){letter.lower()}(?=\)))(?![A-Za-z0-9'’]){after}"
        )
    return re.compile(pattern_of(name).pattern, re.IGNORECASE)


def _mentions(text: str, patterns: dict[str, re.Pattern[str]]) -> list[Mention]:
    """Return where options are named; of overlapping ones the longest."""
    found = [
        Mention(option, match.start(), match.end())
        for option, pattern in patterns.items()
        for match in pattern.finditer(text)
    ]
    kept: list[Mention] = []
    for mention in sorted(found, key=lambda m: (m.start, -m.end)):
        if not kept or mention.start >= kept[-1].end:
            kept.append(mention)
    return kept


def _is_negated(text: str, mention: Mention) -> bool:
    before = text[max(0, mention.start - 60) : mention.start]
    return bool(_NEGATED_BEFORE.search(before) or _NEGATED_AFTER.match(text, mention.end))


def _inside(
    text: str, begin: str, end: str, patterns: dict[str, re.Pattern[str]]
) -> frozenset[str]:
    """Return the options that marked passages consist of, or name as their only one."""
    chosen: set[str] = set()
    for start, stop in passages(text, begin, end):
        named = {m.option for m in _mentions(text[start:stop], patterns)} or _alone(
            text[start:stop], patterns
        )
        if len(named) == 1 or begin == BOXED:
            chosen |= named
    return frozenset(chosen)


def _stated(
    text: str, mentions: list[Mention], patterns: dict[str, re.Pattern[str]]
) -> frozenset[str]:
    """Return what the statements of an answer choose in the end.

    A "final answer" goes before others. A later statement replaces an earlier one if a word
    such as "wait" or "actually" stands between; else both count.
    """
    statements = sorted(
        [*_after_markers(text, mentions, patterns), *_called_right(text, mentions)],
        key=lambda s: s.start,
    )
    if any(s.final for s in statements):
        statements = [s for s in statements if s.final]
    chosen: frozenset[str] = frozenset()
    end = 0
    for statement in statements:
        turned = bool(_TURN.search(text, end, statement.start))
        chosen = statement.options if turned else chosen | statement.options
        end = statement.end
    return chosen


def _after_markers(
    text: str, mentions: list[Mention], patterns: dict[str, re.Pattern[str]]
) -> Iterable[Statement]:
    for marker in _MARKER.finditer(text):
        first = next((i for i, m in enumerate(mentions) if m.start >= marker.end()), None)
        if first is not None and _leads_to(text, marker.end(), mentions[first].start):
            named, end = _joined(text, mentions, first)
            yield Statement(named, marker.start(), end, bool(marker["final"]))
            continue
        line_end = text.find("\n", marker.end())
        rest = text[marker.end() : line_end if line_end >= 0 else None][:_LONGEST_LABEL]
        alone = _alone(rest.split(".")[0], patterns)
        if alone:
            end = marker.end() + len(rest)
            yield Statement(frozenset(alone), marker.start(), end, bool(marker["final"]))


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


def _joined(text: str, mentions: list[Mention], first: int) -> tuple[frozenset[str], int]:
    """Return an option with those joined to it by "or", "and" or a comma."""
    named, end = {mentions[first].option}, mentions[first].end
    for mention in mentions[first + 1 :]:
        if not _ALSO.fullmatch(text, end, mention.start):
            break
        named.add(mention.option)
        end = mention.end
    return frozenset(named), end


def _called_right(text: str, mentions: list[Mention]) -> Iterable[Statement]:
    for mention in mentions:
        if _IS_RIGHT.match(text, mention.end):
            yield Statement(frozenset({mention.option}), mention.start, mention.end, final=False)


def _alone(piece: str, patterns: dict[str, re.Pattern[str]]) -> set[str]:
    """Return the option that a piece of text consists of, whatever its case."""
    bare = re.sub(r"^\s*(?:option|choice|answer)\s+", "", piece, flags=re.IGNORECASE)
    bare = bare.strip(" \t\n.,:;!?\"'`*_()[]{}-")
    return {
        option
        for option in patterns
        if bare and bare.casefold() == case_kept(option).strip(" .:;!?()[]").casefold()
    }


def _bare(text: str, patterns: dict[str, re.Pattern[str]]) -> frozenset[str]:
    """Return the options that stand alone as a sentence, or joined by "or" and the like."""
    chosen: set[str] = set()
    for sentence in _SENTENCE.findall(text):
        alone = _alone(sentence, patterns)
        chosen |= alone
        mentions = _mentions(sentence, patterns)
        if not alone and mentions:
            named, end = _joined(sentence, mentions, 0)
            edges = sentence[: mentions[0].start] + sentence[end:]
            if not re.search(r"\w", edges):
                chosen |= named
    return frozenset(chosen)


def _opening(text: str, patterns: dict[str, re.Pattern[str]]) -> frozenset[str]:
    """Return the option that a text begins with, as in "Yes, because" or "B) Lyon".

    Several lines that begin so repeat the options; they choose none.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    named = []
    for line in lines:
        found = _LABEL.match(line[:_LONGEST_LABEL] + " ")
        named.append(_alone(found["name"], patterns) if found else set())
    if len(set().union(*named)) > 1 or not named:
        return frozenset()
    return frozenset(named[0])


def _mentioned(text: str, mentions: list[Mention]) -> tuple[frozenset[str], str]:
    """Return the only option named, or the one that the last concluding sentence names."""
    named = frozenset(m.option for m in mentions)
    if len(named) == 1:
        return named, "the only one named"
    if not named:
        return named, "no option is chosen"
    for sentence in reversed(list(_SENTENCE.finditer(text))):
        inside = {m.option for m in mentions if sentence.start() <= m.start < sentence.end()}
        if inside:
            if len(inside) == 1 and _CONCLUDES.search(sentence[0]):
                return frozenset(inside), "concluded"
            break
    return frozenset(), f"names {len(named)} options and chooses none"
