"""Grades answers that choose one of several options."""

from __future__ import annotations

import re
from collections.abc import Iterator

from scripts.lib.quality.completions import Completion
from scripts.lib.quality.graders.choice_options import (
    Mention,
    Option,
    final_of,
    joined,
    mentions_in,
    not_rejected,
    read_options,
)
from scripts.lib.quality.graders.choice_statements import (
    SENTENCE,
    called_right_in_lines,
    concluded,
    corrections,
    stated,
    without_reasons,
)
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
from scripts.lib.quality.graders.phrases import case_kept
from scripts.lib.quality.probes import ChoiceGrader, ProbeItem

_CONCLUDES = re.compile(
    r"\b(?:so|therefore|thus|hence|conclusion|conclude|must be|correct|right|best|fits|finally)\b"
    r"|따라서|그러므로|그래서|즉|결론|결국|맞|정답",
    re.IGNORECASE,
)
_SENTENCES = re.compile(r"[^.!?。\n]*+[.!?。\n]*+")
_COLON = re.compile(r"\W{0,8}?[:?](?=\s*\S)")
_EITHER = re.compile(r"\bor\b|/|또는|혹은", re.IGNORECASE)
_AMONG = re.compile(r"\s*중(?:에서|에)?\s")
_OF = re.compile(r"\b(?:of|between|among)\s+$", re.IGNORECASE)
_LABEL = re.compile(r"(?P<name>.{1,60}?)[),.:;!–—-]\W*\s")
_REMARK = re.compile(r"(?<=\w)\s+\([^()\n]{4,}\)")
_LISTED = re.compile(r"[\s>*+•-]*(?:\d{1,2}[.)]\s+)?[(\[]?")
_LONGEST_LABEL = 80

Chosen = tuple[frozenset[str], str]


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


def chosen_options(text: str, names: list[str]) -> Chosen:
    """Return the options that ``text`` finally chooses, and by what it does so (or why none)."""
    options = read_options(names)
    marked = _without_the_question(case_kept(plain(text)), options)
    for corrected in corrections(marked):
        chosen = next(_signs(corrected, options), None)
        if chosen:
            return chosen
    chosen = next(_signs(marked, options), None)
    return chosen or _only_mentioned(without_marks(marked), options)


def _signs(marked: str, options: list[Option]) -> Iterator[Chosen]:
    """Yield the choices that a text makes, the surest sign first."""
    yield from _found("boxed", _inside(marked, BOXED, BOXED_END, options))
    clean = without_marks(marked)
    mentions = not_rejected(clean, mentions_in(clean, options))
    yield from _found("said to be the answer", stated(clean, mentions, options))
    yield from _found("said to be the answer", called_right_in_lines(clean, options))
    marked = _without_list(marked, options)
    clean = without_marks(marked)
    yield from _found("stands alone", _bare(clean, options))
    yield from _found("begins the answer", _opening(clean, options))
    without_remarks = _bare(_REMARK.sub("", clean), options)
    if len(without_remarks) == 1:
        yield without_remarks, "stands alone"
    bold = _inside(marked, BOLD, BOLD_END, options)
    if len(bold) == 1:
        yield bold, "bold"
    main = without_reasons(clean, options)
    mentions = not_rejected(main, mentions_in(main, options))
    yield from _found("concluded", concluded(main, mentions))
    yield from _found("concluded", _bare(main, options))


def _found(how: str, chosen: frozenset[str]) -> Iterator[Chosen]:
    if chosen:
        yield chosen, how


def _without_the_question(text: str, options: list[Option]) -> str:
    """Return a text without questions and "yes or no:", if it names an option beside them.

    Nor with "예, 아니오 중" or "of A, B and C,".
    """
    mentions = mentions_in(text, options)
    end = 0
    for place, mention in enumerate(mentions):
        if mention.start < end:
            continue
        named, end = joined(text, mentions, place)
        cut = _end_of_question(text, mention.start, end) if len(named) > 1 else None
        if cut is not None and mentions_in(text[cut:], options):
            text = text[: mention.start] + text[cut:]
            break
    asked = _SENTENCES.sub(lambda found: " " if found[0].endswith("?") else found[0], text)
    return asked if mentions_in(without_marks(asked), options) else text


