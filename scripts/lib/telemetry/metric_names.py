"""The names of vLLM's series under ``/metrics``, by version: the only table of them.

vLLM renamed most series between 0.6 and 0.15. What reads a scrape takes the newest name that is
in the text; what writes a rule for Prometheus takes the one that the engine's version exports.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PREFIX = "vllm:"
NEWEST = (999, 0, 0)

HTTP_REQUESTS = "http_requests_total"
"""Of the HTTP server (prometheus-fastapi-instrumentator), with the label ``status``."""
PROCESS_START = "process_start_time_seconds"
"""Of Prometheus's own client library."""

ERRORS_COUNTED_SINCE = (0, 23, 0)
"""Since then `finished_reason` knows "error"; before, engine errors show as HTTP errors only."""


@dataclass(frozen=True)
class Series:
    """One name of a quantity, without ``vllm:``."""

    name: str
    since: tuple[int, int, int] = (0, 0, 0)
    """The first version that exports it under this name."""
    read: bool = True
    """Whether a scrape is read by it; False: the same series is read as another quantity."""


GAUGES: dict[str, tuple[Series, ...]] = {
    "running": (Series("num_requests_running"),),
    "waiting": (Series("num_requests_waiting"),),
}
"""Numbers of requests; those of several engines add up."""

USAGE: dict[str, tuple[Series, ...]] = {
    "kv_cache_usage": (
        Series("kv_cache_usage_perc", since=(0, 9, 2)),  # vLLM #18354
        Series("gpu_cache_usage_perc"),
    ),
}
"""Gauges from 0 to 1, whatever their names say; those of several engines do not add up."""

COUNTERS: dict[str, tuple[Series, ...]] = {
    "preemptions": (Series("num_preemptions_total"),),
    "prompt_tokens": (Series("prompt_tokens_total"),),
    "generation_tokens": (Series("generation_tokens_total"),),
    "prefix_cache_queries": (
        Series("prefix_cache_queries_total", since=(0, 9, 2)),  # #18354, as the usage
        Series("gpu_prefix_cache_queries_total"),
    ),
    "prefix_cache_hits": (
        Series("prefix_cache_hits_total", since=(0, 9, 2)),
        Series("gpu_prefix_cache_hits_total"),
    ),
    "spec_decode_draft_tokens": (Series("spec_decode_num_draft_tokens_total"),),
    "spec_decode_accepted_tokens": (Series("spec_decode_num_accepted_tokens_total"),),
    "finished_requests": (Series("request_success_total"),),
}

HISTOGRAMS: dict[str, tuple[Series, ...]] = {
    "ttft": (Series("time_to_first_token_seconds"),),
    # One value a request since 0.11 (vLLM #24015). Before, what is called TPOT holds the gaps
    # between tokens, which got a name of their own in 0.10.2 (#24110); it is read as TPOT, once.
    "tpot": (
        Series("request_time_per_output_token_seconds", since=(0, 11, 0)),
        Series("time_per_output_token_seconds"),
    ),
    "itl": (
        Series("inter_token_latency_seconds", since=(0, 10, 2)),
        Series("time_per_output_token_seconds", read=False),
    ),
    "e2el": (Series("e2e_request_latency_seconds"),),
    "queue_time": (Series("request_queue_time_seconds"),),
}
"""In seconds; each has the series ``_bucket``, ``_sum`` and ``_count``."""

EVERY = GAUGES | USAGE | COUNTERS | HISTOGRAMS


def names_to_read(quantity: str) -> tuple[str, ...]:
    """Return the names of a quantity in a scrape of any version, newest first, without prefix."""
    return tuple(series.name for series in EVERY[quantity] if series.read)


def exported_name(quantity: str, version: str | None) -> str:
    """Return the name under which a version of vLLM exports a quantity; None: the newest."""
    known = version_tuple(version)
    found = next(series for series in EVERY[quantity] if known >= series.since)
    return f"{PREFIX}{found.name}"


def version_tuple(version: str | None) -> tuple[int, int, int]:
    """Return ``0.8.5.post1`` as (0, 8, 5); the newest where the version is not known."""
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", version or "")
    if match is None:
        return NEWEST
    return int(match[1]), int(match[2]), int(match[3] or 0)
