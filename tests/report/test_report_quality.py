"""The quality part: how it was asked, what was cut off, and why each answer was graded so."""

from __future__ import annotations

import copy

from sample_summary import sample

from scripts.lib.analysis.summary import Summary
from scripts.lib.report.render import render_html, render_markdown
from scripts.lib.report.view import build_report

ASKED = {"temperature": 0, "seed": 42, "concurrency": 16}


def told(asked=ASKED, cut=5) -> dict:
    data = copy.deepcopy(sample()) | {"timelines": []}
    for view in data["quality"]:
        view["asked"] = asked
        for axis in view["axes"]:
            axis["cut"] = cut
        for example in view["examples"]:
            example |= {"baseline_reason": "found 'x'", "variant_reason": "a <b> is missing"}
    return data


def both(data: dict) -> list[str]:
    report = build_report(Summary.model_validate(data))
    return [render_html(report), render_markdown(report)]


def test_quality_says_how_it_was_asked_and_what_was_cut():
    for text in both(told()):
        assert "The questions were asked at temperature 0, seed 42, 16 at a time." in text
        assert "the composition of a batch can change answers" in text
        assert "Cut off" in text
        assert "20 of 32" in text
        assert "5 cut off" in text


def test_an_example_says_why_it_was_graded_so():
    html, markdown = both(told())
    assert "Grade: found &#39;x&#39;" in html
    assert "Grade: a &lt;b&gt; is missing" in html
    assert "Grade: found " in markdown
    assert "<b>" not in markdown


def test_one_at_a_time_warns_of_no_batch():
    text = both(told({"temperature": 0, "seed": 42, "concurrency": 1}))[1]
    assert "temperature 0, seed 42, 1 at a time" in text
    assert "composition of a batch" not in text


def test_variants_asked_in_different_ways_are_told_apart():
    data = told()
    data["quality"][2]["asked"] = ASKED | {"seed": 7}
    text = both(data)[1]
    assert "seed 42, 16 at a time (" in text
    assert "; at temperature 0, seed 7, 16 at a time (" in text


def test_an_older_summary_claims_nothing_of_this():
    for text in both(copy.deepcopy(sample()) | {"timelines": []}):
        assert "questions were asked at" not in text
        assert "Cut off" not in text
        assert "Grade:" not in text
