"""Small line charts drawn with matplotlib: one panel each, so that a phone can stack them.

A chart's colours are roles, not colours: they are drawn in stand-in colours which ``svg.py``
turns into the page's custom properties (light and dark) or into fixed ones for a file.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from scripts.lib.report.blocks import COLOURS
from scripts.lib.report.numbers import tidy

WIDTH, HEIGHT = 400, 270
LEGEND_ROW = 17
LEGEND, HEADING = "chart-legend", "chart-heading"
MARKERS = "os^DvPX*<>ph"

INK, FAINT, GRID, LIMIT, INVALID = "#010101", "#010102", "#010103", "#010104", "#010105"
PAPER = "#010106"
BAND = "#010107"
SERIES = [f"#0201{index:02d}" for index in range(COLOURS)]
"""Stand-in colours, one per role; no chart uses them for real."""

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": ["DejaVu Sans"],
    "font.size": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": FAINT,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 1,
    "text.color": INK,
    "text.parse_math": False,
    "text.usetex": False,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.major.size": 3,
    "ytick.major.size": 0,
    "lines.solid_capstyle": "round",
}


@dataclass(frozen=True)
class Mark:
    """One measured point; ``words`` is what hovering it shows."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    valid: bool = True
    words: str = ""


@dataclass(frozen=True)
class Series:
    """The points of one variant."""

    name: str
    number: int
    marks: Sequence[Mark]
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """One panel: lines over load levels. The page prints the title; a file needs it inside."""

    name: str
    x_label: str
    title: str
    y_label: str
    series: Sequence[Series]
    limit: float | None = None
    limit_words: str = ""
    reference: float | None = None


@dataclass(frozen=True)
class Strip:
    """One curve of a time line."""

    label: str
    values: Sequence[float | None]


@dataclass(frozen=True)
class TimeChart:
    """Curves over time, one below the other, with the load points as bands."""

    name: str
    t_s: Sequence[float]
    strips: Sequence[Strip]
    bands: Sequence[tuple[float, float, str]] = field(default=())


def draw(chart: Chart) -> str:
    """Return the chart as matplotlib's SVG text, its title and legend inside.

    The legend lies below ``HEIGHT`` and the title's id is ``HEADING``, so that a page, which has
    both outside of its figures, can cut them off without drawing again.
    """
    shown = [series for series in chart.series if series.marks]
    extra = LEGEND_ROW * len(shown) + 6
    with mpl.rc_context({**_STYLE, "svg.hashsalt": chart.name}):
        canvas = Canvas(figsize=(WIDTH / 72, (HEIGHT + extra) / 72), dpi=72)
        axes = _axes(canvas, left=54, right=14, top=28, bottom=44 + extra)
        _scale(axes, chart, shown)
        _lines(axes, chart)
        for series in shown:
            _series(axes, series, _offset(shown, series))
        axes.set_xlabel(chart.x_label)
        top = 1 - 14 / (HEIGHT + extra)
        heading = f"{chart.title}: {chart.y_label}"
        canvas.text(8 / WIDTH, top, heading, fontsize=12, va="center", gid=HEADING)
        _legend(canvas, shown)
        return _svg(canvas)


def draw_time(chart: TimeChart) -> str:
    """Return a time chart as matplotlib's SVG text."""
    height = 28 + 62 * len(chart.strips) + 40
    with mpl.rc_context({**_STYLE, "svg.hashsalt": chart.name}):
        canvas = Canvas(figsize=(WIDTH / 72, height / 72), dpi=72)
        for row, strip in enumerate(chart.strips):
            top = 22 + 62 * row
            axes = _axes(canvas, left=54, right=14, top=top + 16, bottom=height - top - 56)
            _strip(axes, chart, strip, last=row == len(chart.strips) - 1)
            canvas.text(8 / WIDTH, 1 - (top + 7) / height, strip.label, fontsize=10, va="center")
        _band_labels(canvas, chart, height)
        return _svg(canvas)


def _axes(canvas: Canvas, left: float, right: float, top: float, bottom: float) -> Axes:
    width, height = canvas.get_figwidth() * 72, canvas.get_figheight() * 72
    box = (left / width, bottom / height, 1 - (left + right) / width, 1 - (top + bottom) / height)
    return canvas.add_axes(box)


def _scale(axes: Axes, chart: Chart, shown: Sequence[Series]) -> None:
    xs = sorted({mark.x for series in shown for mark in series.marks})
    ys = [mark.y for series in shown for mark in series.marks]
    _scale_x(axes, xs)
    extremes = [*ys, *[mark.high for s in shown for mark in s.marks if mark.high is not None]]
    extremes += [y for y in (chart.limit, chart.reference) if y is not None and _near(y, ys)]
    positive = [y for y in ys if y > 0]
    if positive and len(positive) == len(ys) and max(ys) / min(positive) > 30:
        axes.set_yscale("log")
        axes.set_ylim(min(positive) / 1.6, max(extremes) * 1.5)
        axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 3.0), numticks=8))
        axes.yaxis.set_minor_locator(FixedLocator([]))
    else:
        axes.set_ylim(0, (max(extremes) or 1) * 1.1)
        axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: tidy(y)))


def _near(limit: float, ys: Sequence[float]) -> bool:
    """Whether a line at ``limit`` can be shown without crushing the curves."""
    return limit <= 2.5 * max(ys)


