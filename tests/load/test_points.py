from __future__ import annotations

from array import array

import numpy as np
import pytest

from scripts.lib.judging.slo import goodput, request_limits
from scripts.lib.load.points import (
    Level,
    Sent,
    build_point,
    steady_window,
    to_requests,
)
from scripts.lib.load.requests import Requests
from scripts.lib.load.results import Client, Latency, Point, ServerView
from scripts.lib.load.server_view import server_view, without_one_token_answers
from scripts.lib.load.validity import client_reasons, server_reasons
from scripts.lib.load.wire import Answered, Finished
from scripts.lib.study.models import Slo

ORIGIN = 1000.0


def answered(
    index: int,
    sent: float,
    ttft: float = 0.2,
    tpot: float = 0.03,
    tokens: int = 5,
    *,
    ok: bool = True,
    intended: float | None = None,
) -> Answered:
    times = [ORIGIN + sent + ttft + k * tpot for k in range(tokens)] if ok else []
    return Answered(
        index=index,
        intended_s=ORIGIN + (sent if intended is None else intended),
        sent_s=ORIGIN + sent,
        token_times=array("d", times),
        status=200 if ok else 500,
        input_tokens=None,
        output_tokens=tokens if ok else None,
        tokens_from="usage" if ok else "none",
        finish_reason="length" if ok else None,
        ok=ok,
        error=None if ok else "HTTP 500",
        end_s=times[-1] if times else ORIGIN + sent + 0.01,
    )


def point_of(answers: list[Answered], level: Level | None = None, **finished: object) -> Point:
    values = {
        "cpu_s": 0.1,
        "wall_s": 1.0,
        "peak_memory_mib": 30.0,
        "loop_lag_ms": [1.0] * 200,
        "read_lag_ms": array("d", [0.0, 4.0]),
        "retries": 0,
    }
    return build_point(
        level or Level(0, 1, concurrency=1),
        [Sent(a, 10) for a in answers],
        [Finished(answers=answers, **{**values, **finished})],
        origin_s=ORIGIN,
        server=None,
        server_requests=None,
        own_memory_mib=70.0,
    )


def test_formulas():
    point = point_of([answered(0, 1.0), answered(1, 1.5, ttft=0.4, tpot=0.01, tokens=11)])
    assert point.ttft_ms.mean == pytest.approx(300)
    assert point.tpot_ms.mean == pytest.approx(20)
    assert point.itl_ms.mean == pytest.approx((4 * 30 + 10 * 10) / 14)
    assert point.itl_ms.n == 14
    assert point.e2el_ms.mean == pytest.approx((320 + 500) / 2)
    assert point.e2el_ms.p99 == pytest.approx(320 + 0.99 * 180)
    assert (point.start_s, point.end_s) == pytest.approx((1.0, 2.0))
    assert point.output_throughput_tok_s == pytest.approx(16)
    assert point.total_throughput_tok_s == pytest.approx(36)
    assert point.request_throughput == pytest.approx(2)
    assert point.client.peak_memory_mib == 100
    assert point.valid


def test_open_loop_latency_counts_from_the_intended_time():
    late = answered(0, 1.5, intended=1.0)
    assert point_of([late], Level(0, 1, rate=1.0)).ttft_ms.mean == pytest.approx(700)
    assert point_of([late]).ttft_ms.mean == pytest.approx(200)


def test_the_server_is_compared_from_the_real_send_time():
    late = answered(0, 9.0, intended=1.0)
    point = build_point(
        Level(0, 1, rate=1.0, max_concurrency=1),
        [Sent(late, 10)],
        [],
        origin_s=ORIGIN,
        server=ServerView(ttft_mean_ms=200),
        server_requests=1,
        own_memory_mib=70.0,
    )
    assert point.ttft_ms.mean == pytest.approx(8200)
    assert point.valid, point.invalid_reasons


def test_one_token_has_no_tpot():
    point = point_of([answered(0, 0, tokens=1)])
    assert point.tpot_ms.mean is None
    assert point.tpot_ms.n == 0
    assert point.ttft_ms.n == 1


