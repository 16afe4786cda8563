"""A point that has a time limit sends no more after it, and says so."""

import time

from plain_server import Manners, plain_server
from test_session import measure

SLOW = Manners(ttft_s=0.05, tpot_s=0.05)
SPEC = {
    "dataset": {"random": {"input_tokens": 8, "output_tokens": 6}},
    "concurrency": [2],
    "requests_per_point": 200,
    "reset_prefix_cache": False,
}


def test_a_slow_point_is_cut_and_says_so(tmp_path, tokenizer_folder):
    started = time.monotonic()
    with plain_server(SLOW) as server:
        result = measure(
            server.url, tmp_path, tokenizer_folder, {**SPEC, "point_time_limit_s": 1.0}
        )
    assert time.monotonic() - started < 30
    point = result.points[0]
    assert 2 <= point.sent < 200
    assert point.completed == point.sent
    assert any(f"cut short: {point.sent} of 200 requests" in warning for warning in point.warnings)


def test_a_point_within_its_limit_sends_all(tmp_path, tokenizer_folder):
    spec = {**SPEC, "requests_per_point": 4, "point_time_limit_s": 60}
    with plain_server(Manners()) as server:
        result = measure(server.url, tmp_path, tokenizer_folder, spec)
    assert result.points[0].sent == 4
    assert not any("cut short" in warning for warning in result.points[0].warnings)
