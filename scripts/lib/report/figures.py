"""Which figures a report shows, drawn from the points of a summary, described in numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from scripts.lib.analysis.summary import PointRow, Summary, Timeline, Value, WorkloadView
from scripts.lib.report import svg
from scripts.lib.report.blocks import Figure
from scripts.lib.report.held import latency_of, throughput_of
from scripts.lib.report.names import Names
from scripts.lib.report.numbers import metric_of, number, tidy, times, with_unit
from scripts.lib.report.plot import Chart, Mark, Series, Strip, TimeChart, draw, draw_time

MOST_TIMELINES = 24
_STATISTICS = ("p99", "p95", "p90", "p50", "mean")
_X_LABELS = {"concurrency": "concurrency", "rate": "offered requests/s"}
_STRIPS = {
    "running": ("running requests", 1.0),
    "waiting": ("waiting requests", 1.0),
    "kv_usage": ("KV cache usage, %", 100.0),
    "kv_cache_usage": ("KV cache usage, %", 100.0),
    "generation_tok_s": ("output tokens/s", 1.0),
    "preemptions_per_s": ("preemptions/s", 1.0),
    "gpu_power_w": ("GPU power, W", 1.0),
    "gpu_utilisation_percent": ("GPU utilisation, %", 1.0),
}
"""Which curves a time line shows, from top to bottom, and their factor."""


def slug(text: str) -> str:
    """Return a text as part of a file name or an id."""
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower() or "x"


def plotted_rows(summary: Summary, workload: str) -> list[PointRow]:
    """Return the rows of a workload that have a place on an axis of load levels."""
    return [row for row in summary.points if row.workload == workload and row.kind in _X_LABELS]


def load_figures(summary: Summary, names: Names, workload: WorkloadView) -> list[Figure]:
    """Return the figures of one workload; a metric nobody measured has none."""
    rows = plotted_rows(summary, workload.name)
    if not rows:
        return []
    charts = [_throughput(rows, names), _ratio(summary, rows, names, workload.name)]
    charts += [_latency(summary, rows, names, metric) for metric in ("tpot", "ttft")]
    stem = slug(workload.name)
    return [
        _figure(chart, f"{stem}-{chart.name}", title, about)
        for chart, title, about in charts
        if any(series.marks for series in chart.series)
    ]


def _figure(chart: Chart, name: str, title: str, about: str) -> Figure:
    chart = Chart(**{**chart.__dict__, "name": name})
    tips = {
        f"mark-{series.number}-{index}": mark.words
        for series in chart.series
        for index, mark in enumerate(series.marks)
    }
    description = f"{about} {_description(chart)}"
    drawn = svg.render(lambda: draw(chart))
    return Figure(
        name,
        title,
        description,
        svg.inline(drawn, f"fig-{name}", title, description, tips, heading=chart.y_label),
        svg.standalone(drawn, name, title, description, tips),
    )


def _description(chart: Chart) -> str:
    sentences = [
        f"{series.name}: "
        + ", ".join(
            f"{number(mark.y)} at {tidy(mark.x)}{'' if mark.valid else ' (invalid)'}"
            for mark in series.marks
        )
        + "."
        for series in chart.series
        if series.marks
    ]
    if chart.limit is not None:
        sentences.append(f"The limit is {number(chart.limit)}.")
    return " ".join(sentences)


def _series(
    rows: Sequence[PointRow], names: Names, key: str, unit: str
) -> tuple[list[Series], str]:
    """Return one series per variant for a metric, and the x axis' label."""
    found = []
    for variant in names.order:
        tag = names.tag(variant)
        marks = [
            _mark(row, row.metrics[key], tag.text, unit)
            for row in sorted(rows, key=lambda row: row.level)
            if row.variant == variant and key in row.metrics and row.metrics[key].value is not None
        ]
        found.append(Series(tag.text, tag.series, marks, tag.tone in ("warn", "bad", "muted")))
    return found, _X_LABELS[rows[0].kind]


def _mark(row: PointRow, value: Value, name: str, unit: str) -> Mark:
    assert value.value is not None
    words = f"{name}: {with_unit(value.value, unit)} at {_X_LABELS[row.kind]} {tidy(row.level)}"
    if not row.valid:
        words += " (invalid)"
    return Mark(row.level, value.value, value.low, value.high, row.valid, words)


def _throughput(rows: Sequence[PointRow], names: Names) -> tuple[Chart, str, str]:
    metric = metric_of(key := throughput_of(rows))
    series, x_label = _series(rows, names, key, metric.unit)
    unit = f"{metric.unit}, higher is better"
    chart = Chart("throughput", x_label, metric.title, unit, series)
    return chart, f"{metric.title} by {x_label}", f"{metric.title} in {metric.unit}."


