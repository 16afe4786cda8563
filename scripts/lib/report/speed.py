"""Results, second part: speed by load, SLO by load, and every metric of every point."""

from __future__ import annotations

from collections.abc import Sequence

from scripts.lib.analysis.points.remarks import cut_words
from scripts.lib.analysis.summary import Boundary, Comparison, PointRow, Summary, Value
from scripts.lib.analysis.thresholds import ASSUMED_NOISE
from scripts.lib.analysis.wording import reach_words
from scripts.lib.report.blocks import (
    Block,
    Bullets,
    Cell,
    Chip,
    Column,
    Details,
    Figures,
    Heading,
    Table,
    Text,
)
from scripts.lib.report.by_load import matrix, slo_cell, verdict_chip
from scripts.lib.report.every_metric import every_metric, runs_words
from scripts.lib.report.figures import (
    load_figures,
    plotted_rows,
    timeline_figures,
)
from scripts.lib.report.held import held, latency_of, throughput_of
from scripts.lib.report.names import Names
from scripts.lib.report.numbers import (
    change,
    interval,
    metric_of,
    number,
    plural,
    sentence,
    share,
    times,
)

_COSTS = ("usd_per_million_output_tokens", "usd_per_million_good_tokens", "joules_per_output_token")
_OUTCOMES: dict[str, str] = {
    "better": "better",
    "worse": "worse",
    "tie": "a tie",
    "undecided": "undecided",
}


def speed_blocks(summary: Summary, names: Names) -> list[Block]:
    """Return figures and tables of each workload."""
    blocks: list[Block] = []
    for workload in summary.workloads:
        rows = [row for row in summary.points if row.workload == workload.name]
        if len(summary.workloads) > 1:
            blocks.append(Heading(f"Workload {workload.name}"))
        if not rows:
            blocks.append(Text(f"No load point of {workload.name} was measured.", "warn"))
            continue
        blocks += _figures(summary, names, workload.name)
        blocks += _tables(summary, names, rows)
    return blocks or [Text("No load point was measured.", "warn")]


def _figures(summary: Summary, names: Names, workload: str) -> list[Block]:
    view = next(one for one in summary.workloads if one.name == workload)
    figures = load_figures(summary, names, view)
    if not figures:
        return [Text("There is no figure: no load point has a value to draw.", "muted")]
    drawn = {row.variant for row in plotted_rows(summary, workload)}
    legend = [names.tag(variant) for variant in names.order if variant in drawn]
    note = (
        "Bars through the points are 95 % confidence intervals. Dashed lines: the kernel verdict "
        "is not “as expected”. Hollow grey points are invalid."
    )
    return [Figures(figures, legend, note)]


def _tables(summary: Summary, names: Names, rows: Sequence[PointRow]) -> list[Block]:
    compared = {
        (one.workload, one.variant, one.level, one.metric): one for one in summary.comparisons
    }
    blocks: list[Block] = []
    for latency in ("", "tpot", "ttft"):
        key = latency_of(rows, latency) if latency else throughput_of(rows)
        tails = _tails(summary, rows, key) if latency else []
        title = f"{metric_of(key).title}, {metric_of(key).unit}"

        def cell(row: PointRow, key: str = key, tails: Sequence[str] = tails) -> Cell:
            found = compared.get((row.workload, row.variant, row.level, key))
            return metric_cell(row, key, tails, found, names)

        caption = (
            "Below each number: its change against the baseline, its 95 % confidence interval "
            "and how many runs or requests stand behind it."
        )
        heading = f"{title}, by {_axis_word(rows)}"
        blocks += matrix(caption, rows, names, cell, title=heading, sources=True)
    blocks += _slo(summary, names, rows) if summary.slo else []
    blocks += _crossovers(summary, rows[0].workload)
    if any(key in row.metrics for key in _COSTS for row in rows):
        blocks += _costs(rows, names)
    return [*blocks, *every_metric(rows, names, bool(summary.slo))]


def _tails(summary: Summary, rows: Sequence[PointRow], key: str) -> list[str]:
    """Return the percentiles to show below ``key``: those that the SLO limits, else the p95.

    The latter unless imported results hold nothing that it could be taken from.
    """
    latency = key.split("_")[0]
    limited = [one.key for one in summary.slo if one.key.startswith(f"{latency}_p")]
    p95 = f"{latency}_p95_ms"
    known = held(rows, p95) or summary.imported_from is None
    return [tail for tail in limited or ([p95] if known else []) if tail != key]


def _axis_word(rows: Sequence[PointRow]) -> str:
    return {"concurrency": "concurrency", "rate": "offered requests/s"}.get(rows[0].kind, "load")


