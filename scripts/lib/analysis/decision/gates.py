"""The gates a variant must pass, in order: starts, kernel, valid, quality, SLO, cost.

A gate is True (passed), False (disqualified) or None (could not be judged). An unjudged gate
keeps a variant from being recommended, except where BLOCKING says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable

from scripts.lib.analysis.comparison.quality_need import (
    compared_items,
    is_compared,
    need_words,
)
from scripts.lib.analysis.decision.operating import judged_rows, operating_row
from scripts.lib.analysis.material import Material
from scripts.lib.analysis.summary import Gate, PointRow, QualityView
from scripts.lib.analysis.wording import at, listed, number, value_of

BLOCKING = {
    "starts": True,
    "fits": True,
    "kernel": False,  # an attached server leaves no log: a limitation, not a veto
    "valid": True,
    "quality": True,
    "slo": True,
    "cost": False,  # without a price the ranking is by throughput
}
"""Whether a gate that could not be judged keeps the variant from being recommended."""


SKIPPED = "degraded"
"""The failure kind of a server that started and was not measured (``on_degraded: skip``): the
kernel gate judges that."""


def judge(material: Material, variant: str) -> list[Gate]:
    """Return the gates of one variant, in order, up to and including the first that fails."""
    gates = []
    for gate in GATES:
        found = gate(material, variant)
        if found is None:
            continue
        gates.append(found)
        if found.passed is False:
            break
    return gates


def qualifies(material: Material, gates: list[Gate]) -> bool | None:
    """Return whether a variant may be recommended; None: a gate that matters is undecided."""
    if any(gate.passed is False for gate in gates):
        return False
    if any(gate.passed is None and blocks(material, gate) for gate in gates):
        return None
    return True


def blocks(material: Material, gate: Gate) -> bool:
    """Return whether this gate, left undecided, keeps its variant from being recommended."""
    if gate.gate == "quality" and material.study.quality is None:
        return False  # the study asks for no quality measurement: its author accepts that
    if gate.gate == "slo" and not material.study.slo.limits_anything:
        return False
    return BLOCKING[gate.gate]


def starts(material: Material, variant: str) -> Gate:
    """The server came up and served."""
    rows = [r for r in material.points if r.variant == variant and (r.completed or r.valid)]
    failures = [
        f
        for f in material.failures
        if f.variant == variant and f.stage != "quality" and f.failure.kind != SKIPPED
    ]
    startup = material.startups.get(variant)
    source = failures[0].source if failures else rows[0].sources[0] if _sources(rows) else ""
    if failures and not rows:
        row = failures[0]
        why = f"did not get through {row.stage}: {row.failure.kind}: {row.failure.line}"
        hint = f" ({row.failure.hint})" if row.failure.hint else ""
        return Gate(gate="starts", passed=False, why=why + hint, source=source)
    if failures:
        row = failures[0]
        why = f"the server died: {row.failure.kind}: {row.failure.line}"
        return Gate(gate="starts", passed=False, why=why, source=source)
    if startup is not None and startup.ready:
        after = f" after {number(startup.ready_s)} s" if startup.ready_s is not None else ""
        return Gate(gate="starts", passed=True, why=f"ready{after}", source=source)
    if rows:
        return Gate(gate="starts", passed=True, why="it answered requests", source=source)
    return Gate(gate="starts", passed=None, why="not measured: it was never started", source="")


def _sources(rows: list[PointRow]) -> bool:
    return bool(rows and rows[0].sources)


def fits(material: Material, variant: str) -> Gate | None:
    """The plan's word on memory; of interest only while nothing was measured."""
    plan = material.plans.get(variant)
    if plan is None or plan.fits is not False:
        return None
    if any(row.variant == variant for row in material.points):
        return None
    return Gate(gate="fits", passed=False, why=plan.fits_why, source=f"plan/{variant}.json")


def kernel(material: Material, variant: str) -> Gate:
    """The engine ran what the checkpoint promises."""
    verdict = material.verdicts.get(variant)
    source = f"kernels/{variant}.json"
    if verdict is None:
        why = "no kernel verdict: neither a start-up log nor a manifest was judged"
        return Gate(gate="kernel", passed=None, why=why, source="")
    if verdict.verdict == "as expected":
        return Gate(gate="kernel", passed=True, why=verdict.summary, source=source)
    if verdict.verdict == "not what the checkpoint says":
        why = f"not what the checkpoint says: {verdict.summary}"
        return Gate(gate="kernel", passed=False, why=why, source=source)
    if verdict.verdict == "unknown":
        return Gate(gate="kernel", passed=None, why=verdict.summary, source=source)
    policy = material.study.on_degraded
    why = f"degraded (on_degraded: {policy}): {verdict.summary}"
    return Gate(gate="kernel", passed=policy == "warn", why=why, source=source)


def valid(material: Material, variant: str) -> Gate:
    """There is at least one valid measurement on every workload."""
    rows = [row for row in material.points if row.variant == variant]
    if not rows:
        return Gate(gate="valid", passed=None, why="not measured: no load point", source="")
    source = next((s for row in rows for s in row.sources), "")
    missing = [
        workload
        for workload in material.study.workloads
        if not any(row.valid for row in rows if row.workload == workload)
    ]
    if missing:
        found = _invalid_words([row for row in rows if row.workload in missing])
        why = f"no valid load point on {listed(missing)}: {found or 'none measured'}"
        return Gate(gate="valid", passed=None, why=why, source=source)
    good = sum(row.valid for row in rows)
    why = f"{good} of {len(rows)} load points are valid{_left_out_words(rows)}"
    return Gate(gate="valid", passed=True, why=why, source=source)


