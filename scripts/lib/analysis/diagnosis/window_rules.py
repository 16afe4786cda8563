"""Rules about what changes between two neighbouring load points of one variant.

Each returns its evidence, or an empty list when it does not hold or cannot be judged.
"""

from __future__ import annotations

from scripts.lib.analysis import thresholds as limits
from scripts.lib.analysis.summary import PointRow
from scripts.lib.analysis.wording import at, load_words, metric_words, number, value_of

TTFT = ("ttft_p95_ms", "ttft_mean_ms", "ttft_p50_ms", "ttft_p99_ms")
TPOT = ("tpot_p95_ms", "tpot_mean_ms", "tpot_p50_ms", "tpot_p99_ms")
QUEUE = ("queue_p95_ms", "queue_mean_ms")
THROUGHPUT = ("output_throughput_tok_s", "total_throughput_tok_s", "request_throughput")
GOODPUT = ("goodput_req_s", "goodput_share")


class Change:
    """One metric at both ends of a window; absent where either end was not measured."""

    def __init__(self, metric: str, a: PointRow, b: PointRow, before: float, after: float) -> None:
        self.metric, self.before, self.after = metric, before, after
        self._window = f"{at(a)} to {load_words(b.kind, b.level)}"

    @property
    def ratio(self) -> float:
        """After divided by before; infinite when it grew from nothing."""
        if self.before > 0:
            return self.after / self.before
        return float("inf") if self.after > 0 else 1.0

    @property
    def growth(self) -> float:
        """After minus before."""
        return self.after - self.before

    def __str__(self) -> str:
        name = metric_words(self.metric)
        return f"{name}, {self._window}: {number(self.before)} to {number(self.after)}"


def change(a: PointRow, b: PointRow, metrics: tuple[str, ...]) -> Change | None:
    """Return the change of the first of ``metrics`` that both rows have."""
    for metric in metrics:
        before, after = value_of(a, metric), value_of(b, metric)
        if before is not None and after is not None:
            return Change(metric, a, b, before, after)
    return None


def arrivals_outrun_prefill(a: PointRow, b: PointRow) -> list[str]:
    """Queue and TTFT up, TPOT steady."""
    ttft, tpot = change(a, b, TTFT), change(a, b, TPOT)
    queue = _queue_up(a, b, ttft)
    if ttft is None or tpot is None or queue is None:
        return []
    if ttft.ratio < limits.UP_RATIO or tpot.ratio > limits.STEADY_RATIO:
        return []
    return [str(queue), str(ttft), str(tpot)]


def _queue_up(a: PointRow, b: PointRow, ttft: Change | None) -> Change | None:
    queue = change(a, b, QUEUE)
    if queue is not None and ttft is not None:
        explained = queue.growth >= limits.QUEUE_SHARE_OF_TTFT * ttft.growth
        return queue if queue.growth >= limits.QUEUE_UP_MS and explained else None
    waiting = change(a, b, ("waiting_peak",))
    if waiting is not None and waiting.growth >= limits.WAITING_UP:
        return waiting
    return None


def kv_cache_pressure(a: PointRow, b: PointRow) -> list[str]:
    """KV usage up, with preemptions."""
    usage, preemptions = change(a, b, ("kv_usage_peak",)), change(a, b, ("preemptions",))
    if usage is None or preemptions is None or preemptions.growth <= 0:
        return []
    full = min(usage.before, usage.after) >= limits.KV_FULL
    if usage.growth < limits.KV_USAGE_UP and not full:
        return []
    return [str(usage), str(preemptions)]


def decode_pressure(a: PointRow, b: PointRow) -> list[str]:
    """TTFT steady, TPOT up."""
    ttft, tpot = change(a, b, TTFT), change(a, b, TPOT)
    if ttft is None or tpot is None:
        return []
    if ttft.ratio > limits.STEADY_RATIO or tpot.ratio < limits.UP_RATIO:
        return []
    return [str(ttft), str(tpot)]


def batched_beyond_slo(a: PointRow, b: PointRow) -> list[str]:
    """Throughput up, goodput down."""
    throughput, goodput = change(a, b, THROUGHPUT), change(a, b, GOODPUT)
    if throughput is None or throughput.ratio < limits.THROUGHPUT_UP_RATIO:
        return []
    if goodput is not None:
        down = goodput.before > 0 and goodput.ratio <= limits.GOODPUT_DOWN_RATIO
        return [str(throughput), str(goodput)] if down else []
    if a.slo_pass is True and b.slo_pass is False and b.slo_failed:
        # Goodput needs per-request records; without them the verdicts of the points stand in.
        return [str(throughput), *(f"{at(b)}: {sentence}" for sentence in b.slo_failed)]
    return []


def saturated(a: PointRow, b: PointRow) -> list[str]:
    """Load up, throughput level."""
    throughput = change(a, b, THROUGHPUT)
    if throughput is None or a.level <= 0 or b.level < limits.LOAD_STEP_RATIO * a.level:
        return []
    return [str(throughput)] if throughput.ratio <= limits.LEVELLED_RATIO else []
