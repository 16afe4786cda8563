"""Tables of variants by load, a few levels at a time so that they fit a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from scripts.lib.analysis.points.remarks import samples_of_verdict
from scripts.lib.analysis.summary import PointRow
from scripts.lib.report.blocks import Block, Cell, Chip, Column, Link, Table, Tone
from scripts.lib.report.names import Names
from scripts.lib.report.numbers import plural, tidy

MOST_COLUMNS = 5
Load = tuple[str, float]


def load_title(load: Load) -> str:
    """Return how a load point is called: ``Concurrency 8``."""
    kind, level = load
    return {
        "concurrency": f"Concurrency {tidy(level)}",
        "rate": f"{tidy(level)} req/s",
    }.get(kind, kind.capitalize())


def matrix(
    caption: str,
    rows: Sequence[PointRow],
    names: Names,
    cell: Callable[[PointRow], Cell],
    title: str = "",
    sources: bool = False,
    last: Callable[[str], Cell] | None = None,
    last_title: str = "",
) -> list[Block]:
    """Return tables of variants by load, a few levels at a time so that they fit a page."""
    loads = sorted({(row.kind, row.level) for row in rows})
    found: dict[tuple[str, str, float], PointRow] = {
        (row.variant, row.kind, row.level): row for row in rows
    }
    variants = [name for name in names.order if any(row.variant == name for row in rows)]
    variants += sorted({row.variant for row in rows} - set(variants))
    tables: list[Block] = []
    for part, final in _chunks(loads):
        body = []
        for name in variants:
            have = [found.get((name, *load)) for load in part]
            paths = [path for row in have if row for path in row.sources] if sources else []
            head = Cell(tag=names.tag(name), sources=[Link(path) for path in dict.fromkeys(paths)])
            line = [head, *[cell(row) if row else _absent() for row in have]]
            body.append([*line, last(name)] if last and final else line)
        columns = [Column("Variant"), *[Column(load_title(load), numeric=True) for load in part]]
        if last and final:
            columns.append(Column(last_title))
        tables.append(Table(caption, columns, body, even=True, title=title))
    return tables


def _chunks(loads: Sequence[Load]) -> Iterator[tuple[Sequence[Load], bool]]:
    for start in range(0, len(loads), MOST_COLUMNS):
        yield loads[start : start + MOST_COLUMNS], start + MOST_COLUMNS >= len(loads)


def _absent() -> Cell:
    return Cell("not measured at this load", tone="muted")


def slo_cell(row: PointRow) -> Cell:
    """Return a point's SLO verdict with every limit it missed."""
    if not row.valid:
        reasons = row.invalid_reasons[:1]
        if len(row.invalid_reasons) > 1:
            reasons.append(f"and {plural(len(row.invalid_reasons) - 1, 'more reason')} below")
        return Cell(chips=[Chip("invalid", "bad")], notes=reasons, tone="muted")
    if row.slo_pass is None:
        return Cell(chips=[Chip("not judged", "muted")], notes=row.slo_failed, tone="muted")
    return Cell(chips=[verdict_chip(row, "passes", "fails")], notes=row.slo_failed)


def verdict_chip(row: PointRow, passes: str, fails: str) -> Chip:
    """Return a judged point's verdict; with its samples where too few to prove anything."""
    few = samples_of_verdict(row)
    words = passes if row.slo_pass else fails
    tone: Tone = "bad" if not row.slo_pass else "warn" if few is not None else "good"
    return Chip(words if few is None else f"{words}, n={few:,}", tone)
