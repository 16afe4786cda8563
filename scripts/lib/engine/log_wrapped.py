"""A second look at logs that a terminal wrapped in the middle of words.

The text is taken without any white space, so that a sentence cut anywhere is whole again. Only
what the first look did not find is looked for.
"""

from __future__ import annotations

import re

from scripts.lib.engine import log_rules as rules
from scripts.lib.engine.log_failures import SPECIFIC
from scripts.lib.engine.log_start import READERS, Failed, Start

_UNFOUND = {
    "weights": "weights",
    "kv_tokens": "kv_tokens",
    "concurrency": "concurrency",
    "gpu_blocks": "gpu_blocks",
    "kv_gib": "kv_gib",
}
_SETTINGS = ("quantization", "dtype", "tensor_parallel_size", "kv_cache_dtype", "device_config")
_WIDEST_TERMINAL = 400
_LOG_LINE = re.compile(r"(?:INFO|WARNING|ERROR|DEBUG) \d\d-\d\d|pid=\d+\)|^\s*Traceback|^INFO: ")


def read_wrapped(start: Start, head: str, tail: str) -> None:
    """Add to a start what only the unwrapped text shows.

    Args:
        start: what the first look found.
        head: the beginning of the start's text.
        tail: its end.
    """
    if not _looks_wrapped(head):
        return
    compact = re.sub(r"\s+", "", head)
    _facts(start, compact)
    _settings(start, compact)
    if not any(not failed.rule.wrapper and not failed.rule.soft for failed in start.failures):
        _failures(start, re.sub(r"\s+", "", tail))


def _looks_wrapped(text: str) -> bool:
    """Say whether lines go on without a prefix of their own, none wider than a terminal."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    if not lines or max(map(len, lines)) > _WIDEST_TERMINAL:
        return False
    return any(
        len(line) > 40 and _LOG_LINE.search(line) and not _LOG_LINE.search(after)  # noqa: PLR2004
        for line, after in zip(lines, lines[1:], strict=False)
    )


def _facts(start: Start, compact: str) -> None:
    for rule in rules.FACTS:
        field = _UNFOUND.get(rule.key)
        if field and getattr(start, field) is None:
            for match in rule.compact.finditer(compact):
                READERS[rule.key](start, match, match[0])
    if not start.kernels:
        for match in re.finditer(
            r"(?:Using|Selected)(\w{3,60}?Kernel)for(\w+?Method|CompressedTensors[A-Z0-9a-z]+?)(?=\(|INFO|WARN|$)",
            compact,
        ):
            start.kernels.setdefault((match[1], match[2]), match[0])


def _settings(start: Start, compact: str) -> None:
    found = rules.ENGINE.compact.search(compact)
    if not found:
        return
    start.engine_version = start.engine_version or found[1]
    for key in _SETTINGS:
        match = rules.ENGINE_SETTINGS[key].compact.search(compact, found.end())
        if match and key not in start.settings:
            start.settings[key] = match[1]


def _failures(start: Start, compact: str) -> None:
    for rule in SPECIFIC:
        if not rule.soft and (match := rule.compact.search(compact)):
            values: dict[str, str | None] = dict(match.groupdict())
            start.failures.append(Failed(rule, start.order + 1, match[0], values))
            return
