"""What an engine's log says: its last start, read in one pass with little memory."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from scripts.lib.engine import log_rules as rules
from scripts.lib.engine.log_causes import SPECIFIC
from scripts.lib.engine.log_facts import facts_of
from scripts.lib.engine.log_failures import DEATHS, WRAPPERS, FailureRule
from scripts.lib.engine.log_lines import (
    GUTTER,
    Edges,
    clean,
    messages,
    normal_line_ends,
    read_blocks,
    refuse_unreadable,
    shortened,
    undressed,
    unwrap,
    wrapped_width,
)
from scripts.lib.engine.log_search import Search
from scripts.lib.engine.log_start import (
    MANY,
    Failed,
    Start,
    configuration,
    observe,
    observe_degradations,
    observe_engine_line,
)
from scripts.lib.engine.log_wrapped import read_wrapped
from scripts.lib.engine.startup import LogFacts

_OUT_OF_MEMORY: tuple[FailureRule, ...] = tuple(
    rule for rule in SPECIFIC if rule.kind == "oom" and not rule.soft
)
_CAUSES = (*SPECIFIC, *WRAPPERS, *DEATHS)
_NEW_START = (rules.API_VERSION, rules.BANNER, rules.ENGINE)
_SERVING: tuple[rules.Rule | FailureRule, ...] = (
    *_NEW_START,
    *_OUT_OF_MEMORY,
    *DEATHS,
    *rules.STOPS,
    *rules.DEGRADATIONS,
    rules.BIND_FAILED,
)
_PHASES: dict[str, tuple[rules.Rule | FailureRule, ...]] = {
    "starting": (*_SERVING, *rules.READY, *_CAUSES, *rules.FACTS, rules.WORLD_OF_ONE),
    "initialised": (
        *_SERVING,
        *rules.READY,
        *_CAUSES,
        *(rule for rule in rules.FACTS if rule.key in {"arguments", "convertible"}),
    ),
    "serving": _SERVING,
    "dead": _NEW_START,
}
"""What matters in each phase of a start."""
_FEW_LINES = 16
_TRAFFIC = ("Avg prompt throughput:", 'completions HTTP/1.1" 200')
_BEFORE_ENGINE = re.compile(
    r"is convertible to|not fully optimized yet|so forcing|Falling back to torch\.|args"
)
_SOURCE = re.compile(r"(?:^|[\]|>] )\s*(?:raise \w+\(|f?[\"'])")
"""A line of Python that a traceback shows, not the exception itself."""
_CORE = re.compile(r"EngineCore_(?:DP)?(\d+)")


class LogReader:
    """Follows a log block by block; of several starts the last one counts."""

    def __init__(self) -> None:
        self.start = Start()
        self.starts = 0
        self._edges = Edges()
        self._pending: list[str] = []
        self._began = 0
        """Where the start began in the text that is being read."""
        self._answers = False
        """Whether that text shows requests that were answered."""
        self._crowded = False
        """Whether many lines of this start hold a word of a rule."""

    def feed(self, block: bytes) -> None:
        """Read a block of whole lines (only the last block may lack its line end)."""
        text = block.decode("utf-8", errors="replace")
        if plain := self._crowded and self.start.served_at is None:
            text = undressed(text)
        position = self._began = 0
        self._answers = False
        while position < len(text):
            position, many = self._feed_phase(text, position, plain=plain)
            if many:
                self._look_for_answers(text, position)
                text, plain = undressed(text[position:]), True
                self._crowded = True
                position = self._began = 0
        self._look_for_answers(text, len(text))
        if self._answers and self.start.served_at is None:
            # The line that says "ready" is missing, yet the server answers: it is.
            self.start.served_at = self.start.order

    def _look_for_answers(self, text: str, end: int) -> None:
        if not self._answers:
            self._answers = any(text.find(sign, self._began, end) >= 0 for sign in _TRAFFIC)

    def facts(self) -> LogFacts:
        """Return what was read so far."""
        self.start.settle()
        read_wrapped(self.start, self._edges.head(), self._edges.tail())
        return facts_of(self.start, self._edges.tail(), max(self.starts, 1))

    def _feed_phase(self, text: str, position: int, *, plain: bool) -> tuple[int, bool]:
        """Read on as long as the same words matter.

        Args:
            text: Whole lines.
            position: Where to begin.
            plain: ``text`` was undressed: only lines that a rule matches are looked at.

        Returns:
            Where that ended, and whether so many lines hold a word that the rest is better
            undressed first.
        """
        serving = self.start.served_at is not None
        search = self._search()
        end, many = len(text), False
        for count, (found, begin, after) in enumerate(search.lines(text, position, matched=plain)):
            for line in messages(found.strip("\n" + GUTTER) if plain else clean(found)):
                if self._begins_start(line):
                    self._edges = Edges()
                    self._began = position = begin
                    self._answers = False
                self._see(line)
            many = not plain and count >= _FEW_LINES
            if many or self._search() is not search:
                end = after
                break
        if not serving:
            self._edges.add(text[position:end])
        return end, many

    def _search(self) -> Search:
        """Return the search for what matters now: rules that said all they can are left out."""
        start = self.start
        if start.served_at is not None:
            phase = "dead" if len(start.deaths) >= MANY else "serving"
        else:
            done = start.initialised >= max(start.engine_lines, 1)
            phase = "initialised" if done else "starting"
        return _search_for(phase, start.settled())

    def _begins_start(self, line: str) -> bool:
        """Open a new start where this line is the first of one."""
        if rule := _front_end(line):
            again = rule in self.start.front_ends or self.start.engine_lines > 0 or self._worked()
            if again:
                self._renew()
            if again or not self.start.front_ends:
                self.starts += 1
            return again
        return self._begins_engine(line) if _engine_line(line) else False

    def _begins_engine(self, line: str) -> bool:
        """An engine after another one, without a front end's line: offline use, or a sibling."""
        core = _CORE.search(line)
        sibling = core is not None and core[1] not in self.start.siblings
        if core:
            self.start.siblings.add(core[1])
        if self.starts == 0:
            self.starts = 1
        same = not self._worked() and configuration(line) == self.start.configuration
        if self.start.engine_lines == 0 or sibling or same:
            return False
        self.starts += 1
        pending = self._pending
        self._renew()
        for earlier in pending:
            observe(self.start, earlier)
        return True

    def _worked(self) -> bool:
        start = self.start
        return bool(start.progress or start.failures) or start.served_at is not None

    def _renew(self) -> None:
        self.start = Start()
        self._pending = []
        self._crowded = False

    def _see(self, line: str) -> None:
        """Read one line into the current start."""
        start = self.start
        if rule := _front_end(line):
            start.order += 1
            start.front_ends.add(rule)
            start.ready_at = None
            match = rule.pattern.search(line)
            start.api_version = match[1] if match else None
            start.note("vllm_version", line)
            return
        if engine := _engine_line(line):
            start.order += 1
            observe_engine_line(start, line, engine[1])
            self._pending = []
            return
        if start.served_at is not None:
            self._see_while_serving(line)
            return
        if start.engine_lines and _BEFORE_ENGINE.search(line):
            self._pending = [*self._pending[-19:], line]
        observe(start, line)
        if any(rule.word in line and rule.pattern.search(line) for rule in rules.READY):
            start.say_ready(line)
            return
        self._see_failure(line)
        if start.ready_at is not None:
            self._see_while_serving(line)

    def _see_while_serving(self, line: str) -> None:
        """After ready only the engine's death matters: requests may fail as they like."""
        start = self.start
        if "Received request" in line:
            return
        start.order += 1
        observe_degradations(start, line)
        if rules.BIND_FAILED.pattern.search(line):
            start.ready_at = start.served_at = None
            self._see_failure(line)
            return
        if any(rule.word in line and rule.pattern.search(line) for rule in rules.STOPS):
            start.stopping_at = start.stopping_at or start.order
            return
        for rule in (*_OUT_OF_MEMORY, *DEATHS):
            if rule.word in line and (match := rule.pattern.search(line)):
                if len(start.deaths) < MANY:
                    values: dict[str, str | None] = dict(match.groupdict())
                    start.deaths.append(Failed(rule, start.order, line, values))
                return

    def _see_failure(self, line: str) -> None:
        start = self.start
        if "Received request" in line:
            return
        for rule in _CAUSES:
            if rule.word in line and (match := rule.pattern.search(line)):
                if start.said[rule.kind] >= MANY:
                    return
                values: dict[str, str | None] = dict(match.groupdict())
                values["stage"] = "loading" if not start.progress else "starting"
                if _SOURCE.search(line):
                    rule = replace(rule, soft=True)
                start.said[rule.kind] += 1
                start.failures.append(Failed(rule, start.order, shortened(line), values))
                return


