"""From the records of all client processes to one ``Point``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from scripts.lib.load import limits
from scripts.lib.load.requests import Floats, Requests
from scripts.lib.load.results import Client, Latency, Point, ServerView, SteadyWindow
from scripts.lib.load.server_view import without_one_token_answers
from scripts.lib.load.validity import (
    client_reasons,
    completion_reasons,
    point_warnings,
    server_reasons,
)
from scripts.lib.load.wire import Answered, Finished

FORMULAS = {
    "ttft": "first token - send; open loop: first token - intended send",
    "tpot": "(E2EL - TTFT) / (output tokens - 1), per request, so without the first token",
    "itl": "gaps between received stream events that carry text, pooled over requests",
    "e2el": "last token - send; open loop: last token - intended send",
    "duration_s": "first send to last token of the point",
    "output_throughput_tok_s": "output tokens of completed requests / duration_s",
    "total_throughput_tok_s": "(input + output tokens) of completed requests / duration_s",
    "achieved_rate": "completed requests / duration_s",
    "percentiles": "linear interpolation between order statistics",
    "steady": "from the first to the last moment with 95 % of the target in flight; latencies "
    "of the requests that began and ended inside, tokens that arrived inside",
}


@dataclass(frozen=True)
class Level:
    """Which load a point was."""

    workload_point: int
    repetition: int
    concurrency: int | None = None
    rate: float | None = None
    max_concurrency: int | None = None
    origin: Literal["plan", "slo_search"] = "plan"

    @property
    def open_loop(self) -> bool:
        """Whether requests came at times of their own."""
        return self.concurrency is None

    @property
    def words(self) -> str:
        """The level as a person reads it."""
        if self.concurrency is not None:
            return f"concurrency {self.concurrency}"
        return f"{self.rate:g} requests/s" if self.rate is not None else "given times"


@dataclass(frozen=True)
class Sent:
    """One request as it went out, beside what came back."""

    answer: Answered
    expected_input_tokens: int


def to_requests(sent: Sequence[Sent], origin_s: float, *, open_loop: bool) -> Requests:
    """Turn answers into columns on the session's clock, in the order of their index."""

    def column(values: Iterable[float | None]) -> Floats:
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)

    answers = [item.answer for item in sent]
    firsts = (a.token_times[0] - origin_s if a.token_times else None for a in answers)
    lasts = (a.token_times[-1] - origin_s if a.token_times else None for a in answers)
    return Requests(
        intended_s=column(a.intended_s - origin_s for a in answers),
        sent_s=column(a.sent_s - origin_s for a in answers),
        first_token_s=column(firsts),
        last_token_s=column(lasts),
        input_tokens=column(input_tokens_of(item) for item in sent),
        output_tokens=column(a.output_tokens for a in answers),
        ok=np.array([a.ok for a in answers], dtype=bool),
        open_loop=open_loop,
    )


def input_tokens_of(item: Sent) -> int:
    """Return the server's count of the prompt's tokens, else ours."""
    counted = item.answer.input_tokens
    return item.expected_input_tokens if counted is None else counted


def latency(values: Floats) -> Latency:
    """Describe a sample in ms; every statistic is None if it is empty."""
    if not len(values):
        return Latency(mean=None, p50=None, p90=None, p95=None, p99=None, n=0)
    p50, p90, p95, p99 = (float(p) for p in np.percentile(values, [50, 90, 95, 99]))
    return Latency(mean=float(np.mean(values)), p50=p50, p90=p90, p95=p95, p99=p99, n=len(values))


def itl_ms(answers: Sequence[Answered]) -> Floats:
    """Return the gaps between token events of completed requests, pooled, in ms."""
    gaps = [np.diff(np.asarray(a.token_times)) for a in answers if a.ok and len(a.token_times) > 1]
    return np.concatenate(gaps) * 1000 if gaps else np.empty(0)


