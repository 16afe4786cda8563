"""A second look at logs that a terminal wrapped in the middle of words.

The text is taken without any white space, so that a sentence cut anywhere is whole again. Only
what the first look did not find is looked for.
"""

from __future__ import annotations

import re
from collections import Counter

from scripts.lib.engine import log_rules as rules
from scripts.lib.engine.log_causes import SPECIFIC
from scripts.lib.engine.log_lines import OPEN_END, quote
from scripts.lib.engine.log_start import READERS, Failed, Start

_NARROWEST = 60
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
_ATTENTION = re.compile(
    r"Using(?:AttentionBackendEnum\.|_Backend\.)?([\w/-]{3,40}?)(?:attention)?backend"
    r"(?:\.(?!\w)|onV1engine|outofpotential|\(selected)"
)


def read_wrapped(start: Start, head: str, tail: str) -> None:
    """Add to a start what only the unwrapped text shows.

    Args:
        start: what the first look found.
        head: the beginning of the start's text.
        tail: its end.
    """
    head = re.sub(r"(?m)^.*Received request.*$", "", head)
    head, tail = (text if text.endswith("\n") else text + OPEN_END for text in (head, tail))
    compact = re.sub(r"\s+", "", head)
    _facts(start, compact, head)
    _settings(start, compact)
    named = any(not failed.rule.wrapper and not failed.rule.soft for failed in start.failures)
    if start.served_at is None and not named:
        _failures(start, tail)


def _find(compact: str, text: str) -> re.Match[str] | None:
    return re.search(r"\s*".join(map(re.escape, compact)), text)


def _crosses_lines(compact: str, text: str) -> bool:
    found = _find(compact, text)
    return found is not None and "\n" in found[0]


def as_printed(compact: str, text: str) -> str:
    """Return a piece of text without blanks as it stands in the text, its line ends undone."""
    found = _find(compact, text)
    if not found:
        return compact
    lengths = Counter(map(len, text.split("\n")))

    def blank(end: re.Match[str]) -> str:
        """Lines cut at a terminal's edge are equally long; others ended at a blank."""
        place = found.start() + end.start()
        length = place - text.rfind("\n", 0, place) - 1
        return "" if length >= _NARROWEST and lengths[length] > 1 else " "

    return re.sub(r"\n\s*", blank, found[0])


def _facts(start: Start, compact: str, head: str) -> None:
    for rule in rules.FACTS:
        field = _UNFOUND.get(rule.key)
        if field and getattr(start, field) is None:
            for match in rule.compact.finditer(compact):
                READERS[rule.key](start, match, match[0])
    known = {kernel for kernel, _ in start.kernels}
    for match in _KERNEL.finditer(compact):
        if match[1] not in known:
            start.kernels.setdefault((match[1], match[2]), match[0])
    named = _ATTENTION.search(compact)
    if start.attention is None and named and _crosses_lines(named[0], head):
        name = as_printed(named[1], head)
        if rules.ATTENTION_NAME.search(name) and not rules.NOT_ATTENTION.search(name):
            start.attention = name
    start.world_of_one |= bool(rules.WORLD_OF_ONE.compact.search(compact))
    for rule in rules.DEGRADATIONS:
        if rule.key not in start.degradations and (found := rule.compact.search(compact)):
            start.degradations[rule.key] = quote(as_printed(found[0], head), 300)


def _settings(start: Start, compact: str) -> None:
    found = rules.ENGINE.compact.search(compact)
    if not found:
        return
    start.engine_version = start.engine_version or found[1]
    for key in _SETTINGS:
        match = rules.ENGINE_SETTINGS[key].compact.search(compact, found.end())
        if match and key not in start.settings:
            start.settings[key] = match[1]


def _failures(start: Start, tail: str) -> None:
    known = {failed.rule.kind for failed in start.failures}
    compact = re.sub(r"\s+", "", tail)
    for rule in SPECIFIC:
        if rule.soft or rule.kind in known or not (match := rule.compact.search(compact)):
            continue
        line = as_printed(match[0], tail)
        printed = rule.pattern.search(line) or match
        values: dict[str, str | None] = dict(printed.groupdict())
        start.failures.append(Failed(rule, start.order + 1, line, values))
        return
