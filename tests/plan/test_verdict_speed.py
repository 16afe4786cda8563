"""Speed against the baseline."""

from __future__ import annotations

import json

import pytest
from plan_cases import REFERENCE, load

from scripts.lib.plan.speed import speed_ratio


def test_the_lowest_common_concurrency_counts():
    own, base = [load({4: 10.0, 8: 30.0}), load({4: 12.0})], [load({1: 5.0, 4: 11.0, 8: 10.0})]
    assert speed_ratio(own, base) == pytest.approx(1.0)


def test_invalid_points_and_other_workloads_are_not_compared():
    assert speed_ratio([load({1: 5.0}, valid=False)], [load({1: 5.0})]) is None
    assert speed_ratio([load({1: 5.0}, failed=1)], [load({1: 5.0})]) is None
    assert speed_ratio([load({1: 5.0}, workload="a")], [load({1: 5.0}, workload="b")]) is None
    assert speed_ratio([], [load({1: 5.0})]) is None


@pytest.mark.skipif(not REFERENCE.is_dir(), reason="the reference data are not here")
def test_the_trap_on_the_h200_was_as_fast_as_the_baseline():
    measured = {
        name: json.loads((REFERENCE / "h200" / name / f"{name}.1.json").read_text())["mean_tpot_ms"]
        for name in ("bf16", "fp8", "gptq")
    }
    base = [load({1: measured["bf16"]})]
    assert speed_ratio([load({1: measured["gptq"]})], base) == pytest.approx(1, abs=0.03)
    assert speed_ratio([load({1: measured["fp8"]})], base) < 0.9