def steady_window(
    requests: Requests, answers: Sequence[Answered], target: int, origin_s: float
) -> SteadyWindow | None:
    """Find the window with at least 95 % of ``target`` in flight; None if it never was.

    Short dips inside (a wave of requests that ends together) belong to it.
    """
    ends = np.array([a.end_s for a in answers]) - origin_s
    times = np.concatenate([requests.sent_s, ends])
    steps = np.concatenate([np.ones(len(ends)), -np.ones(len(ends))])
    order = np.lexsort((steps, times))
    in_flight = np.cumsum(steps[order])
    full = np.flatnonzero(in_flight >= limits.STEADY_SHARE * target)
    if not len(full):
        return None
    start = float(times[order][full[0]])
    end = float(times[order][min(full[-1] + 1, len(order) - 1)])
    inside = requests.ok & (requests.sent_s >= start) & (ends <= end)
    tokens = sum(_tokens_between(a, start + origin_s, end + origin_s) for a in answers if a.ok)
    return SteadyWindow(
        start_s=start,
        end_s=end,
        completed=int(inside.sum()),
        ttft_ms=latency(_known(requests.ttft_ms[inside])),
        tpot_ms=latency(_known(requests.tpot_ms[inside])),
        output_throughput_tok_s=tokens / (end - start) if end > start else None,
    )


def _tokens_between(answer: Answered, start: float, end: float) -> float:
    times = np.asarray(answer.token_times)
    inside = int(np.searchsorted(times, end, "right") - np.searchsorted(times, start, "left"))
    return (answer.output_tokens or 0) * inside / len(times) if len(times) else 0.0


def _known(values: Floats) -> Floats:
    return values[~np.isnan(values)]


def peak_in_flight(requests: Requests, answers: Sequence[Answered], origin_s: float) -> int:
    """Return the largest number of requests between send and end at one time."""
    ends = np.array([a.end_s for a in answers]) - origin_s
    times = np.concatenate([requests.sent_s, ends])
    steps = np.concatenate([np.ones(len(ends)), -np.ones(len(ends))])
    return int(np.cumsum(steps[np.lexsort((steps, times))]).max(initial=0))


def client_of(finished: Sequence[Finished], requests: Requests, *, own_memory_mib: float) -> Client:
    """Describe what the client itself did."""
    shares = [part.cpu_s / part.wall_s for part in finished if part.wall_s > 0]
    lags = (requests.sent_s - requests.intended_s) * 1000
    loop_lags = np.array([lag for part in finished for lag in part.loop_lag_ms])
    read_lags = np.array([lag for part in finished for lag in part.read_lag_ms])
    enough = len(loop_lags) >= limits.MIN_LOOP_PROBES
    has_tail = len(read_lags) >= limits.MIN_READ_LAGS
    return Client(
        processes=len(finished),
        cpu_share=max(shares) if shares else None,
        send_lag_p99_ms=float(np.percentile(lags, 99)) if len(lags) else None,
        peak_memory_mib=own_memory_mib + sum(part.peak_memory_mib for part in finished),
        loop_lag_p99_ms=float(np.percentile(loop_lags, 99)) if enough else None,
        read_lag_mean_ms=float(np.mean(read_lags)) if len(read_lags) else None,
        read_lag_p99_ms=float(np.percentile(read_lags, 99)) if has_tail else None,
    )


def build_point(
    level: Level,
    sent: Sequence[Sent],
    finished: Sequence[Finished],
    *,
    origin_s: float,
    server: ServerView | None,
    server_requests: int | None,
    own_memory_mib: float,
) -> Point:
    """Make the point of one run of one level.

    Args:
        level: Which load it was.
        sent: All requests with their answers, in order of index.
        finished: What each client process brought back.
        origin_s: The session clock's origin (``time.monotonic``).
        server: The server's own means over the window; None without /metrics.
        server_requests: How many first tokens the server counted in it.
        own_memory_mib: Peak memory of the session's process itself.
    """
    answers = [item.answer for item in sent]
    requests = to_requests(sent, origin_s, open_loop=level.open_loop)
    point = _numbers(
        level,
        requests,
        answers,
        origin_s=origin_s,
        client=client_of(finished, requests, own_memory_mib=own_memory_mib),
        server=without_one_token_answers(server, server_requests, requests),
    )
    told = _record_warnings(answers, finished)
    return _judged(point, level, requests, server_requests, told)


