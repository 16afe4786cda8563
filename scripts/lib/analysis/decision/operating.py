"""The operating point: the highest load at which a variant keeps the SLO."""

from __future__ import annotations

from collections.abc import Iterable

from scripts.lib.analysis.material import Material
from scripts.lib.analysis.summary import PointRow


def judged_rows(material: Material, variant: str, workload: str) -> list[PointRow]:
    """Return the rows whose SLO verdict is known, by rising load; all valid ones without limits.

    An invalid row may still fail: by requests that failed, never by its latencies.
    """
    rows = material.rows(variant, workload)
    if not material.study.slo.limits_anything:
        return [row for row in rows if row.valid]
    return [row for row in rows if row.slo_pass is not None]


def operating_row(
    material: Material, variant: str, workload: str, ceiling: float | None = None
) -> PointRow | None:
    """Return the highest load (up to ``ceiling``) that passes with no failing load below it."""
    best = None
    for row in judged_rows(material, variant, workload):
        if row.slo_pass is False or (ceiling is not None and row.level > ceiling):
            break
        best = row
    return best


def common_ceiling(material: Material, variants: Iterable[str], workload: str) -> float | None:
    """Return the highest load at which all of ``variants`` can be compared; None: no rows.

    A variant that fails somewhere bounds itself. One that never fails was only tested up to its
    highest judged load, and nobody may be credited with more than that beside it.
    """
    tops = []
    for variant in variants:
        rows = judged_rows(material, variant, workload)
        if rows and all(row.slo_pass is not False for row in rows):
            tops.append(rows[-1].level)
    return min(tops, default=None)
