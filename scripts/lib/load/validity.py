"""When a point says nothing about the server, and why."""

from __future__ import annotations

import numpy as np

from scripts.lib.load import limits
from scripts.lib.load.requests import Requests
from scripts.lib.load.results import Client, Latency, ServerView, SteadyWindow
from scripts.lib.study.workload import REQUESTS_PER_CONCURRENCY


def client_reasons(
    client: Client, ttft: Latency, e2el: Latency, *, open_loop: bool, capped: bool
) -> list[str]:
    """Return why the client itself spoiled the point; empty if it did not.

    Args:
        client: What the client did.
        ttft: The point's TTFT: a lag only matters beside it.
        e2el: The point's E2EL.
        open_loop: Latencies count from the intended send time.
        capped: An open loop with a cap sends late on purpose.
    """
    reasons = []
    if client.cpu_share is not None and client.cpu_share > limits.MAX_CPU_SHARE:
        reasons.append(
            f"the client was the bottleneck: its busiest process used {client.cpu_share:.0%} of "
            f"a core (limit {limits.MAX_CPU_SHARE:.0%})"
        )
    reasons += _read_late(client, ttft)
    if open_loop:
        limit = limits.MAX_OPEN_LOOP_SEND_LAG_SHARE * (ttft.mean or 0)
        limit = max(limits.MAX_OPEN_LOOP_SEND_LAG_P99_MS, limit)
    else:
        limit = max(limits.MAX_SEND_LAG_P99_MS, limits.MAX_SEND_LAG_SHARE * (e2el.mean or 0))
    lag = client.send_lag_p99_ms
    if lag is not None and lag > limit and not capped:
        reasons.append(
            f"the client sent late: {lag:.1f} ms after the intended time at the 99th percentile "
            f"(limit {limit:.0f} ms)"
        )
    return reasons


def _read_late(client: Client, ttft: Latency) -> list[str]:
    mean, p99 = client.read_lag_mean_ms, client.read_lag_p99_ms
    if mean is None:
        limit = max(limits.MAX_LOOP_LAG_P99_MS, limits.MAX_LOOP_LAG_SHARE * (ttft.p99 or 0))
        lag = client.loop_lag_p99_ms
        if lag is None or lag <= limit:
            return []
        return [
            f"the client read late: its event loop was {lag:.1f} ms behind at the 99th percentile "
            f"(limit {limit:.0f} ms)"
        ]
    limit = max(limits.MAX_READ_LAG_MS, limits.MAX_READ_LAG_SHARE * (ttft.mean or 0))
    limit_p99 = max(limits.MAX_READ_LAG_P99_MS, limits.MAX_READ_LAG_P99_SHARE * (ttft.p99 or 0))
    if mean <= limit and (p99 is None or p99 <= limit_p99):
        return []
    tail = (
        "" if p99 is None else f", {p99:.1f} ms at the 99th percentile (limit {limit_p99:.0f} ms)"
    )
    return [
        f"the client read late: received data lay unread for {mean:.1f} ms on average "
        f"(limit {limit:.0f} ms){tail}"
    ]


def server_reasons(
    server: ServerView | None, requests: int | None, sent: int, ttft: Latency, tpot: Latency
) -> tuple[list[str], list[str]]:
    """Compare the client's means with the server's own over the same window.

    Args:
        server: The server's view; None: it has no /metrics, nothing to compare.
        requests: Requests the server counted in the window.
        sent: Requests we sent in it.
        ttft: The client's TTFT from the real send time, since the server knows no other; its
            own leaves out HTTP and the network.
        tpot: The client's TPOT.

    Returns:
        Reasons for an invalid point, and warnings.
    """
    reasons: list[str] = []
    warnings: list[str] = []
    if server is None:
        return reasons, warnings
    if requests is not None and requests > sent * (1 + limits.FOREIGN_REQUESTS_SHARE) + 1:
        reasons.append(
            f"the server answered {requests} requests in this window, of which we sent {sent}: "
            "somebody else was using it"
        )
    pairs = (
        ("TTFT", ttft.mean, server.ttft_mean_ms, limits.SERVER_TTFT_SHARE, limits.SERVER_TTFT_MS),
        ("TPOT", tpot.mean, server.tpot_mean_ms, limits.SERVER_TPOT_SHARE, limits.SERVER_TPOT_MS),
    )
    for name, ours, theirs, share, floor_ms in pairs:
        if ours is None or theirs is None or theirs <= 0:
            continue
        gap = abs(ours - theirs)
        text = (
            f"client and server disagree: mean {name} {ours:.2f} ms here, {theirs:.2f} ms in the "
            f"server's own histogram ({ours / theirs - 1:+.0%})"
        )
        if gap > share * theirs and gap > floor_ms:
            reasons.append(f"{text}; limit {share:.0%} and {floor_ms:g} ms")
        elif gap > limits.SERVER_WARN_FRACTION * share * theirs and gap > (
            limits.SERVER_WARN_FRACTION * floor_ms
        ):
            warnings.append(text)
    return reasons, warnings


def completion_reasons(sent: int, completed: int, errors: dict[str, int]) -> list[str]:
    """Say how many requests failed, with the most frequent cause."""
    if completed == sent and sent:
        return []
    if not sent:
        return ["no request was sent"]
    most = max(errors, key=lambda text: errors[text]) if errors else "unknown"
    return [f"{sent - completed} of {sent} requests failed; most often: {most}"]


def point_warnings(
    requests: Requests, *, concurrency: int | None, steady: SteadyWindow | None, duration_s: float
) -> list[str]:
    """Return what a reader should know of a point that is valid all the same."""
    if concurrency is None:
        return _saturation_warning(requests)
    warnings = _steady_warning(steady, duration_s)
    wanted = REQUESTS_PER_CONCURRENCY * concurrency
    if len(requests) < wanted:
        warnings.insert(
            0,
            f"few requests: {len(requests)} at concurrency {concurrency}; "
            f"{REQUESTS_PER_CONCURRENCY} times the concurrency would be {wanted}",
        )
    return warnings


def _saturation_warning(requests: Requests) -> list[str]:
    """Compare the first and the last quarter: latency that grows means a growing queue."""
    e2el = requests.e2el_ms[np.argsort(requests.intended_s)]
    quarter = len(e2el) // 4
    if quarter < limits.SATURATION_MIN_REQUESTS:
        return []
    first, last = np.nanmedian(e2el[:quarter]), np.nanmedian(e2el[-quarter:])
    if not last > limits.SATURATION_GROWTH * first:
        return []
    return [
        f"the server did not keep up with the offered rate: median E2EL grew from {first:.0f} ms "
        f"in the first quarter of the requests to {last:.0f} ms in the last"
    ]


def _steady_warning(steady: SteadyWindow | None, duration_s: float) -> list[str]:
    needed = max(limits.STEADY_MIN_S, limits.STEADY_MIN_SHARE * duration_s)
    lasted = steady.end_s - steady.start_s if steady else 0.0
    if steady is None:
        return [f"no steady state: never {limits.STEADY_SHARE:.0%} of the target in flight"]
    if lasted < needed:
        return [f"short steady state: {lasted:.1f} s, wanted {needed:.1f} s"]
    return []
