"""The decision: gates in order, ranking, ties, and the three outcomes."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts.lib.analysis.comparison.paired import Paired, difference_interval, items_needed
from scripts.lib.analysis.comparison.quality_need import items_for_proof
from scripts.lib.analysis.decision.decide import decide
from scripts.lib.analysis.decision.limitations import limitations
from scripts.lib.analysis.decision.ranking import Ranking
from scripts.lib.analysis.diagnosis.diagnose import diagnose
from scripts.lib.analysis.material import Material
from scripts.lib.analysis.points.remarks import fold_remarks
from scripts.lib.analysis.summary import Value
from scripts.lib.load.results import LoadResult
from tests.analysis.materials import (
    comparison,
    failure,
    host,
    make_material,
    make_study,
    quality,
    row,
    sweep,
    verdict,
)
from tests.factories import make_manifest


def candidate(decision, name):
    return next(c for c in decision.candidates if c.variant == name)


def gate(decision, name, kind):
    return next((g for g in candidate(decision, name).gates if g.gate == kind), None)


def test_the_fastest_of_those_that_pass_everything_is_recommended():
    decision = decide(make_material())
    assert decision.outcome == "recommended"
    assert decision.variant == "int4"
    assert "2 times bf16's" in decision.headline
    assert decision.ranked_by.startswith("highest output tokens/s at the highest load")
    assert decision.rejected["bf16"] == ["qualifies, but yields 0.5 times int4's output tokens/s"]
    assert all(c.qualifies for c in decision.candidates)


def test_gates_come_in_order():
    decision = decide(make_material())
    assert [g.gate for g in candidate(decision, "int8").gates] == [
        "starts",
        "kernel",
        "valid",
        "quality",
        "slo",
        "cost",
    ]


def test_a_variant_that_did_not_start_is_out_with_its_cause():
    points = [*sweep("bf16", 10), *sweep("int8", 15)]
    decision = decide(make_material(points=points, failures=[failure("int4")]))
    assert decision.variant == "int8"
    assert candidate(decision, "int4").qualifies is False
    assert [g.gate for g in candidate(decision, "int4").gates] == ["starts"]
    assert "oom" in decision.rejected["int4"][0]
    assert "use less memory" in decision.rejected["int4"][0]


def test_a_checkpoint_that_is_not_what_it_says_is_disqualified_however_fast():
    verdicts = {
        "bf16": verdict("bf16", real="bf16"),
        "int8": verdict("int8"),
        "int4": verdict("int4", "not what the checkpoint says", real="bf16"),
    }
    decision = decide(make_material(verdicts=verdicts))
    assert decision.variant == "int8"
    assert gate(decision, "int4", "kernel").passed is False
    assert candidate(decision, "int4").score.value is None
    assert "kernel" in decision.rejected["int4"][0]


@pytest.mark.parametrize(
    ("policy", "winner"), [("warn", "int4"), ("fail", "int8"), ("skip", "int8")]
)
def test_a_degraded_kernel_counts_as_the_study_says(policy, winner):
    verdicts = {n: verdict(n) for n in ("bf16", "int8")}
    verdicts["int4"] = verdict("int4", "degraded", real="w8a16-fp8")
    decision = decide(make_material(make_study(on_degraded=policy), verdicts=verdicts))
    assert decision.variant == winner
    assert any("int4 ran degraded, as w8a16-fp8" in line for line in decision.limitations)
    if policy == "warn":
        assert "ran as w8a16-fp8" in decision.headline


def test_a_variant_skipped_for_its_kernel_fails_that_gate_not_the_start():
    verdicts = {n: verdict(n) for n in ("bf16", "int8")}
    verdicts["int4"] = verdict("int4", "degraded", real="w8a16-fp8")
    material = make_material(
        make_study(on_degraded="skip"),
        verdicts=verdicts,
        points=[*sweep("bf16", 10), *sweep("int8", 15)],
        failures=[failure("int4", kind="degraded")],
    )
    decision = decide(material)
    assert [(g.gate, g.passed) for g in candidate(decision, "int4").gates] == [
        ("starts", True),
        ("kernel", False),
    ]
    assert not any(f.rule == "server did not run" for f in diagnose(material))


def test_an_unknown_kernel_is_a_condition_of_the_recommendation_not_a_veto():
    verdicts = {n: verdict(n, "unknown", real="unknown") for n in ("bf16", "int8", "int4")}
    decision = decide(make_material(verdicts=verdicts))
    assert decision.variant == "int4"
    assert "not proven" in decision.headline
    assert gate(decision, "int4", "kernel").passed is None


def test_undecided_quality_keeps_the_baseline_and_says_how_many_items_are_missing():
    views = [quality("bf16", "baseline"), quality("int8", "undecided", lost=1)]
    points = [*sweep("bf16", 10), *sweep("int8", 15)]
    study = make_study({"bf16": {}, "int8": {}})
    decision = decide(make_material(study, quality=views, points=points))
    assert (decision.outcome, decision.variant) == ("recommended", "bf16")
    assert decision.headline.startswith("Keep bf16")
    assert "int8 yields 1.5 times bf16's" in decision.headline
    assert "more probe items" in decision.headline
    assert candidate(decision, "int8").qualifies is None


def test_worse_quality_is_out():
    views = [quality("bf16", "baseline"), quality("int8", "non-inferior"), quality("int4", "worse")]
    decision = decide(make_material(quality=views))
    assert decision.variant == "int8"
    assert "quality" in decision.rejected["int4"][0]


def test_a_study_without_quality_accepts_that_and_says_so():
    decision = decide(make_material(make_study(quality=None), quality=[]))
    assert decision.variant == "int4"
    assert "its quality holds (not measured)" in decision.headline
    assert "Quality was not measured: the study asks for none." in decision.limitations


def test_unmeasured_quality_is_undecided_where_the_study_asks_for_it():
    decision = decide(make_material(quality=[]))
    assert decision.variant == "bf16"
    assert gate(decision, "int4", "quality").passed is None


def test_the_operating_point_is_the_last_pass_below_the_first_fail():
    points = [
        *sweep("bf16", 10),
        row("int8", 1, output_throughput_tok_s=40),
        row("int8", 4, passed=False, output_throughput_tok_s=900),
        row("int8", 8, output_throughput_tok_s=1000),
    ]
    decision = decide(make_material(make_study({"bf16": {}, "int8": {}}), points=points))
    assert decision.variant == "bf16"  # 80 tok/s within the SLO against 40
    assert candidate(decision, "int8").score.value == 40
    assert "misses it at concurrency 4" in gate(decision, "int8", "slo").why


def test_nobody_is_credited_with_loads_the_other_was_not_tested_at():
    points = [*sweep("bf16", 10, (1, 4)), *sweep("int8", 9, (1, 4, 8))]
    decision = decide(make_material(make_study({"bf16": {}, "int8": {}}), points=points))
    assert decision.variant == "bf16"
    assert candidate(decision, "int8").score.value == 36


def test_none_qualifies_when_all_miss_the_slo_at_the_lowest_load():
    points = [row(v, 1, passed=False, output_throughput_tok_s=9) for v in ("bf16", "int8", "int4")]
    decision = decide(make_material(points=points))
    assert (decision.outcome, decision.variant) == ("none qualifies", None)
    assert "80 ms is above the limit 50 ms" in decision.headline
    assert decision.rollback == []
    assert set(decision.rejected) == {"bf16", "int8", "int4"}


def test_undecided_when_nothing_could_be_judged():
    rows = [
        row(v, 1, passed=None, valid=False, invalid_reasons=["the client was the bottleneck"])
        for v in ("bf16", "int8", "int4")
    ]
    decision = decide(make_material(points=rows))
    assert (decision.outcome, decision.variant) == ("undecided", None)
    assert "bf16: not measured soundly: " in decision.headline
    assert "slo" not in decision.headline.lower()  # without a valid point it goes without saying
    assert "the client was the bottleneck" in decision.headline


def test_a_baseline_that_does_not_qualify_is_no_safe_way_back():
    points = [*sweep("int8", 15), *sweep("int4", 20)]
    decision = decide(make_material(points=points, failures=[failure("bf16")], startups={}))
    assert decision.variant == "int4"
    assert "The baseline bf16 does not qualify itself (start: " in decision.limitations[0]


def test_undecided_when_the_baseline_fails_and_the_other_lacks_evidence():
    points = [row("bf16", 1, passed=False, output_throughput_tok_s=9), *sweep("int8", 15)]
    study = make_study({"bf16": {}, "int8": {}})
    views = [quality("bf16", "baseline"), quality("int8", "undecided", lost=2)]
    decision = decide(make_material(study, points=points, quality=views))
    assert decision.outcome == "undecided"
    assert "bf16" in decision.rejected
    assert any("int8" in reason for reason in decision.reasons)


def test_an_empty_study_is_undecided_not_an_error():
    decision = decide(make_material(points=[], quality=[], verdicts={}, startups={}, host=None))
    assert decision.outcome == "undecided"
    assert decision.limitations


def test_within_the_noise_the_baseline_wins():
    points = [*sweep("bf16", 10), *sweep("int8", 10.5)]
    decision = decide(make_material(make_study({"bf16": {}, "int8": {}}), points=points))
    assert decision.variant == "bf16"
    assert any("7 % assumed" in reason and "simpler" in reason for reason in decision.reasons)


@pytest.mark.parametrize(
    ("sessions", "noise", "faster", "winner"),
    [
        (1, 0.005, 10.5, "bf16"),
        (1, 0.005, 10.8, "int8"),
        (1, 0.06, 10.8, "bf16"),
        (2, 0.005, 10.5, "bf16"),
        (3, 0.005, 10.5, "int8"),
        (3, 0.05, 10.5, "bf16"),
    ],
)
def test_noise_and_servers_set_the_tie(sessions, noise, faster, winner):
    """Calm repeats on one server say nothing of how far two equal servers are apart."""
    points = [*sweep("bf16", 10, sessions=3), *sweep("int8", faster, sessions=sessions)]
    floor = {"output_throughput_tok_s": Value(value=noise)}
    study = make_study({"bf16": {}, "int8": {}})
    # Every session was run; one without a sound run at a level does not stand behind its row.
    load = LoadResult(points=[], model="m", origin_unix_s=0)
    loads = {(name, "chat"): [load] * 3 for name in study.variants}
    decision = decide(make_material(study, points=points, noise_floor=floor, loads=loads))
    assert decision.variant == winner


def test_comparisons_of_repeats_overrule_the_tolerance():
    study = make_study({"bf16": {}, "int8": {}})
    points = [*sweep("bf16", 10), *sweep("int8", 10.5)]
    for outcome, winner in (("better", "int8"), ("tie", "bf16"), ("undecided", "bf16")):
        found = [comparison("int8", 8, outcome, 1.05, low=0.99, high=1.1)]
        decision = decide(make_material(study, points=points, comparisons=found))
        assert decision.variant == winner, outcome


def test_a_single_run_far_beyond_any_noise_is_still_a_difference():
    study = make_study({"bf16": {}, "int8": {}})
    points = [*sweep("bf16", 10, runs=1), *sweep("int8", 16, runs=1)]
    found = [comparison("int8", 8, "undecided", 1.6)]
    decision = decide(make_material(study, points=points, comparisons=found))
    assert decision.variant == "int8"
    assert any("run once" in line for line in decision.limitations)


def test_ties_go_to_simplicity_then_to_fewer_gpus():
    study = make_study(
        {
            "bf16": {},
            "tp2": {"tensor_parallel_size": 2},
            "odd": {"simplicity": 3},
            "plain": {},
        }
    )
    points = [*sweep("bf16", 10), *sweep("tp2", 40), *sweep("odd", 20.2), *sweep("plain", 20)]
    decision = decide(make_material(study, points=points))
    assert decision.variant == "plain"
    assert "output tokens/s per GPU" in decision.ranked_by


def test_a_price_ranks_by_cost():
    study = make_study({"bf16": {}, "int8": {}}, price={"usd_per_hour": 2})
    points = [
        *sweep("bf16", 10, usd_per_million_output_tokens=5.0),
        *sweep("int8", 9, usd_per_million_output_tokens=3.0),
    ]
    decision = decide(make_material(study, points=points))
    assert decision.variant == "int8"
    assert decision.ranked_by.startswith("lowest USD per million output tokens")
    assert gate(decision, "int8", "cost").passed is True
    assert "costs 1.67 times" in decision.rejected["bf16"][0]


def test_all_workloads_must_keep_the_slo():
    study = make_study(
        {"bf16": {}, "int8": {}},
        workloads={
            name: {"dataset": {"sharegpt": "c.json"}, "concurrency": [1]}
            for name in ("chat", "long")
        },
    )
    rows = [row(v, 1, output_throughput_tok_s=s) for v, s in (("bf16", 1), ("int8", 2))]
    rows.append(row("bf16", 1, workload="long", output_throughput_tok_s=1))
    rows.append(row("int8", 1, workload="long", output_throughput_tok_s=2, passed=False))
    decision = decide(make_material(study, points=rows))
    assert decision.variant == "bf16"
    assert "long: misses the SLO" in gate(decision, "int8", "slo").why


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({}, []),
        ({"tokenizer_fingerprint": None, "chat_template_fingerprint": None}, []),
        ({"tokenizer_fingerprint": "other"}, ["another tokenizer than bf16"]),
        ({"chat_template_fingerprint": "other"}, ["another chat template than bf16"]),
    ],
)
def test_another_tokenizer_or_chat_template_is_a_limitation(own, said):
    same = {"tokenizer_fingerprint": "a", "chat_template_fingerprint": "b"}
    manifests = {
        name: make_manifest(name).model_copy(update={**same, **(own if name == "int8" else {})})
        for name in ("bf16", "int8")
    }
    material = Material(study=make_study(), manifests=manifests)
    found = [line for line in limitations(material, None, Ranking(None)) if " than bf16" in line]
    assert [line.split(" has ")[1].split(":")[0] for line in found] == said
    assert all(line.startswith("int8 has ") for line in found)


def test_limitations_name_what_weakens_the_answer():
    points = [
        row(
            "bf16",
            8,
            runs=1,
            sent=20,
            completed=20,
            output_throughput_tok_s=10,
            ttft_p99_ms=Value(missing="too few: n=20, p99 needs 662"),
        ),
    ]
    decision = decide(make_material(make_study({"bf16": {}}), points=points, host=host(gpu=False)))
    text = " ".join(decision.limitations)
    for part in ("CPU", "run once", "per stream", "ttft_p99_ms", "limit of bf16 was not found"):
        assert part in text, part


def test_limitations_name_whom_they_concern():
    short = "short steady state: {} s, wanted 10.0 s (in 1 of 3 runs)"
    cut = "cut short: 9 of 80 requests were sent in the 12 s of point_time_limit_s"
    slow = {"runs": 1, "sent": 9, "completed": 9, "warnings": [cut]}
    points = [
        row(
            "bf16",
            8,
            sent=240,
            output_throughput_tok_s=10,
            warnings=[short.format(s) for s in (5.5, 5.6, 5.4)],
        ),
        row("fp8", 4, output_throughput_tok_s=1, passed=False, **slow | {"warnings": []}),
        row("fp8", 8, output_throughput_tok_s=1, passed=False, **slow),
    ]
    study = make_study({"bf16": {}, "fp8": {}})
    found = decide(make_material(study, points=points)).limitations
    assert "bf16 on chat, concurrency 8: short steady state: 5.4 to 5.6 s, wanted 10.0 s" in found
    assert sum("short steady state" in line for line in found) == 1
    (few,) = [line for line in found if "per stream" in line]
    assert "fp8 at concurrency 4 and 8;" in few
    assert "bf16" not in few
    (cut_line,) = [line for line in found if "point_time_limit_s" in line]
    assert "cut fp8 short on chat (9 of 80 requests at concurrency 8" in cut_line


@pytest.mark.parametrize(
    ("remarks", "expected"),
    [
        (["a: 1 s", "a: 2 s"], ["a: 1 s", "a: 2 s"]),
        (["a: 1 s (in 1 of 3 runs)", "b (in 1 of 3 runs)"], None),
        (
            ["a: 10 s (in 1 of 3 runs)", "a: 9 s (in 1 of 3 runs)"],
            ["a: 9 to 10 s (in 2 of 3 runs)"],
        ),
        (["a: 1,000 s (in 1 of 2 runs)", "a: 9 s (in 1 of 2 runs)"], ["a: 9 to 1,000 s"]),
    ],
)
def test_remarks_of_runs_that_differ_in_numbers_are_one(remarks, expected):
    assert fold_remarks(remarks) == (expected or remarks)


def test_the_decision_never_recommends_what_a_gate_forbids():
    kinds = ["as expected", "degraded", "not what the checkpoint says", "unknown"]
    outcomes = ["non-inferior", "worse", "undecided", "not measured"]
    for kind, outcome, passed in itertools.product(kinds, outcomes, [True, False, None]):
        material = make_material(
            make_study({"bf16": {}, "int8": {}}),
            verdicts={"bf16": verdict("bf16"), "int8": verdict("int8", kind)},
            quality=[quality("bf16", "baseline"), quality("int8", outcome, lost=2)],
            points=[
                *sweep("bf16", 10),
                row("int8", 1, passed=passed, output_throughput_tok_s=500),
            ],
        )
        decision = decide(material)
        allowed = kind != "not what the checkpoint says" and outcome == "non-inferior" and passed
        assert (decision.variant == "int8") is bool(allowed), (kind, outcome, passed)
        assert decision.reasons


@pytest.mark.parametrize(
    ("items", "lost", "gained", "margin", "provable"),
    [
        (40, 0, 0, 0.05, True),
        (40, 1, 0, 0.05, True),
        (40, 3, 0, 0.05, False),
        (0, 0, 0, 0.05, False),
    ],
)
def test_items_for_proof_really_prove_it(items, lost, gained, margin, provable):
    needed = items_for_proof(Paired(items, lost, gained), margin)
    assert (needed is not None) is provable
    if needed is not None:

        def grown(n):
            return Paired(n, round(lost * n / items), round(gained * n / items))

        assert difference_interval(grown(needed))[0] > -margin
        assert difference_interval(grown(needed - 1))[0] <= -margin


def test_with_no_flips_the_need_agrees_with_the_quality_table():
    assert items_for_proof(Paired(40, 0, 0), 0.05) == items_needed(0.05)


NAMES = ("bf16", "int8", "int4")
OUTCOMES = ("non-inferior", "worse", "undecided", "not measured")
KINDS = ("as expected", "degraded", "not what the checkpoint says", "unknown")


@st.composite
def materials(draw):
    """Draw a study's results, with holes anywhere."""
    points, verdicts, views, failures = [], {}, [], []
    for name in NAMES:
        for level in (1, 4, 8):
            if draw(st.booleans()):
                speed = draw(st.none() | st.floats(0.1, 1e4))
                metrics = {} if speed is None else {"output_throughput_tok_s": speed}
                passed = draw(st.sampled_from([True, False, None]))
                points.append(row(name, level, passed=passed, **metrics))
        if draw(st.booleans()):
            verdicts[name] = verdict(name, draw(st.sampled_from(KINDS)))
        if draw(st.booleans()):
            outcome = "baseline" if name == "bf16" else draw(st.sampled_from(OUTCOMES))
            views.append(quality(name, outcome, lost=draw(st.integers(0, 4))))
        if draw(st.integers(0, 4)) == 0:
            failures.append(failure(name))
    return make_material(
        points=points, verdicts=verdicts, quality=views, failures=failures, startups={}
    )


