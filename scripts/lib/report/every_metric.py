"""Folded tables of every metric of every load point: whole run, and steady window beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from scripts.lib.analysis.points.remarks import fold_remarks
from scripts.lib.analysis.summary import PointRow
from scripts.lib.report.blocks import Block, Bullets, Cell, Column, Details, Link, Table, Text, Tone
from scripts.lib.report.by_load import MOST_COLUMNS, load_title, slo_cell
from scripts.lib.report.names import Names
from scripts.lib.report.numbers import in_order, interval, metric_of, plural, sentence, with_unit


def every_metric(rows: Sequence[PointRow], names: Names, judged: bool) -> list[Block]:
    """Return, folded, every metric of every point: whole run, and steady window beside it.

    ``judged``: whether the study sets limits that a point can keep or miss.
    """
    blocks: list[Block] = []
    for variant in names.order:
        mine = sorted((row for row in rows if row.variant == variant), key=lambda row: row.level)
        if mine:
            title = f"All {plural(len(mine), 'load point')}, every metric"
            tables = list(_metric_tables(mine, judged))
            warnings = [
                f"{load_title((row.kind, row.level))}: {remark}"
                for row in mine
                for remark in [*row.invalid_reasons, *row.left_out, *fold_remarks(row.warnings)]
            ]
            tail: list[Block] = [Text("Remarks:"), Bullets(warnings)] if warnings else []
            absent = _never_measured(mine)
            tail += [Text("Without a value at every load:"), Bullets(absent)] if absent else []
            blocks.append(Details(title, [*tables, *tail], names.tag(variant)))
    return blocks


def _completed_cell(row: PointRow) -> Cell:
    if row.sent is None and row.completed is None:
        return Cell("not recorded", tone="muted")
    if row.completed is None:
        return Cell(f"not recorded; {row.sent:,} sent", tone="muted")
    sent = "not recorded how many" if row.sent is None else f"{row.sent:,}"
    return Cell(f"{row.completed:,} of {sent}")


def runs_words(row: PointRow) -> str:
    """Return how many runs stand behind a row, e.g. ``2 of 3`` where one was left out."""
    return f"{row.runs} of {row.runs + len(row.left_out)}" if row.left_out else str(row.runs)


def _metric_tables(rows: Sequence[PointRow], judged: bool) -> Iterator[Block]:
    for start in range(0, len(rows), MOST_COLUMNS):
        part = rows[start : start + MOST_COLUMNS]
        keys = in_order(key for row in part for key in row.metrics)
        known = [key for key in keys if any(_has(row, key) for row in part)]
        body = [
            [
                Cell("Requests completed"),
                *[_completed_cell(row) for row in part],
            ],
            [Cell("Runs"), *[Cell(runs_words(row)) for row in part]],
            *([[Cell("SLO"), *[slo_cell(row) for row in part]]] if judged else []),
            *[_metric_row(key, part) for key in known],
            [Cell("Raw files"), *[Cell(sources=[Link(p) for p in row.sources]) for row in part]],
        ]
        titles = [Column(load_title((row.kind, row.level)), numeric=True) for row in part]
        yield Table("Every metric; below it that of the steady window, where there is one.",
                    [Column("Metric"), *titles], body)  # fmt: skip


def _has(row: PointRow, key: str) -> bool:
    return key in row.metrics and row.metrics[key].value is not None


def _never_measured(rows: Sequence[PointRow]) -> list[str]:
    """Return, by reason, the metrics that no point has, so that they take no row each."""
    by_reason: dict[str, list[str]] = {}
    for key in in_order(key for row in rows for key in row.metrics):
        if not any(_has(row, key) for row in rows):
            reasons = dict.fromkeys(
                row.metrics[key].missing or "" for row in rows if key in row.metrics
            )
            reason = " / ".join(filter(None, reasons)) or "not measured"
            by_reason.setdefault(reason, []).append(metric_of(key).title)
    return [sentence(f"{', '.join(titles)}: {reason}") for reason, titles in by_reason.items()]


def _metric_row(key: str, rows: Sequence[PointRow]) -> list[Cell]:
    metric = metric_of(key)
    cells = []
    for row in rows:
        value = row.metrics.get(key)
        if value is None or value.value is None:
            reason = value.missing if value and value.missing else "not measured"
            cells.append(Cell(reason, _steady_words(row, key), tone="muted"))
            continue
        scaled = with_unit(value.value * metric.scale, metric.unit)
        span = interval(value, metric.scale)
        notes = [f"95 % CI {span}"] if span else []
        tone: Tone = "plain" if row.valid else "muted"
        cells.append(Cell(scaled, [*notes, *_steady_words(row, key)], tone=tone))
    return [Cell(metric.title), *cells]


def _steady_words(row: PointRow, key: str) -> list[str]:
    value = row.steady.get(key)
    if value is None:
        return []
    metric = metric_of(key)
    if value.value is None:
        return [f"steady: {value.missing or 'not measured'}"]
    return [f"steady: {with_unit(value.value * metric.scale, metric.unit)}"]