def _judged(
    point: Point,
    level: Level,
    requests: Requests,
    server_requests: int | None,
    told: Sequence[str],
) -> Point:
    """Return the point with the reasons that make it invalid and its warnings, ``told`` last."""
    sent = len(requests.ok)
    from_send = latency(_known((requests.first_token_s - requests.sent_s)[requests.ok] * 1000))
    mismatch, doubts = server_reasons(point.server, server_requests, sent, from_send, point.tpot_ms)
    capped = level.max_concurrency is not None
    reasons = [
        *completion_reasons(sent, int(requests.ok.sum()), point.errors),
        *client_reasons(
            point.client, point.ttft_ms, point.e2el_ms, open_loop=level.open_loop, capped=capped
        ),
        *mismatch,
    ]
    shape = point_warnings(
        requests,
        concurrency=level.concurrency,
        steady=point.steady,
        duration_s=point.duration_s or 0.0,
    )
    return point.model_copy(
        update={
            "valid": not reasons,
            "invalid_reasons": reasons,
            "warnings": [*shape, *doubts, *told],
        }
    )


def _numbers(
    level: Level,
    requests: Requests,
    answers: Sequence[Answered],
    *,
    origin_s: float,
    client: Client,
    server: ServerView | None,
) -> Point:
    """Return a point's counts, rates and latencies; whether it is valid is not asked here."""
    start, end = _span(requests, answers, origin_s)
    duration, completed = end - start, int(requests.ok.sum())
    input_tokens, output_tokens = _sum_ok(requests, "input"), _sum_ok(requests, "output")
    steady = None
    if level.concurrency is not None and answers:
        steady = steady_window(requests, answers, level.concurrency, origin_s)
    return Point(
        workload_point=level.workload_point,
        repetition=level.repetition,
        concurrency=level.concurrency,
        rate=level.rate,
        origin=level.origin,
        sent=len(answers),
        completed=completed,
        failed=len(answers) - completed,
        start_s=start,
        end_s=end,
        duration_s=duration if answers else None,
        achieved_rate=_per_s(completed, duration),
        peak_in_flight=peak_in_flight(requests, answers, origin_s),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        output_throughput_tok_s=_per_s(output_tokens, duration),
        total_throughput_tok_s=_per_s(input_tokens + output_tokens, duration),
        request_throughput=_per_s(completed, duration),
        ttft_ms=latency(requests.latency("ttft")),
        tpot_ms=latency(requests.latency("tpot")),
        itl_ms=latency(itl_ms(answers)),
        e2el_ms=latency(requests.latency("e2el")),
        steady=steady,
        client=client,
        server=server,
        errors=dict(Counter(answer.error or "unknown" for answer in answers if not answer.ok)),
        valid=True,
        invalid_reasons=[],
    )


def _span(requests: Requests, answers: Sequence[Answered], origin_s: float) -> tuple[float, float]:
    """Return the first send and the last token (of a failed answer: its end), session clock."""
    if not answers:
        return 0.0, 0.0
    lasts = [a.token_times[-1] if a.token_times else a.end_s for a in answers]
    return float(np.min(requests.sent_s)), max(lasts) - origin_s


def _sum_ok(requests: Requests, kind: Literal["input", "output"]) -> int:
    values: Floats = getattr(requests, f"{kind}_tokens")
    return int(np.nansum(np.where(requests.ok, values, 0)))


def _per_s(count: float, duration_s: float) -> float | None:
    return count / duration_s if duration_s > 0 else None


def _record_warnings(answers: Sequence[Answered], finished: Sequence[Finished]) -> list[str]:
    warnings = []
    counted = sum(a.ok and a.tokens_from == "events" for a in answers)
    if counted:
        warnings.append(
            f"output tokens of {counted} requests are counted stream events: the server gave no "
            "usage; an event can hold several tokens"
        )
    retries = sum(part.retries for part in finished)
    if retries:
        warnings.append(
            f"{retries} requests were sent again: the server had closed the idle connection"
        )
    return warnings


def in_words(point: Point) -> str:
    """Return a point's result in one line."""

    def ms(value: float | None) -> str:
        return "-" if value is None else f"{value:.1f} ms"

    text = (
        f"{point.completed}/{point.sent} done in {point.duration_s or 0:.1f} s, "
        f"mean TTFT {ms(point.ttft_ms.mean)}, mean TPOT {ms(point.tpot_ms.mean)}, "
        f"{point.output_throughput_tok_s or 0:.0f} output tok/s"
    )
    return text if point.valid else f"{text}; INVALID: {'; '.join(point.invalid_reasons)}"
