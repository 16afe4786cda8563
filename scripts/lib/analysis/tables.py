"""The tables of a study as CSV files, checked as they are written, and as one JSON file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pandera.pandas as pa

from scripts.lib.analysis.summary import (
    Boundary,
    Comparison,
    Crossover,
    FailureRow,
    LedgerRow,
    PointRow,
    QualityView,
    Timeline,
    Value,
)
from scripts.lib.base.files import write_json, write_text
from scripts.lib.base.schema import SCHEMA_VERSION, Strict


class Analysis(Strict):
    """``tables/analysis.json``: everything that follows from the raw records by arithmetic."""

    schema_version: int = SCHEMA_VERSION
    points: list[PointRow]
    boundaries: list[Boundary]
    comparisons: list[Comparison]
    crossovers: list[Crossover]
    noise_floor: dict[str, Value]
    ledger: list[LedgerRow]
    quality: list[QualityView]
    timelines: list[Timeline]
    failures: list[FailureRow]


class TableError(ValueError):
    """A table that breaks its own schema: a bug in the analysis, never written out."""


KEYS = ["workload", "variant", "stamp", "kind", "level"]
TEXT = pa.Column(str, nullable=False)
NAME = pa.Column(str, pa.Check.str_length(min_value=1))
LEVEL = pa.Column(float, pa.Check.ge(0))
COUNT = pa.Column(int, pa.Check.ge(0))
NUMBER = pa.Column(float, nullable=True)
YES_NO = pa.Column("boolean", nullable=True)
RATIO = pa.Column(float, pa.Check.gt(0), nullable=True)
SHARE = pa.Column(float, pa.Check.in_range(0, 1), nullable=True)


def write_tables(folder: Path, analysis: Analysis) -> list[Path]:
    """Write every table of ``analysis`` into ``folder``; return the files.

    A value that is missing is an empty cell, and the column ``<name>_missing`` beside it says
    why; it is never 0.

    Raises:
        TableError: if a table breaks its schema; none of them is written then.
    """
    tables = {
        "points.csv": points_table(analysis.points),
        "intervals.csv": intervals_table(analysis.points),
        "boundaries.csv": boundaries_table(analysis.boundaries),
        "comparisons.csv": comparisons_table(analysis.comparisons),
        "crossovers.csv": crossovers_table(analysis.crossovers),
        "ledger.csv": ledger_table(analysis.ledger),
        "quality.csv": quality_table(analysis.quality),
        "failures.csv": failures_table(analysis.failures),
    }
    for name, table in tables.items():
        write_text(folder / name, table.to_csv(index=False, lineterminator="\n"))
    write_json(folder / "analysis.json", analysis)
    return [*(folder / name for name in tables), folder / "analysis.json"]


def points_table(rows: Sequence[PointRow]) -> pd.DataFrame:
    """Return one line per variant and load point: each metric and why it is missing."""
    names = list(dict.fromkeys(name for row in rows for name in row.metrics))
    checks = [
        pa.Check(
            lambda t: ~(t["requests_completed"] > t["requests_sent"]).fillna(False),
            error="more requests completed than were sent",
        ),
        *(_one_of_both(name) for name in [*COUNTS, *names]),
    ]
    unique = ["workload", "variant", "kind", "level"]
    lines = [_points_line(row, names) for row in rows]
    return _checked("points.csv", lines, _points_columns(names), checks, unique)


def _points_line(row: PointRow, metrics: Sequence[str]) -> dict[str, Any]:
    return {
        "workload": row.workload,
        "variant": row.variant,
        "stamp": row.stamp,
        "kind": row.kind,
        "level": row.level,
        "origin": row.origin,
        "runs": row.runs,
        **_counts(row),
        "valid": row.valid,
        "slo_pass": row.slo_pass,
        "slo_failed": "; ".join(row.slo_failed),
        "invalid_reasons": "; ".join(row.invalid_reasons),
        "left_out": "; ".join(row.left_out),
        "warnings": "; ".join(row.warnings),
        "sources": " ".join(row.sources),
        **_cells({name: row.metrics[name] for name in metrics if name in row.metrics}),
    }


def _points_columns(metrics: Sequence[str]) -> dict[str, pa.Column]:
    return {
        "workload": NAME,
        "variant": NAME,
        "stamp": TEXT,
        "kind": pa.Column(str, pa.Check.isin(["concurrency", "rate", "ramp", "trace"])),
        "level": LEVEL,
        "origin": pa.Column(str, pa.Check.isin(["plan", "slo_search"])),
        "runs": pa.Column(int, pa.Check.ge(1)),
        **dict.fromkeys(COUNTS, pa.Column("Int64", pa.Check.ge(0), nullable=True)),
        **{f"{name}_missing": TEXT for name in COUNTS},
        "valid": pa.Column("boolean"),
        "slo_pass": YES_NO,
        **dict.fromkeys(("slo_failed", "invalid_reasons", "left_out", "warnings", "sources"), TEXT),
        **_value_columns(metrics),
    }


COUNTS = ("requests_sent", "requests_completed")


def _counts(row: PointRow) -> dict[str, Any]:
    found = dict(zip(COUNTS, (row.sent, row.completed), strict=True))
    reasons = {f"{name}_missing": "not known" if n is None else "" for name, n in found.items()}
    return found | reasons


def intervals_table(rows: Sequence[PointRow]) -> pd.DataFrame:
    """Return one line per metric of each load point, with interval, samples and ratio."""
    lines = [
        {
            **{key: getattr(row, key) for key in KEYS},
            "metric": name,
            **value.model_dump(),
            "missing": value.missing or "",
        }
        for row in rows
        for name, value in row.metrics.items()
    ]
    columns = {
        "workload": NAME,
        "variant": NAME,
        "stamp": TEXT,
        "kind": NAME,
        "level": LEVEL,
        "metric": NAME,
        "value": NUMBER,
        "missing": TEXT,
        "low": NUMBER,
        "high": NUMBER,
        "n": pa.Column("Int64", pa.Check.ge(0), nullable=True),
        "ratio_to_baseline": pa.Column(float, pa.Check.ge(0), nullable=True),
    }
    ordered = pa.Check(
        lambda t: ~(t["low"] > t["value"]) & ~(t["high"] < t["value"]),
        error="a value lies outside its own interval",
        ignore_na=False,
    )
    return _checked("intervals.csv", lines, columns, [ordered, _one_of_both("value", "missing")])


def boundaries_table(boundaries: Sequence[Boundary]) -> pd.DataFrame:
    """Return one line per variant and workload."""
    columns = {
        "variant": NAME,
        "workload": NAME,
        "last_pass": NUMBER,
        "first_fail": NUMBER,
        "words": NAME,
    }
    ordered = pa.Check(
        lambda t: ~(t["last_pass"] >= t["first_fail"]),
        error="a variant passes at a load at which it fails",
    )
    return _checked("boundaries.csv", _dumped(boundaries), columns, [ordered])


def comparisons_table(comparisons: Sequence[Comparison]) -> pd.DataFrame:
    """Return one line per comparison with the baseline."""
    columns = {
        "workload": NAME,
        "level": LEVEL,
        "metric": NAME,
        "variant": NAME,
        "ratio": pa.Column(float, pa.Check.gt(0)),
        "low": RATIO,
        "high": RATIO,
        "p_adjusted": SHARE,
        "outcome": pa.Column(str, pa.Check.isin(["better", "worse", "tie", "undecided"])),
        "why": NAME,
        "repeats": pa.Column("Int64", pa.Check.ge(1), nullable=True),
        "repeats_of": NAME,
        "detectable": RATIO,
        "repeats_needed": pa.Column("Int64", pa.Check.ge(1), nullable=True),
    }
    return _checked("comparisons.csv", _dumped(comparisons), columns)


def crossovers_table(crossovers: Sequence[Crossover]) -> pd.DataFrame:
    """Return one line per workload, metric and level: the best variant, or the tied ones."""
    lines = [
        {"workload": c.workload, "metric": c.metric, "level": level, "best": " ".join(names)}
        for c in crossovers
        for level, names in zip(c.levels, c.best, strict=True)
    ]
    columns = {"workload": NAME, "metric": NAME, "level": LEVEL, "best": NAME}
    return _checked("crossovers.csv", lines, columns)


LEDGER = [name for name in LedgerRow.model_fields if name not in ("variant", "source")]


def ledger_table(rows: Sequence[LedgerRow]) -> pd.DataFrame:
    """Return one line per variant that was started."""
    lines = [
        {
            "variant": row.variant,
            **_cells({name: getattr(row, name) for name in LEDGER}),
            "source": row.source,
        }
        for row in rows
    ]
    columns = {"variant": NAME, **_value_columns(LEDGER), "source": NAME}
    return _checked("ledger.csv", lines, columns, [_one_of_both(name) for name in LEDGER])


def quality_table(views: Sequence[QualityView]) -> pd.DataFrame:
    """Return one line per variant and axis."""
    lines = [
        {
            "variant": view.variant,
            "stamp": view.stamp,
            "outcome": view.outcome,
            "axis": axis.axis,
            "items": axis.items,
            "passed": axis.passed,
            "baseline_passed": axis.baseline_passed,
            "baseline_wrong_too": axis.baseline_wrong_too,
            "lost": " ".join(axis.lost),
            "gained": " ".join(axis.gained),
            "similarity_to_baseline": axis.similarity_to_baseline,
            "identical_to_baseline": axis.identical_to_baseline,
            "source": view.source,
        }
        for view in views
        for axis in view.axes
    ]
    columns = {
        "variant": NAME,
        "stamp": TEXT,
        "outcome": NAME,
        "axis": NAME,
        "items": COUNT,
        "passed": COUNT,
        "baseline_passed": pa.Column("Int64", pa.Check.ge(0), nullable=True),
        "baseline_wrong_too": COUNT,
        "lost": TEXT,
        "gained": TEXT,
        "similarity_to_baseline": SHARE,
        "identical_to_baseline": COUNT,
        "source": NAME,
    }
    passed = pa.Check(lambda t: t["passed"] <= t["items"], error="more passed than were asked")
    return _checked("quality.csv", lines, columns, [passed])


def failures_table(failures: Sequence[FailureRow]) -> pd.DataFrame:
    """Return one line per variant that did not start, or died."""
    lines = [
        {"variant": f.variant, "stage": f.stage, **f.failure.model_dump(), "source": f.source}
        for f in failures
    ]
    columns = dict.fromkeys(("variant", "stage", "kind"), NAME)
    columns |= {"line": TEXT, "hint": TEXT, "source": NAME}
    return _checked("failures.csv", lines, columns)


def _dumped(rows: Sequence[Strict]) -> list[dict[str, Any]]:
    return [row.model_dump() for row in rows]


def _cells(values: dict[str, Value]) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for name, value in values.items():
        cells[name] = value.value
        cells[f"{name}_missing"] = value.missing or ""
    return cells


def _value_columns(names: Sequence[str]) -> dict[str, pa.Column]:
    columns = {}
    for name in names:
        columns[name] = pa.Column(float, pa.Check.ge(0), nullable=True)
        columns[f"{name}_missing"] = TEXT
    return columns


def _one_of_both(name: str, reason: str | None = None) -> pa.Check:
    """Check that a cell holds a number or the reason why not, and never both or neither."""
    reason = reason or f"{name}_missing"
    return pa.Check(
        lambda t: t[name].isna() == (t[reason] != ""),
        error=f"{name}: a cell needs either a value or the reason why there is none",
        ignore_na=False,
    )


def _checked(
    name: str,
    lines: list[dict[str, Any]],
    columns: dict[str, pa.Column],
    checks: Sequence[pa.Check] = (),
    unique: list[str] | None = None,
) -> pd.DataFrame:
    table = pd.DataFrame(lines, columns=list(columns))
    schema = pa.DataFrameSchema(
        columns, checks=list(checks), strict=True, ordered=True, coerce=True, unique=unique
    )
    try:
        return schema.validate(table, lazy=True)
    except pa.errors.SchemaErrors as error:
        cases = error.failure_cases[["column", "check", "failure_case"]].head(3)
        raise TableError(f"{name}: {json.dumps(cases.to_dict('records'), default=str)}") from None