@lru_cache(maxsize=64)
def _search_for(phase: str, settled: frozenset[str]) -> Search:
    return Search(rule for rule in _PHASES[phase] if rule.subject not in settled)


def _engine_line(line: str) -> re.Match[str] | None:
    if rules.ENGINE.word not in line or "Received request" in line:
        return None
    return rules.ENGINE.pattern.search(line)


def _front_end(line: str) -> rules.Rule | None:
    """Return the rule by which a line is the first one of a front end; some print two."""
    if "Received request" in line:
        return None
    for rule in (rules.API_VERSION, rules.BANNER):
        if rule.word in line and rule.pattern.search(line):
            return rule
    return None


def read_log(path: Path) -> LogFacts:
    """Read a log file of any size in one pass.

    Raises:
        ValueError: the file is empty or binary (the message names it).
        OSError: the file cannot be read.
    """
    reader = LogReader()
    try:
        for block in read_blocks(path):
            reader.feed(block)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return reader.facts()


def read_log_if_any(path: Path) -> LogFacts:
    """Read a log file that may have nothing to read yet: then it tells no facts.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        return read_log(path)
    except ValueError:
        return LogFacts()


def read_log_text(text: str) -> LogFacts:
    """Read a log that is in memory.

    Raises:
        ValueError: the text is empty or binary.
    """
    data = normal_line_ends(text.encode("utf-8", errors="replace"))
    refuse_unreadable(data)
    width = wrapped_width(data)
    reader = LogReader()
    reader.feed(unwrap(data, width) if width else data)
    return reader.facts()
