"""The columns of a session's time series, as they are written and read."""

from __future__ import annotations

METRIC_COLUMNS = (
    "t_s",
    "running",
    "waiting",
    "kv_cache_usage",
    "preemptions",
    "prompt_tokens",
    "generation_tokens",
    "prefix_cache_queries",
    "prefix_cache_hits",
    "queue_time_sum_s",
    "queue_time_count",
    "spec_decode_accepted",
    "spec_decode_draft",
)
"""``metrics.csv.gz``: one row a scrape of ``/metrics``; ``t_s`` is on the session's clock."""

GPU_COLUMNS = (
    "t_s",
    "gpu",
    "memory_mib",
    "utilization",
    "power_w",
    "sm_clock_mhz",
    "throttle_reasons",
    "energy_j",
)
"""``gpu.csv.gz``: one row a second and GPU, as NVML says; utilization in percent."""