def test_failures_have_no_latency_and_no_tokens():
    point = point_of([answered(0, 0), answered(1, 0, ok=False)])
    assert (point.completed, point.failed) == (1, 1)
    assert point.errors == {"HTTP 500": 1}
    assert point.ttft_ms.n == 1
    assert point.input_tokens == 10
    assert not point.valid
    assert point.invalid_reasons == ["1 of 2 requests failed; most often: HTTP 500"]


def test_steady_window():
    # Four slots; the ramp-down begins when there is nothing left to send.
    answers = [answered(i, 0.1 * i + 0.321 * k) for k in range(3) for i in range(4)]
    answers = [answered(n, a.sent_s - ORIGIN) for n, a in enumerate(answers)]
    requests = to_requests([Sent(a, 10) for a in answers], ORIGIN, open_loop=False)
    window = steady_window(requests, answers, 4, ORIGIN)
    assert window is not None
    assert window.start_s == pytest.approx(0.3)
    assert window.end_s == pytest.approx(0.962)
    assert window.completed == 6
    assert steady_window(requests, answers, 5, ORIGIN) is None


def test_short_points_are_flagged():
    warnings = point_of([answered(0, 0)], Level(0, 1, concurrency=4)).warnings
    assert any("few requests: 1 at concurrency 4" in w for w in warnings)
    assert any("no steady state" in w for w in warnings)


@pytest.mark.parametrize(
    ("finished", "reason"),
    [
        ({"cpu_s": 0.95}, "used 95% of a core"),
        ({"loop_lag_ms": [0.0] * 97 + [60.0] * 3, "read_lag_ms": array("d")}, "60.0 ms behind"),
        ({"loop_lag_ms": [0.0] * 97 + [60.0] * 3}, None),  # nothing lay unread meanwhile
        ({"loop_lag_ms": [60.0] * 3, "read_lag_ms": array("d")}, None),
        ({"read_lag_ms": array("d", [17.0] * 200)}, "unread for 17.0 ms on average"),
        ({"read_lag_ms": array("d", ([0.0] * 97 + [50.0] * 3) * 7)}, "50.0 ms at the 99th"),
        # Three late readings of a hundred: too few for a percentile, and the mean is small.
        ({"read_lag_ms": array("d", [0.0] * 97 + [50.0] * 3)}, None),
    ],
)
def test_a_busy_client_invalidates(finished, reason):
    reasons = point_of([answered(0, 0)], **finished).invalid_reasons
    assert [bool(reason) and reason in found for found in reasons] == [True] * bool(reason)


def flat(value: float | None) -> Latency:
    return Latency(mean=value, p50=value, p90=value, p95=value, p99=value, n=100)


def test_a_lag_is_held_against_the_latency():
    client = Client(processes=1, cpu_share=0.1, send_lag_p99_ms=70, loop_lag_p99_ms=70)
    slow = client_reasons(client, flat(2000), flat(9000), open_loop=True, capped=False)
    assert slow == []
    fast = client_reasons(client, flat(100), flat(500), open_loop=True, capped=False)
    assert len(fast) == 2
    assert len(client_reasons(client, flat(100), flat(500), open_loop=True, capped=True)) == 1


@pytest.mark.parametrize(
    ("ttft", "tpot", "reasons", "warnings"),
    [
        (445, 14.6, 0, 0),
        (520, 14.6, 0, 1),  # 17 %
        (631, 14.6, 1, 0),
        (445, 16.9, 1, 0),  # what one process of the usual client reported for 14.6
        (445, 15.5, 0, 1),
        (300, 14.6, 1, 0),
        (None, None, 0, 0),
    ],
)
def test_client_against_server(ttft, tpot, reasons, warnings):
    server = ServerView(ttft_mean_ms=445, tpot_mean_ms=14.6)
    found = server_reasons(server, 100, 100, flat(ttft), flat(tpot))
    assert (len(found[0]), len(found[1])) == (reasons, warnings)


