import numpy as np
import pytest
from scipy import stats

from scripts.lib.analysis.comparison.paired import (
    Paired,
    difference_interval,
    items_needed,
    judge_paired,
    mcnemar_p,
)
from scripts.lib.analysis.comparison.quality_need import compared_items, more_items
from scripts.lib.analysis.comparison.quality_view import build_quality
from scripts.lib.quality.results import QualityResult
from tests import factories

STUDY = factories.make_study()


def result(variant, wrong=frozenset(), per_axis=5, **values):
    items = factories.probe_items(set(wrong), per_axis=per_axis, skip=values.pop("skip", None))
    return QualityResult(variant=variant, items=items, probe_files={}, settings={}, **values)


def views(**wrong):
    results = {
        name.replace("_", "-"): result(name.replace("_", "-"), w) for name, w in wrong.items()
    }
    return {v.variant: v for v in build_quality(STUDY, results, {"bf16": "BF16"})}


def test_mcnemar_is_exact():
    assert mcnemar_p(Paired(100, 5, 5)) == 1
    assert mcnemar_p(Paired(100, 9, 1)) == pytest.approx(2 * stats.binom.cdf(1, 10, 0.5))
    assert mcnemar_p(Paired(100, 0, 0)) == 1


@pytest.mark.parametrize("lost_rate", [0.0, 0.02, 0.1])
def test_score_interval_covers(lost_rate):
    """The 90 % interval holds the true difference in 86 % of samples or more, few flips or many."""
    rng = np.random.default_rng(3)
    gained_rate = 0.03
    hits = 0
    for _ in range(500):
        lost, gained, _ = rng.multinomial(80, [lost_rate, gained_rate, 1 - lost_rate - gained_rate])
        low, high = difference_interval(Paired(80, int(lost), int(gained)))
        hits += low <= gained_rate - lost_rate <= high
    assert 0.86 <= hits / 500 <= 0.99


def test_score_interval_without_flips_is_not_a_point():
    """n identical answers leave z^2 / (n + z^2) open on either side (Tango 1998)."""
    z2 = stats.norm.ppf(0.95) ** 2
    low, high = difference_interval(Paired(100, 0, 0))
    assert (low, high) == pytest.approx((-z2 / (100 + z2), z2 / (100 + z2)), abs=1e-6)


def test_interval_turns_around_with_the_roles():
    low, high = difference_interval(Paired(60, 7, 2))
    assert difference_interval(Paired(60, 2, 7)) == pytest.approx((-high, -low))


@pytest.mark.parametrize(
    ("pair", "outcome"),
    [
        (Paired(200, 0, 0), "non-inferior"),
        (Paired(200, 3, 3), "non-inferior"),
        (Paired(40, 0, 0), "undecided"),
        (Paired(100, 20, 2), "worse"),
        (Paired(100, 6, 3), "undecided"),
        (Paired(10, 10, 0), "worse"),
        (Paired(2000, 40, 10), "non-inferior"),
    ],
)
def test_outcomes_at_a_margin_of_five_points(pair, outcome):
    assert judge_paired(pair, 0.05)[0] == outcome


def test_how_many_items_a_margin_needs():
    assert judge_paired(Paired(items_needed(0.05), 0, 0), 0.05)[0] == "non-inferior"
    assert judge_paired(Paired(items_needed(0.05) - 1, 0, 0), 0.05)[0] == "undecided"


def test_flips_are_listed_both_ways_and_blame_is_fair():
    found = views(bf16={"logic-0", "fact-1"}, int8_w8a8={"logic-0", "json-1", "tool-2"})
    view = found["int8-w8a8"]
    axes = {axis.axis: axis for axis in view.axes}
    assert (view.lost, view.gained) == (2, 1)
    assert axes["json"].lost == ["json-1"]
    assert axes["tool"].lost == ["tool-2"]
    assert axes["fact"].gained == ["fact-1"]
    assert axes["logic"].baseline_wrong_too == 1
    assert axes["logic"].lost == []
    assert (axes["fact"].passed, axes["fact"].baseline_passed) == (5, 4)
    assert view.p_value == pytest.approx(1)
    assert {example["id"] for example in view.examples} == {"json-1", "tool-2", "fact-1"}


def test_examples_say_why_and_axes_how_many_were_cut():
    asked = {"temperature": 0.0, "seed": 42, "concurrency": 16, "source": {"any": "thing"}}
    results = {"bf16": result("bf16"), "int8-w8a8": result("int8-w8a8", {"json-1"})}
    cut = [
        item.model_copy(update={"finish_reason": {"json-1": "length"}.get(item.id, "stop")})
        for item in results["int8-w8a8"].items
    ]
    results["int8-w8a8"] = results["int8-w8a8"].model_copy(update={"items": cut})
    results = {n: one.model_copy(update={"settings": asked}) for n, one in results.items()}
    view = build_quality(STUDY, results, {})[1]
    (example,) = view.examples
    assert view.variant == "int8-w8a8"
    assert example["baseline_reason"] == "as expected"
    assert example["variant_reason"] == "another answer"
    assert {axis.axis: axis.cut for axis in view.axes if axis.cut} == {"json": 1}
    assert view.asked.model_dump() == {"temperature": 0, "seed": 42, "concurrency": 16}


def test_what_imported_answers_do_not_tell_is_not_guessed():
    one = result("bf16")
    items = [item.model_copy(update={"finish_reason": None}) for item in one.items]
    odd = {"temperature": "low", "seed": True, "concurrency": None}
    one = one.model_copy(update={"items": items, "settings": odd})
    view = build_quality(STUDY, {"bf16": one}, {})[0]
    assert {axis.cut for axis in view.axes} == {None}
    assert set(view.asked.model_dump().values()) == {None}


