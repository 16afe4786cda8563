import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts.lib.analysis.statistics import (
    holm,
    mean_interval,
    mean_value,
    percentile_value,
    quantile_interval,
    share_value,
    spread_value,
)


@pytest.mark.parametrize(("quantile", "n"), [(0.5, 25), (0.9, 100), (0.95, 200), (0.99, 1000)])
def test_quantile_intervals_cover(quantile, n):
    """The interval holds the true quantile in at least 95 % of samples, of any shape."""
    rng = np.random.default_rng(5)
    truth = np.exp(0.8 * float(np.sqrt(2)) * _erfinv(2 * quantile - 1))
    hits = 0
    for _ in range(2000):
        low, high = quantile_interval(np.sort(rng.lognormal(0, 0.8, n)), quantile)
        hits += (low is None or low <= truth) and (high is None or truth <= high)
    assert 0.94 <= hits / 2000 <= 0.995


@pytest.mark.parametrize("quantile", [0.5, 0.9, 0.95, 0.99])
def test_ranks_are_those_of_the_binomial_distribution(quantile):
    from scipy.stats import binom

    for n in (*range(1, 300), 1000, 5000):
        low, high = quantile_interval(np.arange(1.0, n + 1), quantile)
        assert (low or 0) == binom.ppf(0.025, n, quantile)
        assert (high or n + 1) == binom.ppf(0.975, n, quantile) + 1


def test_the_interval_of_a_share_agrees_with_statsmodels():
    from statsmodels.stats.proportion import proportion_confint

    for n in (1, 2, 12, 96, 1000):
        for count in {0, 1, n // 3, n - 1, n}:
            value = share_value(count, n)
            expected = proportion_confint(count, n, method="wilson")
            assert (value.low, value.high) == pytest.approx(expected)
            assert value.low <= value.value <= value.high


def _erfinv(x):
    from scipy.special import erfinv

    return float(erfinv(x))


def test_ranks_of_the_median_are_those_of_the_tables():
    """Order statistics 6 and 15 of 20 (95.86 %) bound the median: Hahn and Meeker."""
    assert quantile_interval(np.arange(1.0, 21.0), 0.5) == (6, 15)


def test_a_side_without_samples_is_open():
    low, high = quantile_interval(np.arange(1.0, 31.0), 0.99)
    assert low == 28
    assert high is None
    assert quantile_interval(np.array([]), 0.5) == (None, None)


@pytest.mark.parametrize(("statistic", "floor"), [("p90", 64), ("p95", 130), ("p99", 662)])
def test_percentiles_are_withheld_below_their_floor(statistic, floor):
    below = percentile_value(np.arange(floor - 1.0), statistic)
    assert below.value is None
    assert below.missing == f"too few: n={floor - 1}, {statistic} needs {floor}"
    assert below.low is not None
    enough = percentile_value(np.arange(float(floor)), statistic)
    assert enough.missing is None
    assert enough.value == pytest.approx(np.percentile(np.arange(floor), float(statistic[1:])))


def test_no_sample_is_not_zero():
    value = percentile_value(np.array([]), "p50")
    assert value.value is None
    assert value.missing


@given(st.lists(st.floats(0.01, 1e6), min_size=1, max_size=200), st.sampled_from(["p50", "p90"]))
def test_a_percentile_lies_inside_its_interval(samples, statistic):
    value = percentile_value(np.array(samples), statistic)
    if value.value is not None:
        assert value.low is None or value.low <= value.value
        assert value.high is None or value.value <= value.high


def test_no_interval_from_two_runs():
    assert mean_interval([1.0, 2.0]) == (None, None)


def test_t_interval_of_three_runs():
    """Mean 2, s 1, t(2) = 4.303: 2 -+ 4.303 / sqrt 3."""
    assert mean_interval([1.0, 2.0, 3.0]) == pytest.approx((2 - 2.4843, 2 + 2.4843), abs=1e-3)


def test_a_mean_over_some_of_the_runs_is_no_mean():
    value = mean_value([1.0, None, 3.0], "not printed")
    assert value.value is None
    assert value.missing == "not printed in 1 of 3 runs"
    assert mean_value([None], "not printed").missing == "not printed"


def test_noise_floor_recovers_a_known_spread():
    rng = np.random.default_rng(2)
    groups = [list(level * rng.lognormal(0, 0.03, 4)) for level in (1, 10, 100) for _ in range(60)]
    value = spread_value(groups)
    assert value.value == pytest.approx(0.03, rel=0.1)
    assert value.low < 0.03 < value.high
    assert value.n == 720


def test_single_runs_have_no_noise_floor():
    assert spread_value([[1.0], [2.0]]).missing


@settings(max_examples=5)
@given(st.lists(st.floats(0, 1), max_size=30))
def test_holm_agrees_with_statsmodels(p_values):
    from statsmodels.stats.multitest import multipletests

    expected = multipletests(p_values, method="holm")[1] if p_values else []
    assert holm(p_values) == pytest.approx(list(expected))