def _ratio(
    summary: Summary, rows: Sequence[PointRow], names: Names, workload: str
) -> tuple[Chart, str, str]:
    key = throughput_of(rows)
    intervals = {
        (found.variant, found.level): (found.low, found.high)
        for found in summary.comparisons
        if found.workload == workload and found.metric == key
    }
    series = []
    for variant in names.order:
        tag = names.tag(variant)
        marks = []
        for row in sorted(rows, key=lambda row: row.level):
            value = row.metrics.get(key)
            if row.variant != variant or value is None or value.ratio_to_baseline is None:
                continue
            low, high = intervals.get((variant, row.level), (None, None))
            words = f"{tag.text}: {times(value.ratio_to_baseline)} at {tidy(row.level)}"
            marks.append(Mark(row.level, value.ratio_to_baseline, low, high, row.valid, words))
        if variant != names.baseline:
            dashed = tag.tone in ("warn", "bad", "muted")
            series.append(Series(tag.text, tag.series, marks, dashed))
    x_label = _X_LABELS[rows[0].kind]
    chart = Chart(
        "ratio", x_label, "Throughput", "multiple of the baseline's", series,
        reference=1.0,
    )  # fmt: skip
    about = f"{metric_of(key).title} divided by the baseline's at the same load."
    return chart, f"Throughput against the baseline by {x_label}", about


def _latency(
    summary: Summary, rows: Sequence[PointRow], names: Names, metric: str
) -> tuple[Chart, str, str]:
    statistic, limit = latency_statistic(summary, rows, metric)
    series, x_label = _series(rows, names, f"{metric}_{statistic}_ms", "ms")
    label = f"{metric.upper()} {statistic}"
    chart = Chart(
        metric, x_label, label, "ms, lower is better", series,
        limit=limit, limit_words=f"SLO {number(limit)} ms" if limit is not None else "",
    )  # fmt: skip
    return chart, f"{label} by {x_label}", f"{label} in milliseconds."


def latency_statistic(
    summary: Summary, rows: Sequence[PointRow], metric: str
) -> tuple[str, float | None]:
    """Return which statistic of a latency to draw, with its limit.

    The one that the SLO limits, if at least half of the points have it; else the mean (where
    nobody has it, what there is), without a limit: a limit on another statistic would judge
    nothing.
    """
    limits = {limit.key: limit.limit for limit in summary.slo}
    for statistic in _STATISTICS:
        key = f"{metric}_{statistic}_ms"
        have = sum(key in row.metrics and row.metrics[key].value is not None for row in rows)
        if key in limits and 2 * have >= len(rows):
            return statistic, limits[key]
    return latency_of(rows, metric).split("_")[1], None


def timeline_figures(summary: Summary, names: Names) -> list[tuple[Timeline, Figure]]:
    """Return a small figure for each variant's first session on each workload."""
    found = []
    for timeline in summary.timelines[:MOST_TIMELINES]:
        if timeline.t_s and timeline.series:
            found.append((timeline, _timeline(timeline, names)))
    return found


def _timeline(timeline: Timeline, names: Names) -> Figure:
    tag = names.tag(timeline.variant)
    strips = _strips(timeline)
    bands = [
        (point["start_s"], point["end_s"], tidy(point.get("level", 0.0)))
        for point in timeline.points
        if "start_s" in point and "end_s" in point
    ]
    name = slug(f"time-{timeline.workload}-{timeline.variant}-{timeline.session}")
    title = f"Session {timeline.session} of {tag.text} on {timeline.workload} over time"
    shown = [strip for strip in strips if any(strip.values)] or strips[:1]
    peaks = ", ".join(f"{strip.label}: at most {_peak(strip)}" for strip in strips)
    chart = TimeChart(name, timeline.t_s, shown, bands)
    description = (
        f"{peaks}, within {number(timeline.t_s[-1] - timeline.t_s[0])} seconds. Shaded bands are "
        f"load points: {', '.join(words for _, _, words in bands) or 'none'}."
    )
    drawn = svg.render(lambda: draw_time(chart))
    return Figure(
        name,
        title,
        description,
        svg.inline(drawn, f"fig-{name}", title, description, {}),
        svg.standalone(drawn, name, title, description, {}),
    )


def _strips(timeline: Timeline) -> list[Strip]:
    """Return the curves that matter; those of other names only if none of ours is there."""
    keys = [key for key in _STRIPS if key in timeline.series] or list(timeline.series)[:4]
    found = []
    for key in keys:
        label, scale = _STRIPS.get(key, (metric_of(key).title, 1.0))
        values = timeline.series[key]
        found.append(Strip(label, [None if one is None else scale * one for one in values]))
    return found


def _peak(strip: Strip) -> str:
    values = [value for value in strip.values if value is not None]
    return number(max(values)) if values else "nothing: it was not measured"
