"""Why a server did not start or died: the sentences that say so, and which of them decides."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from scripts.lib.engine import log_hints as hints


@dataclass(frozen=True)
class FailureRule:
    """One sentence that names a cause.

    ``soft`` causes are often caught (a module that is tried and not needed): they count only
    when nothing was done after them. ``wrapper`` sentences say that something failed, not what.
    """

    kind: str
    word: str
    text: str
    hint: hints.Hint
    soft: bool = False
    wrapper: bool = False

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern for a line."""
        return re.compile(self.text.replace(" ?", r"\s*").replace(" ", r"\s+"))

    @cached_property
    def compact(self) -> re.Pattern[str]:
        """The pattern for text out of which all white space was taken."""
        return re.compile(self.text.replace(" ?", "").replace(" ", ""))


WRAPPERS: tuple[FailureRule, ...] = tuple(
    FailureRule("engine-core-failed-to-start", word, text, hints.plain(""), wrapper=True)
    for word, text in (
        ("EngineCore failed to start", r"EngineCore failed to start"),
        ("EngineCore hit an exception", r"EngineCore hit an exception"),
        ("Engine core initialization failed", r"Engine core initialization failed"),
        ("WorkerProc failed", r"WorkerProc failed to start"),
        ("WorkerProc init", r"WorkerProc initialization failed"),
        ("Engine process failed to start", r"Engine process failed to start"),
        ("RPCServer process died", r"RPCServer process died before responding"),
        ("died unexpectedly", r"(?:[Ee]ngine core proc|[Ww]orker(?: proc)?) .*died unexpectedly"),
    )
)

DEATHS: tuple[FailureRule, ...] = tuple(
    FailureRule("engine-dead-after-start", word, text, hints.plain(""), wrapper=True)
    for word, text in (
        ("EngineCore encountered a fatal error", r"EngineCore encountered a fatal error"),
        ("EngineCore hit an exception", r"EngineCore hit an exception"),
        ("EngineDeadError", r"(?:MQ)?EngineDeadError"),
        ("AsyncEngineDead", r"AsyncEngineDead"),
        ("MQLLMEngine", r"MQLLMEngine is already dead"),
        ("Engine loop is", r"Engine loop is (?:not running|dead)"),
        ("Background loop", r"Background loop has errored already"),
        ("Engine background task failed", r"Engine background task failed"),
        ("died unexpectedly", r"(?:[Ee]ngine core proc|[Ww]orker(?: proc)?) .*died unexpectedly"),
    )
)
"""Sentences of an engine that had started: a start that fails says so in other words."""
DEATH_HINT = (
    "the engine died while it served: the lines above this one hold the cause; restart it and, "
    "if it dies again, lower the load or use another vLLM release"
)
WRAPPER_HINT = "the cause is further up in the log: read the first exception of the engine process"

EXCEPTION = re.compile(
    r""
    r"(?:^|[\s\]|>])((?:[A-Za-z_]\w*\.)*[A-Z]\w*"
    r"(?:Error|Exception|NotImplemented|Refused|Timeout))(?:: (.+))?$"
)
WRAPPER_EXCEPTION = re.compile(
    r"EngineDead|Engine core initialization failed|Engine process failed to start"
    r"|CalledProcessError.*non-zero exit|WorkerProc (?:failed|initialization)"
    r"|See (?:root cause|stack trace)"
)


def last_exception(lines: list[str]) -> str | None:
    """Return the last line that names an exception which is not a mere wrapper."""
    for line in reversed(lines):
        text = line.strip()
        if EXCEPTION.search(text) and not WRAPPER_EXCEPTION.search(text):
            return text
    return None
