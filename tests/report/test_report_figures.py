"""Figures: named, described in numbers, unique on a page, the same bytes each time."""

from __future__ import annotations

import copy
import re
from xml.etree import ElementTree

import pytest

from scripts.lib.analysis.summary import Summary
from scripts.lib.report.figures import (
    MOST_TIMELINES,
    latency_statistic,
    load_figures,
    timeline_figures,
)
from scripts.lib.report.names import Names
from tests.report.sample_summary import sample, sample_summary

SVG = "{http://www.w3.org/2000/svg}"


def figures(summary: Summary):
    return load_figures(summary, Names(summary), summary.workloads[0])


@pytest.fixture(scope="module")
def drawn():
    return {figure.name: figure for figure in figures(sample_summary(timelines=[]))}


def changed(change) -> Summary:
    data = copy.deepcopy(sample()) | {"timelines": []}
    change(data)
    return Summary.model_validate(data)


def labels(svg: str) -> list[str]:
    return [one.text or "" for one in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_there_is_one_for_each_question(drawn):
    assert list(drawn) == ["chat-throughput", "chat-ratio", "chat-tpot", "chat-ttft"]


def test_each_is_named_and_says_its_numbers(drawn):
    for figure in drawn.values():
        root = ElementTree.fromstring(figure.inline_svg)
        assert root.get("role") == "img"
        assert root.get("aria-label") == figure.title
        assert root.find(f"{SVG}title").text == figure.title
        described = root.find(f"{SVG}desc")
        assert described.get("id") == root.get("aria-describedby")
    about = drawn["chat-throughput"].description
    assert "int8-w8a8 · runs as W8A8 INT8: 35.9 at 1, 97 at 4, 132 at 8." in about
    assert "69.3 at 8 (invalid)" in about
    assert "1.69 at 8" in drawn["chat-ratio"].description


def test_every_point_can_be_asked_for_its_value(drawn):
    root = ElementTree.fromstring(drawn["chat-tpot"].inline_svg)
    tips = [one.text for one in root.iter(f"{SVG}title")]
    assert "bf16 · runs as BF16: 45.1 ms at concurrency 1" in tips
    assert len(tips) == 1 + 4 * 3


def test_ids_do_not_meet_on_a_page(drawn):
    ids = [i for figure in drawn.values() for i in re.findall(r'\bid="([^"]+)"', figure.inline_svg)]
    assert len(ids) == len(set(ids))
    for figure in drawn.values():
        targets = re.findall(r'(?:href="|url\()#([^")]+)', figure.inline_svg)
        assert targets
        assert set(targets) <= set(ids)


def test_the_page_decides_colours_and_fonts(drawn):
    for figure in drawn.values():
        assert not re.findall(r"#[0-9a-fA-F]{6}\b", figure.inline_svg)
        assert "<style" not in figure.inline_svg
        assert "DejaVu" not in figure.inline_svg + figure.file_svg
        assert "var(" not in figure.file_svg
        assert not re.findall(r"#0[12]01\d\d", figure.file_svg)


def test_text_is_text_and_a_file_has_its_legend(drawn):
    figure = drawn["chat-throughput"]
    assert "concurrency" in labels(figure.inline_svg)
    assert "bf16 · runs as BF16" not in labels(figure.inline_svg)
    assert "fp8-dynamic · runs as FP8 emulated (degraded)" in labels(figure.file_svg)


def test_the_same_summary_gives_the_same_bytes(drawn):
    again = {figure.name: figure for figure in figures(sample_summary(timelines=[]))}
    assert again == drawn
    assert "20" + "26-" not in drawn["chat-tpot"].file_svg


def test_the_limit_is_drawn_only_over_the_statistic_it_limits():
    summary = sample_summary(timelines=[])
    rows = summary.points
    # p95 is withheld at two of three loads: the mean is shown, without a limit of another kind.
    assert latency_statistic(summary, rows, "tpot") == ("mean", None)

    def known(data):
        for row in data["points"]:
            row["metrics"]["tpot_p95_ms"] = row["metrics"]["tpot_mean_ms"]

    summary = changed(known)
    assert latency_statistic(summary, summary.points, "tpot") == ("p95", 200.0)
    figure = figures(summary)[2]
    assert figure.title == "TPOT p95 by concurrency"
    assert "SLO 200 ms" in labels(figure.inline_svg)
    assert "The limit is 200." in figure.description


def test_a_limit_far_above_is_said_and_does_not_crush_the_curves():
    def far(data):
        for row in data["points"]:
            row["metrics"]["tpot_p95_ms"] = row["metrics"]["tpot_mean_ms"]
        data["slo"][2]["limit"] = 90000.0

    texts = labels(figures(changed(far))[2].inline_svg)
    assert "SLO 90,000 ms lies above" in texts
    assert "200" in texts


def levels(data, values):
    base = [row for row in data["points"] if row["level"] == 4]
    data["points"] = [{**copy.deepcopy(row), "level": level} for row in base for level in values]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ((8.0,), ["8"]),
        ((1.0, 2.0), ["1", "2"]),
        ((1.0, 10.0, 100.0, 300.0), ["1", "10", "100", "300"]),
        ((28.0, 30.0, 32.0, 34.0, 36.0), ["28", "36"]),
        ((0.5, 1.5, 8.0), ["0.5", "1.5", "8"]),
    ],
)
def test_axes_fit_the_levels(values, shown):
    summary = changed(lambda data: levels(data, values))
    texts = labels(figures(summary)[0].inline_svg)
    assert set(shown) <= set(texts)


