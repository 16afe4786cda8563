"""A sentence that vLLM prints, as the pattern that finds it."""

from __future__ import annotations

import re
from functools import cached_property


class Sentence:
    r"""What every rule of a log is: a word for the fast search, and the text around it.

    ``text`` is a regular expression written with single blanks: they match any white space, and
    once more, without any, in text that a terminal has wrapped in the middle of words; `` ?`` is
    a blank that may be absent. It is also searched in many lines at once, so a repetition that
    could start at any of its own characters needs a bound (``\b\w+``, ``{1,60}``): a line may
    be 64 KiB long.
    """

    word: str
    text: str

    @property
    def subject(self) -> str:
        """What the sentence tells of: a fact's key, or the kind of a degradation or failure."""
        raise NotImplementedError

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern for one or more lines."""
        return re.compile(self.text.replace(" ?", r"\s*").replace(" ", r"\s+"), re.MULTILINE)

    @cached_property
    def compact(self) -> re.Pattern[str]:
        """The pattern for text out of which all white space was taken."""
        return re.compile(self.text.replace(" ?", "").replace(" ", ""))