def _end_of_question(text: str, start: int, end: int) -> int | None:
    """Return where the question ends that a list of options belongs to; None: it is none."""
    rest = _COLON.match(text, end)
    if rest and _EITHER.search(text, start, end):
        return rest.end()
    if _AMONG.match(text, end):
        return end
    of = text[end : end + 1] == "," and _OF.search(text[max(0, start - 20) : start])
    return end + 1 if of else None


def _without_list(text: str, options: list[Option]) -> str:
    """Return a text without lines that list the options, if it names one beside them."""
    lines = text.split("\n")
    labels = [_listed(line, options) for line in lines]
    kept = []
    for number, line in enumerate(lines):
        near = {label for label in labels[max(0, number - 1) : number + 2] if label}
        if not labels[number] or len(near) < 2:
            kept.append(line)
    rest = "\n".join(kept)
    return rest if mentions_in(without_marks(rest), options) else text


def _listed(line: str, options: list[Option]) -> str | None:
    """Return the option that a line of a list gives, as in "B) Lyon" or "2. Bob"."""
    clean = without_marks(line)
    label = _LISTED.match(clean)
    rest = clean[label.end() :] if label else clean
    first = mentions_in(rest[:_LONGEST_LABEL], options)[:1]
    if not first or first[0].start > 0:
        return None
    after = rest[first[0].end :]
    return first[0].option if not after.strip() or re.match(r"[)\].:]", after) else None


def _inside(text: str, begin: str, end: str, options: list[Option]) -> frozenset[str]:
    """Return the options that marked passages consist of, or name as their only one."""
    chosen: set[str] = set()
    for start, stop in passages(text, begin, end):
        passage = text[start:stop]
        named = {m.option for m in mentions_in(passage, options)} or _alone(passage, options)
        if len(named) == 1 or begin == BOXED:
            chosen |= named
    return frozenset(chosen)


def _alone(piece: str, options: list[Option]) -> set[str]:
    """Return the option that a piece of text consists of, whatever its case."""
    return {option.name for option in options if option.is_named_by(piece)}


def _bare(text: str, options: list[Option]) -> frozenset[str]:
    """Return the options that stand alone as a sentence, or joined by "or" and the like."""
    chosen = []
    for sentence in SENTENCE.findall(text):
        alone = frozenset(_alone(sentence, options))
        mentions = mentions_in(sentence, options)
        if not alone and mentions:
            named, end = joined(sentence, mentions, 0)
            edges = sentence[: mentions[0].start] + sentence[end:]
            alone = frozenset() if re.search(r"\w", edges) else named
        if alone:
            chosen.append(alone)
    return final_of(chosen)


def _opening(text: str, options: list[Option]) -> frozenset[str]:
    """Return the option that a text begins with, as in "Yes, because", or ends on: "B) Lyon".

    Several lines that begin so repeat the options; they choose none. Nor does a list of options.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    named = []
    for line in lines:
        found = _LABEL.match(line[:_LONGEST_LABEL] + " ")
        named.append(_alone(found["name"], options) if found else set())
    if len(set().union(*named)) > 1 or not named:
        return frozenset()
    for line, option in ((lines[0], named[0]), (lines[-1], named[-1])):
        mentions = mentions_in(line, options)
        if option and len(joined(line, mentions, 0)[0] if mentions else option) == 1:
            return frozenset(option)
    return frozenset()


def _only_mentioned(text: str, options: list[Option]) -> Chosen:
    """Return the only option named, or the one that the last concluding sentence names."""
    mentions = not_rejected(text, mentions_in(text, options))
    named = frozenset(mention.option for mention in mentions)
    if len(named) == 1:
        return named, "the only one named"
    if not named:
        return named, "no option is chosen"
    main = without_reasons(text, options)
    said = frozenset(m.option for m in not_rejected(main, mentions_in(main, options)))
    if len(said) == 1:
        return said, "the only one outside of reasons"
    last = _in_last_sentence(text, mentions)
    if len(last) == 1:
        return last, "concluded"
    return frozenset(), f"names {len(named)} options and chooses none"


def _in_last_sentence(text: str, mentions: list[Mention]) -> frozenset[str]:
    for sentence in reversed(list(SENTENCE.finditer(text))):
        inside = {m.option for m in mentions if sentence.start() <= m.start < sentence.end()}
        if inside:
            return frozenset(inside if _CONCLUDES.search(sentence[0]) else ())
    return frozenset()
