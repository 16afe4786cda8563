"""Why a server did not start or died: the sentences that say so, and which of them decides."""

from __future__ import annotations

import re
from dataclasses import dataclass

from scripts.lib.engine import log_hints as hints
from scripts.lib.engine.log_sentence import Sentence


@dataclass(frozen=True)
class FailureRule(Sentence):
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

    @property
    def subject(self) -> str:
        """The kind."""
        return self.kind


def _wrappers(kind: str, *sentences: tuple[str, str]) -> tuple[FailureRule, ...]:
    return tuple(
        FailureRule(kind, word, text, hints.plain(""), wrapper=True) for word, text in sentences
    )


_HIT_AN_EXCEPTION = ("EngineCore hit an exception", r"EngineCore hit an exception")
_DIED = (
    "died unexpectedly",
    r"(?:Engine core proc|engine core proc|Worker|worker)(?: proc)? .*died unexpectedly",
)
WRAPPERS = _wrappers(
    "engine-core-failed-to-start",
    ("EngineCore failed to start", r"EngineCore failed to start"),
    _HIT_AN_EXCEPTION,
    ("Engine core initialization failed", r"Engine core initialization failed"),
    ("WorkerProc failed", r"WorkerProc failed to start"),
    ("WorkerProc init", r"WorkerProc initialization failed"),
    ("Engine process failed to start", r"Engine process failed to start"),
    ("RPCServer process died", r"RPCServer process died before responding"),
    _DIED,
)
DEATHS = _wrappers(
    "engine-dead-after-start",
    ("EngineCore encountered a fatal error", r"EngineCore encountered a fatal error"),
    _HIT_AN_EXCEPTION,
    ("EngineDeadError", r"(?:MQ)?EngineDeadError"),
    ("AsyncEngineDead", r"AsyncEngineDead"),
    ("MQLLMEngine", r"MQLLMEngine is already dead"),
    ("Engine loop is", r"Engine loop is (?:not running|dead)"),
    ("Background loop", r"Background loop has errored already"),
    ("Engine background task failed", r"Engine background task failed"),
    _DIED,
)
"""Sentences of an engine that had started: a start that fails says so in other words."""
DEATH_HINT = (
    "the engine died while it served: the lines above this one hold the cause; restart it and, "
    "if it dies again, lower the load or use another vLLM release"
)
WRAPPER_HINT = "the cause is further up in the log: read the first exception of the engine process"

EXCEPTION = re.compile(
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