def test_the_baseline_is_its_own_reference():
    view = views(bf16={"fact-1"}, int8_w8a8=set())["bf16"]
    assert view.outcome == "baseline"
    assert view.stamp == "BF16"
    assert view.words == "Passed 39 of 40 graded items."
    assert view.similarity.value == 1


def test_undecided_says_how_many_items_it_would_take():
    view = views(bf16=set(), int8_w8a8=set())["int8-w8a8"]
    assert view.outcome == "undecided"
    assert view.words.endswith("Even without a single flip that takes 52 items.")


def test_failed_requests_are_neither_lost_nor_gained():
    skip = {"fact-1": "HTTP 500"}
    results = {
        "bf16": result("bf16"),
        "int8-w8a8": result("int8-w8a8", {"fact-1"}, skip=skip),
    }
    view = build_quality(STUDY, results, {})[1]
    assert view.variant == "int8-w8a8"
    assert view.lost == 0
    assert sum(axis.items for axis in view.axes) == 39


def test_items_that_the_baseline_did_not_answer_are_no_evidence():
    """Of 40 items 20 have two grades: the answer to "how many more" counts from those."""
    skip = {item.id: "HTTP 500" for item in factories.probe_items(set(), per_axis=5)[::2]}
    results = {"bf16": result("bf16", skip=skip), "int8-w8a8": result("int8-w8a8")}
    view = build_quality(STUDY, results, {})[1]
    assert (sum(axis.items for axis in view.axes), view.paired) == (40, 20)
    assert more_items(view, STUDY.quality) == items_needed(0.05) - 20
    assert compared_items(view.model_copy(update={"paired": None})) == 40, "older summaries"


def test_no_quality_is_a_reason():
    results = {
        "bf16": result("bf16"),
        "int8-w8a8": QualityResult(
            variant="int8-w8a8",
            items=[],
            probe_files={},
            settings={},
            not_applicable="random weights",
        ),
    }
    found = {v.variant: v for v in build_quality(STUDY, results, {})}
    assert found["int8-w8a8"].outcome == "not measured"
    assert found["int8-w8a8"].not_applicable == "random weights"
    assert found["int8-w8a8"].task_success.missing == "random weights"
    assert found["int4-w4a16"].words == "Quality was not measured."


def test_without_a_baseline_nothing_is_judged():
    (view,) = [v for v in build_quality(STUDY, {"int8-w8a8": result("int8-w8a8")}, {}) if v.axes]
    assert view.outcome == "not measured"
    assert "baseline's quality was not measured" in view.words
    assert view.task_success.value == 1
    assert view.similarity.missing


def test_shares_have_wilsons_interval():
    view = views(bf16={"fact-1", "fact-2"})["bf16"]
    assert view.task_success.n == 30
    assert view.task_success.value == pytest.approx(28 / 30)
    assert view.task_success.low == pytest.approx(0.787, abs=0.001)
    assert view.tool_success.n == 5
    assert view.format_accuracy.n == 10


ASKED = {"temperature": 0.0, "seed": 42, "max_tokens": 256, "concurrency": 1}
FILES = {"config/probes/a.jsonl": "1" * 64}


def asked(settings=None, files=None):
    """Return the view of a variant whose items fared worse, asked in a way of its own."""
    answers = {"bf16": result("bf16"), "int8-w8a8": result("int8-w8a8", {"fact-0", "fact-1"})}
    ways = {"bf16": (ASKED, FILES), "int8-w8a8": (settings or ASKED, files or FILES)}
    answers = {
        name: one.model_copy(update={"settings": ways[name][0], "probe_files": ways[name][1]})
        for name, one in answers.items()
    }
    return next(v for v in build_quality(STUDY, answers, {}) if v.variant == "int8-w8a8")


def test_variants_asked_alike_are_compared():
    assert asked().lost == 2
    assert asked().p_value is not None


@pytest.mark.parametrize(
    ("settings", "files", "said"),
    [
        (ASKED | {"max_tokens": 512}, None, "max_tokens: 512 here, 256 there"),
        (ASKED | {"concurrency": 8}, None, "concurrency: 8 here, 1 there"),
        ({"temperature": 0.0, "seed": 42, "concurrency": 1}, None, "max_tokens: not recorded here"),
        (None, {"config/probes/a.jsonl": "2" * 64}, "config/probes/a.jsonl: another content"),
        (None, {**FILES, "b.jsonl": "3" * 64}, "b.jsonl: asked here only"),
        (None, {"b.jsonl": "3" * 64}, "config/probes/a.jsonl: asked there only"),
    ],
)
def test_variants_asked_in_different_ways_are_not_compared(settings, files, said):
    view = asked(settings, files)
    assert view.outcome == "undecided"
    assert said in view.words
    folder = f"results/{STUDY.study}/quality"
    again = f" --forcerun {folder}/bf16/asked.json {folder}/int8-w8a8/asked.json"
    assert view.words.endswith(again)
    assert (view.lost, view.gained, view.p_value, view.examples) == (0, 0, None, [])
    assert view.task_success.value is not None
    assert "another way" in view.similarity.missing


def test_where_imported_answers_come_from_is_no_setting():
    told = {"source": "a table", "similarity_to_baseline": {"fact-0": 0.5}}
    assert asked(ASKED | told).lost == 2


def test_imported_answers_cannot_be_asked_again():
    view = asked({"source": "a table", "seed": 1})
    assert "another way" in view.words
    assert view.words.endswith("are not compared.")
