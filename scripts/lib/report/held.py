"""Which of several metrics of one kind to show: the first that the results hold at all.

What we measure has them all; imported results may hold total throughput only, or a p99 without a
mean.
"""

from __future__ import annotations

from collections.abc import Sequence

from scripts.lib.analysis.summary import PointRow

THROUGHPUT = "output_throughput_tok_s"
_THROUGHPUTS = (THROUGHPUT, "total_throughput_tok_s", "request_throughput")
_PERCENTILES = ("p95", "p99", "p50", "p90")


def throughput_of(rows: Sequence[PointRow]) -> str:
    """Return the throughput to show: that of output tokens, if any row has it."""
    return next((key for key in _THROUGHPUTS if held(rows, key)), THROUGHPUT)


def latency_of(rows: Sequence[PointRow], latency: str) -> str:
    """Return the statistic to show, e.g. ``tpot_mean_ms``; a percentile where no row has a mean."""
    keys = [f"{latency}_{statistic}_ms" for statistic in ("mean", *_PERCENTILES)]
    return keys[0] if held(rows, keys[0]) else max(keys, key=lambda key: held(rows, key))


def held(rows: Sequence[PointRow], key: str) -> int:
    """Return how many rows have a value of ``key``."""
    return sum(key in row.metrics and row.metrics[key].value is not None for row in rows)
