"""What a report says about numbers that prove little: few requests, cut points, noise."""

import pytest

from scripts.lib.analysis.decision.gates import GATES as JUDGED_GATES
from scripts.lib.analysis.points.remarks import cut_words, samples_of_verdict, thin_samples
from scripts.lib.analysis.summary import Summary, Value
from scripts.lib.report.numbers import interval
from scripts.lib.report.render import render_markdown
from scripts.lib.report.verdicts import GATES
from scripts.lib.report.view import build_report
from tests.report.sample_summary import sample

JUDGED = "{} is judged from {} samples; p95 needs 130 to be trusted"
CUT = "cut short: {} of 80 requests were sent in the 12 s of point_time_limit_s"


def report_with(changed):
    """Return the Markdown of the sample whose point bf16 at concurrency 8 was changed."""
    data = sample()
    point = next(p for p in data["points"] if p["variant"] == "bf16" and p["level"] == 8)
    point |= changed
    return render_markdown(build_report(Summary.model_validate(data)))


def row_with(**changed):
    data = sample()
    point = next(p for p in data["points"] if p["variant"] == "bf16" and p["level"] == 8)
    point |= {"warnings": [], "slo_failed": [], "slo_pass": True, **changed}
    summary = Summary.model_validate(data)
    return next(p for p in summary.points if p.variant == "bf16" and p.level == 8)


def test_a_limit_judged_from_too_few_requests_is_not_called_unjudged():
    text = report_with(
        {
            "slo_pass": True,
            "slo_failed": [],
            "warnings": [JUDGED.format("tpot_p95_ms", 24), JUDGED.format("ttft_p95_ms", 40)],
        }
    )
    assert "Limits judged from too few requests" in text
    assert "such a pass or miss is no proof" in text
    assert "the fewest: 24 of the 130 needed" in text
    assert "**SLO ✓, n=24**" in text
    assert "**passes, n=24**" in text


def test_only_a_limit_without_any_value_could_not_be_judged():
    missing = {"metrics": {"ttft_p95_ms": {"missing": "not recorded"}}, "slo_pass": None}
    text = report_with(missing)
    callout = text.partition("Limits that could not be judged")[2].partition("\n## ")[0]
    assert "ttft_p95_ms at 1 of " in callout
    assert "(e.g. not recorded)" in callout
    assert "too few" not in callout


@pytest.mark.parametrize(
    ("passed", "failed", "expected"),
    [
        (True, [], 24),
        (False, ["tpot_p95_ms: 300 ms is above the limit 200 ms"], 24),
        (False, ["ttft_p95_ms: 3,000 ms is above the limit 2000 ms"], 40),
        (False, ["tpot_p95_ms: 300 ms is above", "oom: 1 is above the limit 0"], None),
        (None, [], None),
    ],
)
def test_the_samples_of_a_verdict_are_those_of_the_limits_it_rests_on(passed, failed, expected):
    row = row_with(
        slo_pass=passed,
        slo_failed=failed,
        warnings=[JUDGED.format("tpot_p95_ms", 24), JUDGED.format("ttft_p95_ms", 40)],
    )
    assert samples_of_verdict(row) == expected


def test_a_withheld_percentile_counts_without_a_remark():
    metrics = {"ttft_p95_ms": {"missing": "too few: n=120, p95 needs 130", "n": 120}}
    assert thin_samples(row_with(metrics=metrics), ["ttft_p95_ms"]) == {"ttft_p95_ms": 120}
    assert thin_samples(row_with(metrics=metrics), ["tpot_p95_ms"]) == {}


def test_a_cut_point_is_marked_beside_its_numbers():
    text = report_with({"warnings": [CUT.format(9)]})
    answer, _, rest = text.partition("## Environment")
    assert answer.count("cut: 9 of 80 requests") == 2  # throughput and TPOT at a glance
    assert rest.count("cut: 9 of 80 requests") >= 3
    assert cut_words(row_with(warnings=[f"{CUT.format(n)} (in 1 of 3 runs)" for n in (2, 1)])) == (
        "cut: 1 to 2 of 80 requests"
    )
    assert cut_words(row_with()) is None


def test_the_report_claims_no_more_than_it_knows():
    text = report_with({})
    assert "Set in the study file." in text
    assert "before anything was measured" not in text
    assert "Load measured until" in text
    assert "Made at" not in text
    assert "A smaller difference is none" not in text


def test_the_method_says_how_better_and_worse_were_found():
    data = sample()
    data["files"] |= {"tables/comparisons.csv": "0" * 64, "tables/points.csv": "0" * 64}
    text = render_markdown(build_report(Summary.model_validate(data)))
    words = text.partition("### Formulas")[2].partition("### Not measured")[0]
    for part in ("logarithms of the repeats", "Holm's correction", "7 %", "3 sessions a side"):
        assert part in words, part
    links = [f"[tables/{name}.csv](../tables/{name}.csv)" for name in ("comparisons", "points")]
    assert ", ".join(links) in words


def test_gates_stand_in_the_order_in_which_they_are_judged():
    head = [gate.__name__ for gate in JUDGED_GATES]
    assert list(GATES) == head


def test_a_cost_without_a_price_is_not_left_unjudged():
    data = sample()
    data["price_usd_per_hour"] = None
    first = data["decision"]["candidates"][0]
    first["gates"] = [
        {"gate": "cost", "passed": None, "why": "the study names no price", "source": ""}
    ]
    text = render_markdown(build_report(Summary.model_validate(data)))
    assert "**no price**" in text
    data["price_usd_per_hour"] = 2.0
    text = render_markdown(build_report(Summary.model_validate(data)))
    assert "**no price**" not in text


@pytest.mark.parametrize(
    ("value", "low", "high", "scale", "expected"),
    [
        (0.2, 0.2, 0.2 + 1e-9, 100, None),
        (0.01, -0.0005, 0.03, 100, "0–3"),
        (0.99, 0.97, 1.02, 100, "97–100"),
        (1.2, 1.1, 1.3, 100, "110–120"),
        (7.9, 7.9, 7.9000001, 1, None),
        (7.9, -1.5, 17.25, 1, "−1.50–17.2"),
    ],
)
def test_an_interval_is_possible_and_has_two_ends(value, low, high, scale, expected):
    assert interval(Value(value=value, low=low, high=high, n=3), scale) == expected