def _scale_x(axes: Axes, xs: Sequence[float]) -> None:
    if len(xs) == 1:
        axes.set_xlim(xs[0] - 1, xs[0] + 1)
    elif xs[0] > 0 and xs[-1] / xs[0] >= 8:
        axes.set_xscale("log", base=2)
        pad = (xs[-1] / xs[0]) ** 0.05
        axes.set_xlim(xs[0] / pad, xs[-1] * pad)
    else:
        pad = (xs[-1] - xs[0]) * 0.05
        axes.set_xlim(xs[0] - pad, xs[-1] + pad)
    axes.xaxis.set_major_locator(FixedLocator(_apart(axes, xs)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: tidy(x)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_minor_locator(FixedLocator([]))


def _apart(axes: Axes, xs: Sequence[float]) -> list[float]:
    """Return the levels whose labels have room, always with the last one."""
    places = {x: float(axes.transData.transform((x, 1))[0]) for x in xs}
    kept = [xs[-1]]
    for x in reversed(xs[:-1]):
        if places[kept[-1]] - places[x] >= 26:
            kept.append(x)
    return kept[::-1]


def _offset(shown: Sequence[Series], series: Series) -> float:
    """Return how far a series stands aside where all have the same single level."""
    levels = {mark.x for one in shown for mark in one.marks}
    if len(levels) > 1 or len(shown) < 2:
        return 0.0
    return 1.2 * (shown.index(series) / (len(shown) - 1) - 0.5)


def _lines(axes: Axes, chart: Chart) -> None:
    bottom, top = axes.get_ylim()
    if chart.reference is not None:
        axes.axhline(chart.reference, color=FAINT, linewidth=1, zorder=1)
    if chart.limit is not None and bottom < chart.limit < top:
        axes.axhline(chart.limit, color=LIMIT, linewidth=1.4, dashes=(2, 2), zorder=1)
        axes.text(
            0.995, chart.limit, chart.limit_words, color=LIMIT, fontsize=10, ha="right",
            va="bottom", transform=axes.get_yaxis_transform(),
        )  # fmt: skip
    elif chart.limit is not None:
        axes.text(
            0.995, 1.0, f"{chart.limit_words} lies above", color=LIMIT, fontsize=10, ha="right",
            va="bottom", transform=axes.transAxes,
        )  # fmt: skip


def _series(axes: Axes, series: Series, offset: float) -> None:
    colour = SERIES[series.number % COLOURS]
    good = [mark for mark in series.marks if mark.valid]
    axes.plot(
        [mark.x + offset for mark in good],
        [mark.y for mark in good],
        color=colour,
        linewidth=2,
        linestyle=(0, (4, 2)) if series.dashed else "-",
    )
    for index, mark in enumerate(series.marks):
        _mark(axes, series, mark, index, offset)


def _mark(axes: Axes, series: Series, mark: Mark, index: int, offset: float) -> None:
    colour = SERIES[series.number % COLOURS] if mark.valid else INVALID
    if mark.low is not None and mark.high is not None:
        axes.plot([mark.x + offset] * 2, [mark.low, mark.high], color=colour, linewidth=1.2)
    axes.plot(
        [mark.x + offset],
        [mark.y],
        color=colour,
        marker=MARKERS[series.number % len(MARKERS)],
        markersize=7,
        markerfacecolor=colour if mark.valid else PAPER,
        markeredgecolor=colour if not mark.valid else PAPER,
        markeredgewidth=1.6 if not mark.valid else 0.8,
        linestyle="none",
        gid=f"mark-{series.number}-{index}",
        zorder=3,
        clip_on=False,
    )


def _legend(canvas: Canvas, shown: Sequence[Series]) -> None:
    handles = [
        Line2D(
            [], [], color=SERIES[series.number % COLOURS], linewidth=2,
            linestyle=(0, (4, 2)) if series.dashed else "-",
            marker=MARKERS[series.number % len(MARKERS)], label=_clipped(series.name),
        )
        for series in shown
    ]  # fmt: skip
    legend = canvas.legend(
        handles=handles, loc="lower left", frameon=False, fontsize=10, handlelength=2.6,
        labelspacing=0.35, bbox_to_anchor=(0.005, 0), borderaxespad=0.2,
    )  # fmt: skip
    legend.set_gid(LEGEND)


def _clipped(name: str, room: int = 58) -> str:
    return name if len(name) <= room else f"{name[: room - 1]}…"


def _strip(axes: Axes, chart: TimeChart, strip: Strip, last: bool) -> None:
    for start, end, _ in chart.bands:
        axes.axvspan(start, end, color=BAND, linewidth=0)
    axes.plot(
        chart.t_s,
        [float("nan") if value is None else value for value in strip.values],
        color=SERIES[1],
        linewidth=1.5,
    )
    peak = max((value for value in strip.values if value is not None), default=0.0)
    axes.set_ylim(0, max(peak * 1.15, 1e-9))
    axes.set_xlim(chart.t_s[0], max(chart.t_s[-1], chart.t_s[0] + 1))
    axes.yaxis.set_major_locator(MaxNLocator(2))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: tidy(y)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: tidy(x)))
    if last:
        axes.set_xlabel("seconds since the session began")
    else:
        axes.tick_params(labelbottom=False)


def _band_labels(canvas: Canvas, chart: TimeChart, height: float) -> None:
    """Name the load points above the first strip, as far as there is room."""
    axes = canvas.axes[0]
    free = 0.0
    for start, end, words in chart.bands:
        x = float(axes.transData.transform(((start + end) / 2, 0))[0])
        if x - free >= 6 * len(words) / 2:
            canvas.text(x / WIDTH, 1 - 11 / height, words, fontsize=10, ha="center", color=FAINT)
            free = x + 6 * len(words) / 2 + 6


def _svg(canvas: Canvas) -> str:
    target = io.BytesIO()
    # Names in scripts that DejaVu Sans lacks stay text in the SVG: the reader's fonts show them.
    log = logging.getLogger("matplotlib.font_manager")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        canvas.savefig(target, format="svg", metadata={"Date": None, "Creator": None, "Type": None})
    finally:
        log.setLevel(level)
    return target.getvalue().decode()