def _left_out_words(rows: list[PointRow]) -> str:
    left = sum(len(row.left_out) for row in rows)
    runs = left + sum(row.runs for row in rows)
    return f"; {left} of their {runs} runs were disturbed and are left out" if left else ""


def quality(material: Material, variant: str) -> Gate:
    """No more tasks lost than the margin allows."""
    view = material.quality_of(variant)
    source = view.source if view else ""
    if variant == material.study.baseline:
        return Gate(gate="quality", passed=True, why="the baseline is the reference", source=source)
    if material.study.quality is None:
        why = "not measured: the study asks for none"
        return Gate(gate="quality", passed=None, why=why, source=source)
    if view is None:
        return Gate(gate="quality", passed=None, why="not measured: no quality result", source="")
    passed = {"non-inferior": True, "worse": False}.get(view.outcome)
    why = view.not_applicable or view.words
    if view.not_applicable:
        why = f"not measured: {why}"
    if view.outcome == "undecided" and is_compared(view):
        why = f"{_flips(view)}; {need_words(view, material.study.quality)}"
    return Gate(gate="quality", passed=passed, why=why, source=source)


def _flips(view: QualityView) -> str:
    items = compared_items(view)
    words = f"{view.lost} lost and {view.gained} gained of {items} items"
    if view.difference_low is None or view.difference_high is None:
        return words
    low, high = 100 * view.difference_low, 100 * view.difference_high
    return f"{words}, 90 % interval of the difference {low:+.1f} to {high:+.1f} points"


def slo(material: Material, variant: str) -> Gate:
    """Every workload keeps the SLO at least at its lowest judged load."""
    words, verdicts, source = [], [], ""
    for workload in material.study.workloads:
        passed, why, where = _slo_on(material, variant, workload)
        verdicts.append(passed)
        words.append(f"{workload}: {why}" if len(material.study.workloads) > 1 else why)
        source = source or where
    passed = False if False in verdicts else None if None in verdicts else True
    return Gate(gate="slo", passed=passed, why="; ".join(words), source=source)


def _slo_on(material: Material, variant: str, workload: str) -> tuple[bool | None, str, str]:
    rows = judged_rows(material, variant, workload)
    if not rows:
        return None, _unjudged_words(material.rows(variant, workload)), ""
    source = next(iter(rows[0].sources), "")
    best = operating_row(material, variant, workload)
    failed = next((row for row in rows if row.slo_pass is False), None)
    if best is None:
        assert failed is not None
        limits = "; ".join(failed.slo_failed)
        return False, f"misses the SLO already at {at(failed)}: {limits}", source
    if not material.study.slo.limits_anything:
        return None, f"the study sets no limits; measured up to {at(best)}", source
    if failed is None:
        return True, f"keeps the SLO up to {at(best)}, the highest load judged", source
    limits = "; ".join(failed.slo_failed)
    return True, f"keeps the SLO up to {at(best)}, misses it at {at(failed)}: {limits}", source


def _unjudged_words(rows: list[PointRow]) -> str:
    if not rows:
        return "not measured"
    if not any(row.valid for row in rows):
        return "could not be judged at any load: no load point is valid"
    warnings = [w for row in rows for w in row.warnings if "not judged" in w]
    first = list(dict.fromkeys(warnings))[:3]
    return f"could not be judged at any load: {'; '.join(first) or 'no limit applies'}"


def _invalid_words(rows: list[PointRow]) -> str:
    """Say each kind of reason (its words before the colon) once, where, and with one example."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for row in rows:
        for reason in row.invalid_reasons:
            kind, _, detail = reason.partition(": ")
            kinds.setdefault(kind, []).append((at(row), detail))
    words = []
    for kind, found in kinds.items():
        places = list(dict.fromkeys(place for place, _ in found))
        where = "every load point" if len(places) == len(rows) > 1 else listed(places)
        example = f" (at {found[0][0]}: {found[0][1]})" if found[0][1] else ""
        words.append(f"{kind}, at {where}{example}")
    return "; ".join(words)


COST = ("usd_per_million_good_tokens", "usd_per_million_output_tokens")


def cost(material: Material, variant: str) -> Gate:
    """What the operating point costs; a figure for the ranking, not a limit."""
    if material.study.price is None:
        return Gate(gate="cost", passed=None, why="the study names no price", source="")
    for workload in material.study.workloads:
        row = operating_row(material, variant, workload)
        metric = next((m for m in COST if row and value_of(row, m) is not None), None)
        if row is None or metric is None:
            why = "not measured: " + _no_cost(row, workload)
            return Gate(gate="cost", passed=None, why=why, source="")
    words = [
        f"{workload}, {at(row)}: USD {number(value_of(row, metric) or 0)} per million "
        f"{'tokens of good requests' if metric == COST[0] else 'output tokens'}"
        for workload in material.study.workloads
        if (row := operating_row(material, variant, workload))
        if (metric := next((m for m in COST if value_of(row, m) is not None), None))
    ]
    return Gate(gate="cost", passed=True, why="; ".join(words), source="study.json")


def _no_cost(row: PointRow | None, workload: str) -> str:
    if row is None:
        return f"no load of {workload} keeps the SLO"
    reasons = [row.metrics[m].missing for m in COST if m in row.metrics and row.metrics[m].missing]
    reason = f" ({reasons[-1]})" if reasons else ""
    return f"{workload}, {at(row)}: output tokens/s are not known{reason}"


GATES: tuple[Callable[[Material, str], Gate | None], ...] = (
    starts,
    fits,
    kernel,
    valid,
    quality,
    slo,
    cost,
)
