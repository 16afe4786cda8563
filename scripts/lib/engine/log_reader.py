"""What an engine's log says: its last start, read in one pass with little memory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from scripts.lib.engine import log_rules as rules
from scripts.lib.engine.log_causes import SPECIFIC
from scripts.lib.engine.log_facts import facts_of
from scripts.lib.engine.log_failures import DEATHS, WRAPPERS, FailureRule
from scripts.lib.engine.log_lines import (
    Edges,
    Search,
    messages,
    normal_line_ends,
    read_blocks,
    refuse_unreadable,
    unwrap,
    wrapped_width,
)
from scripts.lib.engine.log_start import (
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


def _words(*tables: Iterable[rules.Rule | FailureRule]) -> list[str]:
    return [rule.word for table in tables for rule in table]


_BIND_FAILED = "error while attempting to bind on address"
"""The web server says so after "Application startup complete."."""
_ALWAYS = _words((rules.API_VERSION, rules.BANNER, rules.ENGINE))
_DEATH_WORDS = _words(DEATHS, _OUT_OF_MEMORY, rules.STOPS, rules.DEGRADATIONS)
_AFTER_DEATH = Search(_ALWAYS)
_WHILE_SERVING = Search([*_ALWAYS, *_DEATH_WORDS, _BIND_FAILED])
_INITIALISED = Search(
    [
        *_ALWAYS,
        *_DEATH_WORDS,
        *_words(rules.READY, SPECIFIC, WRAPPERS),
        *(rule.word for rule in rules.FACTS if rule.key in {"arguments", "convertible"}),
    ]
)
_WHILE_STARTING = Search(
    [
        *_ALWAYS,
        *_DEATH_WORDS,
        *_words(rules.READY, rules.FACTS, (rules.WORLD_OF_ONE,), SPECIFIC, WRAPPERS),
    ]
)
_TRAFFIC = (b"Avg prompt throughput:", b'completions HTTP/1.1" 200')
_ENOUGH_DEATHS = 100
"""An engine that died says so once for every request: more of it tells nothing new."""
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

    def feed(self, block: bytes) -> None:
        """Read a block of whole lines (only the last block may lack its line end)."""
        position = self._began = 0
        while position < len(block):
            position = self._feed_phase(block, position)
        served = any(block.find(sign, self._began) >= 0 for sign in _TRAFFIC)
        if served and self.start.served_at is None:
            # The line that says "ready" is missing, yet the server answers: it is.
            self.start.served_at = self.start.order

    def facts(self) -> LogFacts:
        """Return what was read so far."""
        self.start.settle()
        read_wrapped(self.start, self._edges.head(), self._edges.tail())
        return facts_of(self.start, self._edges.tail(), max(self.starts, 1))

    def _feed_phase(self, block: bytes, position: int) -> int:
        """Read on as long as the same words matter; return where that ended."""
        serving = self.start.served_at is not None
        search = self._search()
        for text, begin, end in search.lines(block, position):
            for line in messages(text):
                if self._begins_start(line):
                    self._edges = Edges()
                    self._began = position = begin
                self._see(line)
            if self._search() is not search:
                if not serving:
                    self._edges.add(block[position:end])
                return end
        if not serving:
            self._edges.add(block[position:])
        return len(block)

    def _search(self) -> Search:
        """Return the search for the words that matter now."""
        start = self.start
        if start.served_at is not None:
            return _AFTER_DEATH if len(start.deaths) >= _ENOUGH_DEATHS else _WHILE_SERVING
        done = start.initialised >= max(start.engine_lines, 1)
        return _INITIALISED if done else _WHILE_STARTING

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
        if _BIND_FAILED in line:
            start.ready_at = start.served_at = None
            self._see_failure(line)
            return
        if any(rule.word in line and rule.pattern.search(line) for rule in rules.STOPS):
            start.stopping_at = start.stopping_at or start.order
            return
        for rule in (*_OUT_OF_MEMORY, *DEATHS):
            if rule.word in line and (match := rule.pattern.search(line)):
                start.deaths.append(Failed(rule, start.order, line, dict(match.groupdict())))
                return

    def _see_failure(self, line: str) -> None:
        start = self.start
        if len(start.failures) >= 1000 or "Received request" in line:  # noqa: PLR2004
            return
        for rule in (*SPECIFIC, *WRAPPERS, *DEATHS):
            if rule.word in line and (match := rule.pattern.search(line)):
                values: dict[str, str | None] = dict(match.groupdict())
                values["stage"] = "loading" if not start.progress else "starting"
                if _SOURCE.search(line):
                    rule = replace(rule, soft=True)
                start.failures.append(Failed(rule, start.order, line, values))
                return


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