def metric_cell(
    row: PointRow,
    key: str,
    tails: Sequence[str],
    comparison: Comparison | None,
    names: Names,
) -> Cell:
    """Return one number of one point: ratio, interval, samples, tails and SLO verdict below it."""
    value = row.metrics.get(key)
    chips = status_chips(row)
    if value is None or value.value is None:
        reason = value.missing if value and value.missing else "not measured"
        return Cell(reason, chips=chips, tone="muted")
    notes = []
    if row.variant == names.baseline:
        notes.append("baseline")
    elif value.ratio_to_baseline is not None:
        notes.append(_ratio_words(key, value.ratio_to_baseline, comparison))
        if comparison and (missed := reach_words(comparison)):
            notes.append(missed)
    else:
        notes.append("no valid baseline at this load")
    notes += _sample_words(value)
    notes += [f"{runs_words(row)} repetitions"] if row.left_out else []
    notes += [_tail_words(row, tail) for tail in tails if tail in row.metrics]
    if cut := cut_words(row):
        notes.append(cut)
    if row.sent is not None and row.completed is not None and row.completed < row.sent:
        notes.append(f"{row.completed:,} of {row.sent:,} completed")
    return Cell(number(value.value), notes, chips, tone="plain" if row.valid else "muted")


def _ratio_words(key: str, ratio: float, comparison: Comparison | None) -> str:
    words = times(ratio) if metric_of(key).better == "higher" else change(ratio)
    return f"{words}, {_OUTCOMES[comparison.outcome]}" if comparison else words


def _sample_words(value: Value) -> list[str]:
    parts = []
    span = interval(value)
    if span:
        parts.append(span)
    if value.n is not None:
        parts.append(f"n = {value.n:,}")
    return [", ".join(parts)] if parts else []


def _tail_words(row: PointRow, key: str) -> str:
    statistic = key.split("_")[1]
    value = row.metrics[key]
    if value.value is None:
        reason = value.missing or "not measured"
        return reason if statistic in reason else f"{statistic}: {reason}"
    return f"{statistic} {number(value.value)}"


def status_chips(row: PointRow) -> list[Chip]:
    """Return whether a point is invalid, and whether it keeps the SLO."""
    chips = [] if row.valid else [Chip("invalid", "bad")]
    if row.slo_pass is not None:
        chips.append(verdict_chip(row, "SLO ✓", "SLO ✗"))
    return chips


def _slo(summary: Summary, names: Names, rows: Sequence[PointRow]) -> list[Block]:
    found = {one.variant: one for one in summary.boundaries if one.workload == rows[0].workload}

    def boundary(variant: str) -> Cell:
        return boundary_cell(found.get(variant))

    caption = "Which load keeps every limit, and the last one that does."
    return matrix(
        caption,
        rows,
        names,
        slo_cell,
        title="SLO by load",
        last=boundary,
        last_title="Last passing load",
    )


def boundary_cell(boundary: Boundary | None) -> Cell:
    """Return up to which load a variant keeps the SLO, in words."""
    if boundary is None:
        return Cell("not known", tone="muted")
    return Cell(boundary.words)


def _crossovers(summary: Summary, workload: str) -> list[Block]:
    found = [one for one in summary.crossovers if one.workload == workload]
    if not found:
        return []
    return [Heading("Where each variant is best"), Bullets([one.words for one in found])]


def _costs(rows: Sequence[PointRow], names: Names) -> list[Block]:
    blocks: list[Block] = [Heading("Cost and energy")]
    for key in _COSTS:
        held = [row for row in rows if key in row.metrics]
        reasons = {row.metrics[key].missing for row in held if row.metrics[key].value is None}
        metric = metric_of(key)
        if held and not any(row.metrics[key].value is not None for row in held):
            why = "; ".join(sorted(reason or "not measured" for reason in reasons))
            blocks.append(Text(sentence(f"{metric.title}: {why}"), "muted"))
        elif held:

            def cell(row: PointRow, key: str = key) -> Cell:
                return metric_cell(row, key, (), None, names)

            blocks += matrix("", held, names, cell, title=f"{metric.title}, {metric.unit}")
    return blocks


def noise_blocks(summary: Summary) -> list[Block]:
    """Return how much repeats of the same thing differ: smaller differences mean nothing."""
    if not summary.noise_floor:
        return [Text("The noise floor was not measured.", "muted")]
    rows = [
        [
            Cell(metric_of(key).title),
            Cell(share(value.value), [f"n = {value.n:,}"] if value.n else [])
            if value.value is not None
            else Cell(value.missing or "not measured", tone="muted"),
        ]
        for key, value in summary.noise_floor.items()
    ]
    caption = (
        "How far repeats of the baseline lie apart on the same server: a difference within it says "
        f"nothing. Two starts of equal servers may differ by {share(ASSUMED_NOISE)} (see "
        "Formulas, better and worse)."
    )
    return [Table(caption, [Column("Metric"), Column("Noise floor", numeric=True)], rows)]


def timeline_blocks(summary: Summary, names: Names) -> list[Block]:
    """Return the time lines, folded; at most a page full."""
    drawn = timeline_figures(summary, names)
    if not drawn:
        return [Text("No time series was recorded.", "muted")]
    note = "Shaded: the load points, with their level above."
    left_out = len(summary.timelines) - len(drawn)
    if left_out > 0:
        note += (
            f" {plural(left_out, 'more session')} is in the raw files."
            if left_out == 1
            else (f" {left_out} more sessions are in the raw files.")
        )
    figures = Figures([figure for _, figure in drawn], (), note)
    return [Details(f"{plural(len(drawn), 'session')} over time", [figures])]