def test_a_wide_range_gets_a_log_axis():
    def wide(data):
        for row in data["points"]:
            row["metrics"]["ttft_mean_ms"]["value"] *= row["level"] ** 2
            row["metrics"]["ttft_mean_ms"] |= {"low": None, "high": None}

    texts = labels(figures(changed(wide))[3].inline_svg)
    assert {"100", "1,000", "10,000"} <= set(texts)


def test_nothing_measured_gives_no_figure():
    def lose(data):
        for row in data["points"]:
            row["metrics"] = {key: {"missing": "lost"} for key in row["metrics"]}

    assert figures(changed(lose)) == []


NAME = "<b>이름</b> $x$ & " + "a" * 300 + " العربية 🚀"


def test_any_name_is_drawn_as_it_is(recwarn):
    def rename(data):
        data["variants"][1]["label"] = NAME

    figure = figures(changed(rename))[0]
    root = ElementTree.fromstring(figure.inline_svg)
    assert f"{NAME} · runs as W8A8 INT8" in root.find(f"{SVG}desc").text
    assert any(text.startswith("<b>이름</b> $x$ & aaa") for text in labels(figure.file_svg))
    assert not recwarn.list


def test_series_can_be_told_apart_without_colour():
    def many(data):
        base = [one for one in data["points"] if one["variant"] == "int8-w8a8"]
        view = data["variants"][1]
        for index in range(20):
            name = f"v{index}"
            data["variants"].append({**copy.deepcopy(view), "name": name, "label": name})
            data["points"] += [{**copy.deepcopy(row), "variant": name} for row in base]

    summary = changed(many)
    names = Names(summary)
    looks = {(names.tag(v.name).series % 8, names.tag(v.name).symbol) for v in summary.variants}
    assert len(looks) == len(summary.variants) - 1 or len(looks) == len(summary.variants)
    assert len(looks) >= 24


def test_time_lines_show_curves_and_load_points():
    summary = sample_summary()
    drawn = timeline_figures(summary, Names(summary))
    assert len(drawn) == 4
    figure = drawn[0][1]
    assert figure.name == "time-chat-bf16-1"
    assert "running requests: at most 8" in figure.description
    assert "KV cache usage, %: at most 14.4" in figure.description
    # A curve that never leaves zero takes no room, but is told.
    assert "waiting requests" not in labels(figure.inline_svg)
    assert "waiting requests: at most 0" in figure.description
    assert {"1", "4", "8"} <= set(labels(figure.inline_svg))


def test_a_study_with_very_many_sessions_shows_a_page_full():
    timeline = sample()["timelines"][0] | {"t_s": [0.0, 1.0], "points": []}
    timeline["series"] = {"running": [1.0, 2.0]}
    sessions = MOST_TIMELINES + 3
    summary = sample_summary(timelines=[{**timeline, "session": n} for n in range(sessions)])
    assert len(timeline_figures(summary, Names(summary))) == MOST_TIMELINES
