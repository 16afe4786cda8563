"""Up to which load a variant keeps the SLO."""

from __future__ import annotations

from collections.abc import Sequence

from scripts.lib.analysis.summary import Boundary, PointRow


def find_boundaries(rows: Sequence[PointRow]) -> list[Boundary]:
    """Return one boundary per variant and workload that has levels of load.

    The last pass is the highest level up to which every judged level passes: a pass above a
    fail does not count, and is named. Levels that could not be judged are named too.
    """
    groups: dict[tuple[str, str], list[PointRow]] = {}
    for row in rows:
        if row.kind in ("concurrency", "rate"):
            groups.setdefault((row.variant, row.workload), []).append(row)
    return [_boundary(sorted(group, key=lambda row: row.level)) for group in groups.values()]


def _boundary(rows: Sequence[PointRow]) -> Boundary:
    judged = [row for row in rows if row.slo_pass is not None]
    fails = [row.level for row in judged if row.slo_pass is False]
    first_fail = min(fails) if fails else None
    passes = [
        row.level
        for row in judged
        if row.slo_pass and (first_fail is None or row.level < first_fail)
    ]
    last_pass = max(passes) if passes else None
    return Boundary(
        variant=rows[0].variant,
        workload=rows[0].workload,
        last_pass=last_pass,
        first_fail=first_fail,
        words=_words(rows, last_pass, first_fail),
    )


def _words(rows: Sequence[PointRow], last_pass: float | None, first_fail: float | None) -> str:
    unit = " req/s" if rows[0].kind == "rate" else ""
    if last_pass is None and first_fail is None:
        sentence = "not judged at any load"
    elif first_fail is None:
        highest = "measured" if rows[-1].level == last_pass else "that could be judged"
        sentence = f"passes up to {last_pass:g}{unit}, the highest load {highest}"
    elif last_pass is None:
        sentence = f"fails already at {first_fail:g}{unit}, {_lowest(rows, first_fail)}"
    else:
        sentence = f"passes up to {last_pass:g}{unit}, fails at {first_fail:g}{unit}"
    return sentence + _exceptions(rows, first_fail)


def _lowest(rows: Sequence[PointRow], first_fail: float) -> str:
    return (
        "the lowest load measured"
        if rows[0].level == first_fail
        else "the lowest load that could be judged"
    )


def _exceptions(rows: Sequence[PointRow], first_fail: float | None) -> str:
    again = [
        r.level for r in rows if r.slo_pass and first_fail is not None and r.level > first_fail
    ]
    unjudged = [row.level for row in rows if row.slo_pass is None]
    text = ""
    if again:
        text += f"; passes again at {_list(again)}, which does not count"
    if unjudged and len(unjudged) < len(rows):
        text += f"; could not be judged at {_list(unjudged)}"
    return text


def _list(levels: Sequence[float]) -> str:
    return ", ".join(f"{level:g}" for level in levels)
