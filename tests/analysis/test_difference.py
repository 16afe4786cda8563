"""The test of two sets of repeats: its error rate under every kind of noise, and its reach."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from scripts.lib.analysis.comparison.difference import (
    MOST_REPEATS,
    Repeats,
    compare_repeats,
    reach_of,
    relative_noise,
)


def compare(*sides):
    own, baseline, *others = [
        side if isinstance(side, Repeats) else Repeats(side) for side in sides
    ]
    return compare_repeats(own, baseline, others)


def test_comparison_needs_three_repeats_a_side():
    difference = compare([1.0, 1.1], [2.0, 2.1, 2.2])
    assert difference.p is None
    assert difference.low is None
    assert difference.ratio == pytest.approx((1.0 * 1.1) ** 0.5 / (2.0 * 2.1 * 2.2) ** (1 / 3))
    assert reach_of(difference, 0.05, 0.07, 0.1) is None


def test_two_equally_noisy_sides_are_students_test():
    a, b = [1.10, 1.13, 1.08], [1.00, 1.02, 0.97]
    difference = compare(a, b)
    assert difference.p == pytest.approx(stats.ttest_ind(np.log(a), np.log(b)).pvalue)
    assert difference.low < difference.ratio < difference.high


def test_a_side_far_noisier_over_the_study_is_alone_with_its_freedom():
    a, b = [1.10, 1.13, 1.08], [1.00, 1.02, 0.97]
    difference = compare(Repeats(a, noise=1e4), b)
    assert difference.freedom == pytest.approx(2, abs=1e-3)
    assert difference.p > compare(a, b).p


def test_others_lend_their_freedom_unless_the_sides_are_noisier():
    a, b = [1.02, 1.03, 1.01], [1.00, 1.01, 0.99]
    alike = [[2.0, 2.02, 1.98]] * 4
    assert compare(a, b, *alike).freedom == pytest.approx(12)
    calm = [[2.0, 2.0001, 1.9999]] * 4
    assert compare(a, b, *calm).freedom == pytest.approx(4)
    half = [Repeats([2.0, 2.01, 1.99], noise=0.25)] * 4
    assert compare(a, b, *half).freedom == pytest.approx(12)
    other = [Repeats([2.0, 2.004, 1.996], noise=0.04)] * 4
    assert compare(a, b, *other).freedom == pytest.approx(4), "too unlike to lend"


def test_repeats_without_any_spread_do_not_divide_by_zero():
    assert compare([2.0] * 3, [2.0] * 3).p == pytest.approx(1)
    assert compare([2.1] * 3, [2.0] * 3).p < 1e-6
    assert compare([2.0] * 3, [2.0] * 3, [3.0] * 3).p == pytest.approx(1)
    assert relative_noise([{"a": [2.0] * 3, "b": [1.0, 1.1, 1.2]}], "a") == {}


positive = st.floats(1e-3, 1e6)


@given(
    st.lists(st.lists(positive, min_size=3, max_size=5), min_size=2, max_size=4),
    st.lists(st.floats(1e-4, 1e4), min_size=4, max_size=4),
)
def test_every_set_of_repeats_gives_a_p_and_an_interval(groups, noise):
    sides = [Repeats(values, n) for values, n in zip(groups, noise, strict=False)]
    found = compare(*sides)
    assert 0 <= found.p <= 1
    assert found.low <= found.ratio <= found.high
    assert found.freedom >= min(len(values) for values in groups) - 1 - 1e-6


@given(st.lists(positive, min_size=3, max_size=3), st.lists(positive, min_size=3, max_size=3))
def test_swapping_the_sides_inverts_the_ratio_and_keeps_the_p(a, b):
    one, other = compare(a, b), compare(b, a)
    assert one.ratio == pytest.approx(1 / other.ratio)
    assert one.p == pytest.approx(other.p)


def test_relative_noise_is_seen_over_many_points_and_blind_to_their_levels():
    rng = np.random.default_rng(3)
    points = [
        {
            "a": list(rng.lognormal(0, spread, 3)),
            "b": list(rng.lognormal(0, 5 * spread, 3)),
            "c": list(rng.lognormal(0, spread, 9)),
        }
        for spread in np.geomspace(1e-3, 0.3, 60)
    ]
    found = relative_noise(points, "a")
    assert found["a"] == 1
    assert 12 < found["b"] < 50
    assert 0.5 < found["c"] < 2, "more repeats are not more noise"


def test_rounded_repeats_do_not_make_a_variant_noiseless():
    points = [{"a": [1.0, 1.1, 1.2], "b": [1.0, 1.00001, 1.00002]}] * 3
    assert relative_noise(points, "a")["b"] == 1e-4


SPREADS = {
    "equal": (0.1, 0.1),
    "baseline noisier": (0.1, 0.01),
    "variant noisier": (0.01, 0.1),
    "pair noisier than the rest": (0.1, 0.1, 0.01, 0.01),
    "one of four noisier": (0.01, 0.1, 0.01, 0.01),
    "each its own": (0.02, 0.06, 0.1, 0.02),
}


@pytest.mark.parametrize("spreads", SPREADS.values(), ids=SPREADS)
@pytest.mark.parametrize("repeats", [(3, 3), (3, 9)], ids=["3 and 3", "3 and 9"])
def test_a_difference_of_nothing_is_significant_in_one_of_twenty(spreads, repeats):
    """Of 600 studies of six points, the share of tests below 5 % stays near 5 %."""
    rng = np.random.default_rng(5)
    counts = [repeats[0], *[repeats[1]] * (len(spreads) - 1)]
    low = total = 0
    for _ in range(100):
        points = [
            {
                str(v): list(rng.lognormal(0, spread, n))
                for v, (spread, n) in enumerate(zip(spreads, counts, strict=True))
            }
            for _ in range(6)
        ]
        noise = relative_noise(points, "0")
        for samples in points:
            own = {name: Repeats(values, noise[name]) for name, values in samples.items()}
            rest = [own[name] for name in own if name not in "01"]
            low += compare(own["1"], own["0"], *rest).p < 0.05
            total += 1
    assert low / total <= 0.08


@pytest.mark.parametrize("spread", [0.01, 0.03, 0.1])
@pytest.mark.parametrize("repeats", [3, 6])
def test_the_difference_said_to_be_detectable_is_found_nine_times_in_ten(spread, repeats):
    """Simulated with the true spread: significant at the level, and beyond the band."""
    rng = np.random.default_rng(7)
    alpha, band = 0.05 / 12, 0.07
    step = spread * np.array([-1.0, 0.0, 1.0])
    step = np.tile(step / np.std(np.tile(step, repeats // 3), ddof=1) * spread, repeats // 3)
    reach = reach_of(compare(np.exp(step), np.exp(step)), alpha, band, 0.1)
    found = 0
    for _ in range(600):
        b = rng.lognormal(np.log1p(reach.detectable), spread, repeats)
        one = compare(b, rng.lognormal(0, spread, repeats))
        found += one.p < alpha and one.ratio > 1 + band
    assert found / 600 == pytest.approx(0.9, abs=0.04)


def test_more_repeats_are_asked_for_where_there_is_more_noise():
    step = np.array([-1.0, 0.0, 1.0])
    needed = [
        reach_of(compare(np.exp(s * step), np.exp(s * step)), 0.05, 0.07, 0.1).repeats_needed
        for s in (0.001, 0.03, 0.06, 0.12)
    ]
    assert needed[0] == 3
    assert needed == sorted(needed)
    assert needed[-1] > 20
    wild = compare(np.exp(step), np.exp(step))
    assert reach_of(wild, 0.05, 0.07, 0.1).repeats_needed is None
    assert MOST_REPEATS == 200