def test_small_absolute_gaps_are_no_mismatch():
    server = ServerView(ttft_mean_ms=10, tpot_mean_ms=2)
    assert server_reasons(server, 5, 5, flat(25), flat(2.4)) == ([], [])


def test_foreign_requests():
    assert server_reasons(ServerView(), 100, 100, flat(1), flat(1)) == ([], [])
    assert "somebody else" in server_reasons(ServerView(), 120, 100, flat(1), flat(1))[0][0]


def test_server_view_is_a_difference():
    def scrape(count: int, sum_s: float, tokens: float | None) -> dict:
        return {
            "generation_tokens": tokens,
            "histograms": {"ttft": {"count": count, "sum_s": sum_s}, "tpot": None},
        }

    view = server_view(scrape(10, 5.0, 100), scrape(20, 7.0, 400))
    assert view.ttft_mean_ms == pytest.approx(200)
    assert view.tpot_mean_ms is None
    assert view.generation_tokens == 300
    assert view.preemptions is None
    assert server_view(scrape(10, 5.0, 1), scrape(10, 5.0, None)).ttft_mean_ms is None


def requests_of(ttfts_ms: list[float], *, failed: int = 0) -> Requests:
    answers = [answered(i, 0, ttft=t / 1000) for i, t in enumerate(ttfts_ms)]
    answers += [answered(len(ttfts_ms) + i, 0, ok=False) for i in range(failed)]
    return to_requests([Sent(a, 10) for a in answers], ORIGIN, open_loop=False)


def test_goodput_counts_errors_as_bad():
    requests = requests_of([100, 200, 300], failed=1)
    good = goodput(requests, Slo(ttft_p95_ms=250), duration_s=2.0)
    assert good is not None
    assert (good.good, good.sent, good.share) == (2, 4, 0.5)
    assert good.requests_per_s == 1.0
    assert good.good_output_tokens == 10
    none = goodput(requests, Slo(ttft_p95_ms=1), duration_s=2.0)
    assert none is not None
    assert none.requests_per_s == 0.0
    assert goodput(requests, Slo(ttft_mean_ms=200), 2.0) is None


def test_one_token_misses_no_tpot_limit():
    answers = [answered(0, 0, tokens=1)]
    requests = to_requests([Sent(a, 10) for a in answers], ORIGIN, open_loop=False)
    good = goodput(requests, Slo(tpot_p95_ms=1), 1.0)
    assert good is not None
    assert good.good == 1


def test_the_highest_percentile_is_a_requests_limit():
    slo = Slo(ttft_p50_ms=100, ttft_p99_ms=900, tpot_mean_ms=5, e2el_p90_ms=70, itl_p99_ms=3)
    assert request_limits(slo) == {"ttft": 900, "e2el": 70}


def test_requests_from_columns():
    columns = {
        name: np.array([1.0, np.nan])
        for name in ("intended_s", "sent_s", "first_token_s", "last_token_s")
    }
    columns |= {"input_tokens": [1, 2], "output_tokens": [3, np.nan], "ok": [True, False]}
    requests = Requests.from_columns(columns, open_loop=False)
    assert len(requests.latency("ttft")) == 1


def test_answers_of_one_token_do_not_count_in_the_servers_tpot():
    """vLLM observes 0 s for them; the client has no TPOT of them at all."""
    requests = Requests.from_columns(
        {
            "intended_s": [0.0, 0.0, 0.0, 0.0],
            "sent_s": [0.0, 0.0, 0.0, 0.0],
            "first_token_s": [0.1, 0.1, 0.1, 0.1],
            "last_token_s": [1.1, 1.1, 1.1, 0.1],
            "input_tokens": [5, 5, 5, 5],
            "output_tokens": [11, 11, 11, 1],
            "ok": [True, True, True, True],
        },
        open_loop=False,
    )
    server = ServerView(tpot_mean_ms=75.0)  # (3 x 100 + 0) / 4
    corrected = without_one_token_answers(server, 4, requests)
    assert corrected.tpot_mean_ms == pytest.approx(100.0)
    assert without_one_token_answers(server, None, requests) == server
    assert without_one_token_answers(None, 4, requests) is None
