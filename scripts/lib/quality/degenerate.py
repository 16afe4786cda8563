"""Degenerate answers: nothing at all, or one short piece over and over."""

from __future__ import annotations

LONGEST_PIECE = 200
TAIL = 20_000
# (times the piece occurs, characters all of them take): a loop reaches one of these. Three
# equal bullets or a row of zeros in a matrix do not.
LOOPS = ((3.0, 60), (4.0, 20))
LONGEST_RUN = 20  # of one character at the end
LONGEST_RULE = 40  # ... where a run may mean something: a rule of Markdown, 10 to the 30th
_RULES = frozenset("-=_*#~.0123456789")


def is_degenerate(text: str) -> bool:
    """Whether ``text`` is empty or ends in a loop: one short piece repeated to the end."""
    squeezed = " ".join(text.split())
    if not squeezed:
        return True
    tail = squeezed[-TAIL:]
    whole = len(tail) == len(squeezed)
    return any(
        _is_loop(tail, period, length, whole=whole) for period, length in _periodic_ends(tail)
    )


def _is_loop(tail: str, period: int, length: int, *, whole: bool) -> bool:
    everything = whole and length == len(tail)
    times = (length + 1) / period if tail[-period] == " " else length / period
    if len(set(tail[-period:])) == 1:
        longest = LONGEST_RULE if tail[-1] in _RULES else LONGEST_RUN
        return length >= longest or (everything and times >= 8 and not tail[-1].isdigit())
    if everything and times >= 4 and not tail.isdigit() and length >= 8:
        return True
    return any(times >= least and length >= size for least, size in LOOPS)


def _periodic_ends(text: str) -> list[tuple[int, int]]:
    """Return ``(period, length)`` of the periodic ends of ``text`` that repeat at least twice.

    The Z-function of the reversed text gives, for each period, how far its end repeats.
    """
    backwards = text[::-1]
    matches = _z_function(backwards)
    longest = min(LONGEST_PIECE, len(text) // 2)
    return [
        (period, period + matches[period])
        for period in range(1, longest + 1)
        if matches[period] >= period
    ]


def _z_function(text: str) -> list[int]:
    """Return for each position how many characters from there equal the beginning."""
    matches = [0] * len(text)
    left = right = 0
    for i in range(1, len(text)):
        if i < right:
            matches[i] = min(right - i, matches[i - left])
        while i + matches[i] < len(text) and text[matches[i]] == text[i + matches[i]]:
            matches[i] += 1
        if i + matches[i] > right:
            left, right = i, i + matches[i]
    return matches
