"""A second look at logs that a terminal wrapped in the middle of words.

The text is taken without any white space, so that a sentence cut anywhere is whole again. Only
what the first look did not find is looked for.
"""

from __future__ import annotations

import re

from scripts.lib.engine import log_rules as rules
from scripts.lib.engine.log_causes import SPECIFIC
from scripts.lib.engine.log_lines import quote
from scripts.lib.engine.log_start import READERS, Failed, Start

_UNFOUND = {
    "weights": "weights",
    "kv_tokens": "kv_tokens",
    "concurrency": "concurrency",
    "gpu_blocks": "gpu_blocks",
    "kv_gib": "kv_gib",
    "arguments": "argument_tp",
}
_SETTINGS = ("quantization", "dtype", "tensor_parallel_size", "kv_cache_dtype", "device_config")
_KERNEL = re.compile(
    r"(?:Using|Selected)(\w{3,60}?Kernel)for"
    r"(\w+?Method|CompressedTensors[A-Z0-9a-z]+?)(?=\(|INFO|WARN|$)"
)
_ATTENTION = re.compile(r"Using([A-Z0-9_]{3,40})attentionbackendoutofpotential")


def read_wrapped(start: Start, head: str, tail: str) -> None:
    """Add to a start what only the unwrapped text shows.

    Args:
        start: what the first look found.
        head: the beginning of the start's text.
        tail: its end.
    """
    compact = re.sub(r"\s+", "", head)
    _facts(start, compact)
    _settings(start, compact)
    named = any(not failed.rule.wrapper and not failed.rule.soft for failed in start.failures)
    if start.served_at is None and not named:
        _failures(start, re.sub(r"\s+", "", tail))


def _facts(start: Start, compact: str) -> None:
    for rule in rules.FACTS:
        field = _UNFOUND.get(rule.key)
        if field and getattr(start, field) is None:
            for match in rule.compact.finditer(compact):
                READERS[rule.key](start, match, match[0])
    known = {kernel for kernel, _ in start.kernels}
    for match in _KERNEL.finditer(compact):
        if match[1] not in known:
            start.kernels.setdefault((match[1], match[2]), match[0])
    if start.attention is None and (named := _ATTENTION.search(compact)):
        start.attention = named[1]
    start.world_of_one |= bool(rules.WORLD_OF_ONE.compact.search(compact))
    for rule in rules.DEGRADATIONS:
        if rule.key not in start.degradations and (found := rule.compact.search(compact)):
            start.degradations[rule.key] = quote(found[0], 300)


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
