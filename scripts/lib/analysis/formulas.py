"""The formulas behind the numbers, printed in every report."""

from __future__ import annotations

from scripts.lib.analysis.wording import listed
from scripts.lib.quality.compare import SIMILARITY_FORMULA
from scripts.lib.study.slo import PERCENTILE_FLOORS

FORMULAS = {
    "TTFT": "from sending the request (open loop: from its intended time) to the first token, ms",
    "TPOT": "(E2EL - TTFT) / (output tokens - 1) of each request with two output tokens or more, "
    "ms; the first token is left out",
    "ITL": "gaps between received chunks, pooled over all requests, ms; a chunk may hold several "
    "tokens, so under speculative decoding only TPOT is compared",
    "E2EL": "from sending the request (open loop: from its intended time) to the last token, ms",
    "output throughput": "output tokens of completed requests / wall time of the point, tokens/s",
    "total throughput": "(input + output tokens) of completed requests / wall time of the point, "
    "tokens/s",
    "goodput": "completed requests that met every latency limit of the SLO / wall time of the "
    "point, requests/s; its share is of all requests sent",
    "percentiles": "linear interpolation between order statistics, withheld below "
    + listed([f"{PERCENTILE_FLOORS[name]} ({name})" for name in ("p90", "p95", "p99")])
    + " requests; their intervals come from order statistics",
    "intervals": "t-interval of the mean over repeats (95 %), from three repeats on",
    "USD per million output tokens": "USD per hour / 3600 / output throughput x 1,000,000",
    "joules per output token": "growth of the GPUs' energy counters over the point / output tokens",
    "ideal weight size": "parameters x bits / 8",
    "noise floor": "standard deviation of the logarithms of repeats of the same point, pooled",
    "quality": "exact McNemar test on the same items; non-inferior when the lower end of the "
    "interval of the difference lies above minus the margin",
    "similarity of answers": SIMILARITY_FORMULA,
}
"""Name -> formula with its unit."""
