"""What somebody who watches a load session reads."""

import io

import pytest

from scripts.lib.load import progress
from scripts.lib.load.progress import ConsoleProgress


@pytest.mark.parametrize(
    ("limit_s", "words"),
    [
        (None, "2/80 done, 8 in flight, 0 failed, 10 s, about 390 s left"),
        (500, "about 390 s left"),
        (12, "10 s; no more are sent after 12 s (point_time_limit_s)"),
    ],
)
def test_the_time_left_knows_the_points_limit(monkeypatch, limit_s, words):
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    told = ConsoleProgress(stream)
    told.start("concurrency 8", 80, limit_s)
    now[0] += 10
    told.update(2, 8, 0)
    assert words in stream.getvalue()
