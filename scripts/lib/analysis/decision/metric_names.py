"""The names of vLLM's metrics, by version."""

from __future__ import annotations

import re

NEWEST = (999, 0, 0)


def version_tuple(version: str | None) -> tuple[int, int, int]:
    """Return ``0.8.5.post1`` as (0, 8, 5); the newest where the version is not known."""
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", version or "")
    if match is None:
        return NEWEST
    return int(match[1]), int(match[2]), int(match[3] or 0)


def histogram_name(metric: str, version: str | None) -> str:
    """Return the histogram of ``ttft``, ``tpot``, ``itl``, ``e2el`` or ``queue``.

    TPOT: a histogram per request since 0.11 (vLLM #24015); before, one of token gaps under the
    name of TPOT. ITL: its own name since 0.10.2 (#24110).
    """
    known = version_tuple(version)
    names = {
        "ttft": "vllm:time_to_first_token_seconds",
        "e2el": "vllm:e2e_request_latency_seconds",
        "queue": "vllm:request_queue_time_seconds",
        "tpot": "vllm:request_time_per_output_token_seconds"
        if known >= (0, 11, 0)
        else "vllm:time_per_output_token_seconds",
        "itl": "vllm:inter_token_latency_seconds"
        if known >= (0, 10, 2)
        else "vllm:time_per_output_token_seconds",
    }
    return names[metric]


def kv_usage_name(version: str | None) -> str:
    """Return the gauge of KV-cache usage (0 to 1); renamed in 0.9.2 (#18354)."""
    if version_tuple(version) >= (0, 9, 2):
        return "vllm:kv_cache_usage_perc"
    return "vllm:gpu_cache_usage_perc"