@settings(max_examples=150)
@given(materials())
def test_whatever_is_missing_there_is_one_sound_answer(material):
    decision = decide(material)
    qualified = [c.variant for c in decision.candidates if c.qualifies]
    assert len(decision.candidates) == len(NAMES)
    assert (decision.outcome == "recommended") is bool(qualified)
    assert decision.headline
    if decision.outcome == "recommended":
        assert decision.variant in qualified
        assert set(decision.rejected) == set(NAMES) - {decision.variant}
        assert decision.rollback
    else:
        assert decision.variant is None
        undecided = any(c.qualifies is None for c in decision.candidates)
        assert decision.outcome == ("undecided" if undecided else "none qualifies")
    for found in decision.candidates:
        assert found.score.value is None or found.qualifies is not False
        failed = [gate for gate in found.gates if gate.passed is False]
        assert (found.qualifies is False) is bool(failed)
        assert all(gate.why for gate in found.gates)
    assert decide(material) == decision
    diagnose(material)


def test_quality_that_was_asked_in_another_way_is_undecided_and_needs_no_more_items():
    view = quality("int8", "undecided")
    axis = view.axes[0].model_copy(update={"baseline_passed": None})
    words = "It was asked in another way than the baseline (concurrency: 8 here, 1 there)"
    view = view.model_copy(update={"axes": [axis], "words": words})
    material = make_material(
        make_study({"bf16": {}, "int8": {}}),
        verdicts={"bf16": verdict("bf16"), "int8": verdict("int8")},
        quality=[quality("bf16", "baseline"), view],
        points=[*sweep("bf16", 10), *sweep("int8", 20)],
    )
    made = decide(material)
    candidate = next(c for c in made.candidates if c.variant == "int8")
    gate = next(g for g in candidate.gates if g.gate == "quality")
    assert (gate.passed, gate.why) == (None, words)
    assert made.variant != "int8"
    assert "more probe items" not in made.headline + " ".join(made.reasons)
