from dataclasses import replace

import numpy as np
import pytest

from scripts.lib.analysis.comparison.comparisons import (
    compare,
    is_higher_better,
    noise_floor,
    samples_of,
)
from scripts.lib.analysis.points.digest import digest_runs
from scripts.lib.analysis.points.records import find_runs
from tests import factories
from tests.analysis import resampling

STUDIES = 100


@pytest.fixture(scope="module")
def recorded():
    return resampling.record_levels()


def outcomes(recorded, draw, *, seed, studies=STUDIES, **how):
    rng = np.random.default_rng(seed)
    study = resampling.study_of_two()
    return [
        compare(study, resampling.simulate_study(rng, recorded, draw, **how))
        for _ in range(studies)
    ]


@pytest.mark.parametrize("draw", [resampling.draw_requests, resampling.draw_spread])
def test_one_variant_twice_is_hardly_ever_called_different(recorded, draw):
    """At 1,000 studies the share is below 5 %; 100 studies allow for luck: at most 9."""
    studies = outcomes(recorded, draw, seed=1)
    different = sum(any(c.outcome in ("better", "worse") for c in study) for study in studies)
    assert different <= 9


def test_a_tenth_slower_is_found_with_three_repetitions(recorded):
    studies = outcomes(recorded, resampling.draw_spread, seed=2, slowdown=1.1)
    for level in factories.H200_LEVELS:
        found = [
            c.outcome
            for study in studies
            for c in study
            if c.metric == "output_throughput_tok_s" and c.level == level
        ]
        assert found.count("worse") >= 0.9 * STUDIES, level
        assert "better" not in found


def test_servers_apart_are_not_called_different_from_one_start_each(recorded):
    """Repeats on one server cannot show that two servers differ by 3 %: the band does."""
    rng = np.random.default_rng(4)
    study = resampling.study_of_two()
    digests = resampling.simulate_study(rng, recorded[:1], resampling.draw_spread, slowdown=1.03)
    throughput = next(c for c in compare(study, digests) if c.metric.startswith("output"))
    assert throughput.p_adjusted < 0.05
    assert throughput.outcome == "tie"
    assert "equal servers" in throughput.why


def test_three_sessions_find_a_difference_inside_the_band(recorded):
    rng = np.random.default_rng(4)
    study = resampling.study_of_two()
    digests = resampling.simulate_study(
        rng, recorded[:1], resampling.draw_spread, slowdown=1.05, sessions=3
    )
    throughput = next(c for c in compare(study, digests) if c.metric.startswith("output"))
    assert throughput.outcome == "worse"


def test_three_sessions_are_the_sample_and_not_their_nine_runs(recorded):
    rng = np.random.default_rng(4)
    digests = resampling.simulate_study(rng, recorded[:1], resampling.draw_spread, sessions=3)
    mine = [d for d in digests if d.variant == "a"]
    assert len(mine) == 9
    assert len(samples_of(mine, "tpot_mean_ms").values) == 3
    assert len(samples_of(mine[:6], "tpot_mean_ms").values) == 6


def test_single_runs_are_undecided_and_say_why(recorded):
    rng = np.random.default_rng(4)
    study = resampling.study_of_two()
    digests = resampling.simulate_study(
        rng, recorded, resampling.draw_spread, slowdown=2, repetitions=1
    )
    found = compare(study, digests)
    assert len(found) == 12
    for comparison in found:
        assert comparison.outcome == "undecided"
        assert comparison.why.startswith("1 run a side shows too little of the spread; 3 repeats")
        assert comparison.low is None
        assert comparison.p_adjusted is None


def with_reasons(digests, numbers, reasons, **values):
    """Return the digests, those of the given numbers declared invalid."""
    update = {"valid": False, "invalid_reasons": reasons, **values}
    return [
        replace(d, point=d.point.model_copy(update=update)) if number in numbers else d
        for number, d in enumerate(digests)
    ]


def test_an_invalid_run_leaves_itself_out(recorded):
    """Only the two sound runs of the point are compared; an absurd third changes nothing."""
    rng = np.random.default_rng(4)
    digests = resampling.simulate_study(rng, recorded, resampling.draw_spread)
    absurd = {"output_throughput_tok_s": 1.0}
    found = compare(
        resampling.study_of_two(), with_reasons(digests, {0}, ["client late"], **absurd)
    )
    (first,) = [c for c in found if c.level == 1 and c.metric.startswith("output")]
    own = [d.point.output_throughput_tok_s for d in digests if d.level == 1]
    assert first.ratio == pytest.approx(
        np.exp(np.mean(np.log(own[3:])) - np.mean(np.log(own[1:3])))
    )
    assert first.outcome == "undecided"
    assert first.why.startswith("2 runs a side")


@pytest.mark.parametrize(
    ("numbers", "values"),
    [({0, 1}, {"reasons": ["client late"]}), ({0}, {"reasons": ["1 failed"], "failed": 1})],
    ids=["too few sound runs", "failed requests"],
)
def test_an_invalid_point_is_left_out(recorded, numbers, values):
    rng = np.random.default_rng(4)
    digests = resampling.simulate_study(rng, recorded, resampling.draw_spread)
    digests = with_reasons(digests, numbers, **values)
    levels = {c.level for c in compare(resampling.study_of_two(), digests)}
    assert levels == {10, 100, 300}


def test_holm_is_over_all_comparisons(recorded):
    from scipy import stats

    rng = np.random.default_rng(9)
    study = resampling.study_of_two()
    digests = resampling.simulate_study(rng, recorded, resampling.draw_spread)
    found = compare(study, digests)
    raw = []
    for comparison in found:
        values = [
            samples_of(
                [d for d in digests if d.variant == v and d.level == comparison.level],
                comparison.metric,
            ).values
            for v in "ba"
        ]
        raw.append(stats.ttest_ind(*np.log(values)).pvalue)
    smallest = int(np.argmin(raw))
    assert found[smallest].p_adjusted == pytest.approx(min(1, 12 * raw[smallest]))


def test_direction_of_better():
    assert is_higher_better("output_throughput_tok_s")
    assert not is_higher_better("ttft_p95_ms")
    assert not is_higher_better("usd_per_million_output_tokens")


def test_noise_floor_is_the_baselines_own_spread(tmp_path):
    recipe = factories.Recipe(repetitions=12, run_spread=0.03, levels=[4, 8])
    folder = factories.write_study(tmp_path, recipe)
    study = factories.make_study(recipe)
    floor = noise_floor(study, list(digest_runs(study, find_runs(folder))))
    assert set(floor) == {"output_throughput_tok_s", "tpot_mean_ms", "ttft_mean_ms"}
    for value in floor.values():
        assert 0.02 < value.value < 0.045
        assert value.low < value.value < value.high
