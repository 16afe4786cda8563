from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.lib.load.arrivals import arrival_offsets, ramp_offsets
from scripts.lib.load.processes import processes_needed
from scripts.lib.load.schedule import (
    default_warmup,
    planned_levels,
    requests_of,
    rotated,
)
from scripts.lib.load.search import next_level
from scripts.lib.study.models import Arrival, Ramp, SloSearch, Workload

RANDOM = {"random": {"input_tokens": 8, "output_tokens": 6}}


@pytest.mark.parametrize("process", ["poisson", "gamma", "constant"])
def test_offered_rate_is_the_one_asked_for(process):
    offsets = arrival_offsets(Arrival(process=process, burstiness=0.5), 20.0, 2000, seed=1)
    assert offsets[0] == 0
    assert np.all(np.diff(offsets) >= 0)
    assert offsets[-1] == pytest.approx(100, rel=0.01)


def test_burstiness_is_the_shape_of_the_gaps():
    def spread(arrival: Arrival) -> float:
        gaps = np.diff(arrival_offsets(arrival, 10.0, 20_000, seed=3))
        return float(np.std(gaps) / np.mean(gaps))

    assert spread(Arrival(process="poisson")) == pytest.approx(1, abs=0.03)
    assert spread(Arrival(process="gamma", burstiness=0.25)) == pytest.approx(2, abs=0.1)
    assert spread(Arrival(process="gamma", burstiness=4)) == pytest.approx(0.5, abs=0.02)
    assert spread(Arrival(process="constant")) == pytest.approx(0, abs=1e-9)


def test_the_seed_decides_the_times():
    first = arrival_offsets(Arrival(), 5, 50, seed=1)
    assert np.array_equal(first, arrival_offsets(Arrival(), 5, 50, seed=1))
    assert not np.array_equal(first, arrival_offsets(Arrival(), 5, 50, seed=2))


@pytest.mark.parametrize("shape", ["linear", "exponential"])
def test_ramp_goes_from_rate_to_rate(shape):
    ramp = Ramp(start_rate=2, end_rate=20, shape=shape, requests=400)
    gaps = np.diff(ramp_offsets(ramp, Arrival(process="constant"), seed=1))
    assert 1 / gaps[0] == pytest.approx(2, rel=0.05)
    assert 1 / gaps[-1] == pytest.approx(20, rel=0.05)
    assert np.all(np.diff(gaps) < 0)
    middle = {"linear": 11, "exponential": 40**0.5}[shape]
    assert 1 / gaps[199] == pytest.approx(middle, rel=0.05)


def test_levels_rotate_over_repetitions():
    workload = Workload.model_validate(
        {"dataset": RANDOM, "concurrency": [1, 4, 8], "repetitions": 3}
    )
    levels = planned_levels(workload)
    orders = [[level.concurrency for level in rotated(levels, r)] for r in (1, 2, 3, 4)]
    assert orders == [[1, 4, 8], [4, 8, 1], [8, 1, 4], [1, 4, 8]]
    assert {level.repetition for level in rotated(levels, 2)} == {2}


def test_requests_scale_with_the_load():
    workload = Workload.model_validate({"dataset": RANDOM, "concurrency": [2, 30]})
    assert [requests_of(workload, level) for level in planned_levels(workload)] == [20, 300]
    assert default_warmup(workload) == 60
    open_loop = Workload.model_validate({"dataset": RANDOM, "rate": [0.5]})
    assert requests_of(open_loop, planned_levels(open_loop)[0]) == 30


def search(passed: dict[int, bool | None], resolution: int = 4, most: int = 6) -> int | None:
    return next_level(passed, SloSearch(resolution=resolution, max_points=most), tried=0)


def test_search_halves_the_gap():
    assert search({32: True, 64: False}) == 48
    assert search({32: True, 48: False, 64: False}) == 40
    assert search({32: True, 40: False}) == 36
    assert search({32: True, 36: False}) is None


def test_search_needs_a_failure():
    assert search({8: True, 64: True}) is None
    assert search({8: None, 64: True}) is None
    assert search({8: False}) == 4
    assert search({1: False}) is None


def test_search_ignores_a_pass_above_a_failure():
    assert search({8: True, 32: False, 64: True}) == 20


def test_search_goes_around_a_level_without_verdict():
    assert search({32: True, 48: None, 64: False}) in (47, 49)


def test_search_ends_after_its_points():
    assert next_level({1: True, 100: False}, SloSearch(resolution=1, max_points=3), 3) is None


@given(boundary=st.integers(0, 300), resolution=st.integers(1, 16))
def test_search_finds_every_boundary(boundary: int, resolution: int):
    passed: dict[int, bool | None] = {level: level <= boundary for level in (8, 64, 301)}
    options = SloSearch(resolution=resolution, max_points=20)
    for tried in range(20):
        level = next_level(passed, options, tried)
        if level is None:
            break
        assert level not in passed
        passed[level] = level <= boundary
    failed = min(level for level, ok in passed.items() if not ok)
    kept = max((level for level, ok in passed.items() if ok), default=0)
    assert kept <= boundary < failed
    assert failed - kept <= resolution


def test_processes_follow_the_streams_and_the_cores():
    assert processes_needed(300, 10_000, cores=2) == 1
    assert processes_needed(2000, 66_000, cores=16) == 4
    assert processes_needed(2000, 66_000, cores=2) == 2
    assert processes_needed(1, 10, cores=1) == 1
