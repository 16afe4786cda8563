from dataclasses import replace

import numpy as np
import pytest

from scripts.lib.analysis.comparison.comparisons import (
    Samples,
    compare,
    is_higher_better,
    noise_floor,
    noise_of_variants,
    samples_of,
)
from scripts.lib.analysis.points.digest import digest_runs
from scripts.lib.analysis.points.records import find_runs
from scripts.lib.analysis.summary import Comparison
from scripts.lib.analysis.wording import reach_words
from tests import factories
from tests.analysis import resampling

STUDIES = 60


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
    """At 1,000 studies the share is below 5 %; 60 studies allow for luck: at most 6."""
    studies = outcomes(recorded, draw, seed=1)
    different = sum(any(c.outcome in ("better", "worse") for c in study) for study in studies)
    assert different <= 6


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


@pytest.mark.parametrize(
    ("variants", "disturbed"),
    [
        ("ab", {"a": 0.1}),
        ("abcd", {"a": 0.1}),
        ("abcd", {"a": 0.1, "b": 0.1}),
    ],
)
def test_equal_variants_stay_equal_when_some_were_disturbed(recorded, variants, disturbed):
    """A noisy neighbour during one session makes its runs scatter, not its variant different.

    At 1,000 studies each share is below 5 %; with the spread pooled over all variants as if they
    were equally noisy it was 14 to 32 %.
    """
    how = {"variants": variants, "disturbed": disturbed}
    studies = outcomes(recorded, resampling.draw_spread, seed=6, **how)
    different = sum(any(c.outcome in ("better", "worse") for c in study) for study in studies)
    assert different <= 6


def test_noise_is_known_where_the_baseline_was_not_measured():
    """Else the others would be tested as if they were equally noisy."""
    rng = np.random.default_rng(3)

    def repeats(spread):
        return Samples([list(rng.lognormal(0, spread, 3))])

    places = [{"b": repeats(0.01), "c": repeats(0.1), "d": repeats(0.01)} for _ in range(40)]
    places[0].pop("b")
    noise = noise_of_variants(places, "a")
    assert noise["c"] == 1, "measured at most places, the first of them"
    assert 1 / 250 < noise["b"] < 1 / 40
    assert noise == noise_of_variants(places, "c")
    assert noise_of_variants([], "a") == {}


def test_unequal_numbers_of_sessions_are_compared_run_by_run(recorded):
    """Three sessions against two: both sides are single runs, so the band of restarts holds."""
    rng = np.random.default_rng(4)
    digests = resampling.simulate_study(
        rng, recorded[:1], resampling.draw_spread, slowdown=1.05, sessions=3
    )
    digests = [d for d in digests if (d.variant, d.session) != ("b", 3)]
    throughput = next(
        c for c in compare(resampling.study_of_two(), digests) if c.metric.startswith("output")
    )
    assert throughput.outcome == "tie"
    assert (throughput.repeats, throughput.repeats_of) == (6, "repetitions")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.0, -1.0])
def test_a_number_that_is_none_is_not_compared(recorded, value):
    rng = np.random.default_rng(4)
    digests = resampling.simulate_study(rng, recorded, resampling.draw_spread)
    broken = digests[0].point.model_copy(update={"output_throughput_tok_s": value})
    digests[0] = replace(digests[0], point=broken)
    found = compare(resampling.study_of_two(), digests)
    assert len(found) == 11
    assert all(np.isfinite([c.ratio, c.low, c.high, c.p_adjusted]).all() for c in found)


def test_runs_without_any_spread_are_a_tie(recorded):
    """Imported tables repeat rounded numbers: equal ones are a tie, and nothing is divided by 0."""
    rng = np.random.default_rng(4)
    digests = resampling.simulate_study(rng, recorded, resampling.draw_spread)
    same = {d.level: d for d in digests}
    digests = [replace(same[d.level], variant=d.variant, session=1) for d in digests]
    assert {c.outcome for c in compare(resampling.study_of_two(), digests)} == {"tie"}


def test_a_tie_and_an_undecided_say_what_they_may_have_missed(recorded):
    rng = np.random.default_rng(4)
    digests = resampling.simulate_study(rng, recorded, resampling.draw_spread)
    found = compare(resampling.study_of_two(), digests)
    noisy = next(c for c in found if c.outcome == "undecided" and c.repeats_needed)
    assert noisy.detectable > 0.1
    assert noisy.repeats_needed > noisy.repeats == 3
    assert noisy.why.endswith(
        f"; with 3 repetitions a difference under {np.ceil(100 * noisy.detectable):.0f} % can go "
        f"unseen; {noisy.repeats_needed} would show one of 10 %"
    )
    calm = next(c for c in found if c.outcome == "tie" and c.detectable < 0.09)
    assert calm.detectable > 0.07
    assert calm.why.endswith("; with 3 repetitions a difference under 8 % can go unseen")


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (
            {"detectable": 0.132, "repeats_needed": 9},
            "with 3 sessions a difference under 14 % can go unseen; 9 would show one of 10 %",
        ),
        (
            {"detectable": 0.9, "repeats_needed": None},
            "with 3 sessions a difference under 90 % can go unseen; "
            "over 200 would show one of 10 %",
        ),
        (
            {"detectable": 10.75, "repeats_needed": None},
            "with 3 sessions even a factor of 12 can go unseen; over 200 would show one of 10 %",
        ),
        (
            {"detectable": 0.0712, "repeats_needed": 3},
            "with 3 sessions a difference under 8 % can go unseen",
        ),
        (
            {"detectable": 0.0712, "repeats": 1, "repeats_of": "repetitions"},
            "with 1 repetition a difference under 8 % can go unseen",
        ),
        ({"detectable": 0.0712, "repeats": None}, "a difference under 8 % can go unseen"),
        ({"detectable": None, "repeats_needed": None}, ""),
        ({"outcome": "better", "detectable": 0.132, "repeats_needed": 9}, ""),
    ],
)
def test_what_may_have_been_missed_in_words(told, words):
    values = {"workload": "w", "level": 1, "metric": "m", "variant": "b", "why": "because"}
    values |= {"ratio": 1, "low": None, "high": None, "p_adjusted": None, "outcome": "tie"}
    values |= {"repeats": 3, "repeats_of": "sessions"} | told
    assert reach_words(Comparison.model_validate(values)) == words


def test_one_metric_of_ten_percent_is_found_from_the_repeats_it_asks_for(recorded):
    """TTFT at concurrency 1 spreads by 4 % from run to run: three repetitions are too few."""
    how = {"slowdown": 1.1}
    few, enough = (
        outcomes(recorded[:1], resampling.draw_spread, seed=8, repetitions=n, **how)
        for n in (3, 12)
    )

    def found(studies):
        ttft = [c for study in studies for c in study if c.metric == "ttft_mean_ms"]
        return sum(c.outcome == "worse" for c in ttft) / STUDIES

    assert found(few) < 0.7
    assert found(enough) >= 0.85


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
        raw.append(abs(stats.ttest_ind(*np.log(values)).statistic))
    largest = int(np.argmax(raw))
    # Four degrees of freedom, less what the sides' spreads over the whole study differ.
    bounds = [12 * 2 * stats.t.sf(raw[largest], freedom) for freedom in (4, 3)]
    assert bounds[0] <= found[largest].p_adjusted <= min(1, bounds[1])


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
