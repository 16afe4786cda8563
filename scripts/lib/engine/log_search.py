"""The lines of a log that can matter, found many at a time.

A log of a long run is nearly all access lines, and few hold a word of any rule. One that never
gets ready can hold such a word in every line: there the rules' own patterns go over the text.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from scripts.lib.engine.log_lines import LONGEST_LINE
from scripts.lib.engine.log_sentence import Sentence


class Search:
    """Finds the lines of a text that hold the word of a rule, or that a rule matches.

    ``str.find`` is some twenty times as fast as a regular expression of alternatives, so every
    rule's word is searched for by itself and the hits are merged in the order of the text.
    """

    def __init__(self, rules: Iterable[Sentence]) -> None:
        self._rules: dict[str, list[Sentence]] = {}
        for rule in sorted(set(rules), key=lambda rule: rule.word):
            self._rules.setdefault(rule.word, []).append(rule)

    def lines(self, text: str, position: int, *, matched: bool) -> Iterator[tuple[str, int, int]]:
        """Yield (a line, its begin, its end) from ``position`` on.

        Of a line longer than 128 KiB only what is near the word is yielded.

        Args:
            text: Whole lines; with ``matched`` as ``undressed`` returns them.
            position: The begin of a line.
            matched: Leave out the lines that hold a word but that no rule matches.
        """
        following = self._matched if matched else str.find
        hits = [
            (hit, word) for word in self._rules if (hit := following(text, word, position)) >= 0
        ]
        heapq.heapify(hits)
        while hits:
            hit = hits[0][0]
            begin, end = _line(text, hit)
            yield text[begin : min(end, hit + LONGEST_LINE)], begin, end
            while hits and hits[0][0] < end:
                word = hits[0][1]
                if (hit := following(text, word, end)) < 0:
                    heapq.heappop(hits)
                else:
                    heapq.heapreplace(hits, (hit, word))

    def _matched(self, text: str, word: str, position: int) -> int:
        """Return where a rule of this word matches next, -1 if nowhere.

        While a word tells nothing, each look at it takes in twice as much text as the one before:
        many such lines then cost no more than the regular expressions, a single one no more than
        its line.
        """
        reach = 0
        while (hit := text.find(word, position)) >= 0:
            begin, end = _line(text, hit)
            if reach:
                end = _line(text, min(hit + reach, len(text)))[1]
            stop = end if reach else min(end, hit + LONGEST_LINE)
            found = [
                match.start()
                for rule in self._rules[word]
                if (match := rule.pattern.search(text, begin, stop))
            ]
            if found:
                return min(found)
            position = end
            reach = 2 * (reach or end - begin)
        return -1


def _line(text: str, place: int) -> tuple[int, int]:
    """Return begin and end of the line around a place; the begin of a very long one is cut."""
    begin = max(text.rfind("\n", 0, place) + 1, place - LONGEST_LINE)
    return begin, text.find("\n", place) + 1 or len(text)
