"""What stands on top of the report: the answer, its key numbers, and the way back."""

from __future__ import annotations

import shlex
from collections.abc import Callable

from scripts.lib.analysis.comparison.quality_need import is_compared
from scripts.lib.analysis.points.remarks import cut_words
from scripts.lib.analysis.summary import PointRow, QualityView, Summary, Value
from scripts.lib.report.blocks import (
    Answer,
    Block,
    Bullets,
    Callout,
    Cell,
    Chip,
    Code,
    Column,
    KeyNumber,
    Table,
    Text,
    Tone,
)
from scripts.lib.report.by_load import load_title
from scripts.lib.report.held import latency_of, throughput_of
from scripts.lib.report.names import Names
from scripts.lib.report.numbers import change, metric_of, share, shown, times, with_unit
from scripts.lib.report.probes import OUTCOME_TONES as QUALITY_TONES
from scripts.lib.report.reasons import headline, reasons
from scripts.lib.report.verdicts import OUTCOME_TONES

MOST_CONDITIONS = 5
_COST = "usd_per_million_output_tokens"


def answer(summary: Summary, names: Names) -> Answer:
    """Return the decision with the chosen variant's numbers beside the baseline's."""
    made = summary.decision
    shown_variant = made.variant or summary.baseline
    point = _best_point(summary, shown_variant)
    tag = names.tag(made.variant) if made.variant else None
    return Answer(
        made.outcome,
        OUTCOME_TONES[made.outcome],
        headline(made),
        tag,
        reasons(summary) or ["No reasons were given."],
        _numbers_title(summary, names, point),
        [*_speed_numbers(summary, point), *_other_numbers(summary, shown_variant)],
        _glance(summary, names, point),
        _rollback(summary, names),
    )


def _best_point(summary: Summary, variant: str) -> PointRow | None:
    """Return the highest load at which the variant keeps the SLO; else its lowest valid one.

    Without any limit it is the highest valid one.

    The baseline must have a valid point there too, or the comparison says nothing.
    """
    base = {
        (row.workload, row.kind, row.level)
        for row in summary.points
        if row.variant == summary.baseline and row.valid
    }
    workload = summary.workloads[0].name if summary.workloads else ""
    mine = [
        row
        for row in summary.points
        if row.variant == variant
        and row.valid
        and row.workload == workload
        and (row.workload, row.kind, row.level) in base
    ]
    passing = [row for row in mine if row.slo_pass]
    if passing or not summary.slo:
        return max(passing or mine, key=lambda row: row.level, default=None)
    return min(mine, key=lambda row: row.level, default=None)


def _numbers_title(summary: Summary, names: Names, point: PointRow | None) -> str:
    variant = summary.decision.variant
    who = names.text(variant or summary.baseline)
    both = ""
    if not variant:
        who = f"The baseline, {who}"
    elif variant != summary.baseline:
        who, both = f"{who}, against the baseline", " for both"
    if point is None:
        return f"{who}: no load point is valid{both}"
    return f"{who}, at {load_title((point.kind, point.level)).lower()} of {point.workload}"


def _speed_numbers(summary: Summary, point: PointRow | None) -> list[KeyNumber]:
    if point is None:
        return []
    baseline = next(
        row
        for row in summary.points
        if row.variant == summary.baseline
        and (row.workload, row.kind, row.level) == (point.workload, point.kind, point.level)
    )
    keys = [key for key in _speed_keys(summary, point.workload) if key in point.metrics]
    if _COST in point.metrics and point.metrics[_COST].value is not None:
        keys.append(_COST)
    return [
        _speed_number(key, point.metrics[key], baseline.metrics.get(key), point is baseline)
        for key in keys
    ]


def _speed_keys(summary: Summary, workload: str) -> tuple[str, str, str]:
    """Return throughput, TPOT and TTFT in the statistic that the workload's points hold."""
    rows = [row for row in summary.points if row.workload == workload]
    return throughput_of(rows), latency_of(rows, "tpot"), latency_of(rows, "ttft")


def _speed_number(key: str, value: Value, base: Value | None, same: bool) -> KeyNumber:
    metric = metric_of(key)
    text = shown(value, key)
    if value.value is None:
        return KeyNumber(metric.title, text, tone="muted")
    if same or base is None or not base.value:
        return KeyNumber(metric.title, text)
    ratio = value.value / base.value
    better = ratio > 1 if metric.better == "higher" else ratio < 1
    words = times(ratio) if metric.better == "higher" else change(ratio)
    tone: Tone = "plain" if abs(ratio - 1) < 0.005 else "good" if better else "bad"
    return KeyNumber(metric.title, text, words, f"baseline {shown(base, key)}", tone=tone)


def _other_numbers(summary: Summary, variant: str) -> list[KeyNumber]:
    ledger = {row.variant: row for row in summary.ledger}
    found = []
    mine, base = ledger.get(variant), ledger.get(summary.baseline)
    if mine is not None:
        for title, unit, lower_is_better, get in _LEDGER:
            value, other = get(mine), get(base) if base is not None else None
            found.append(_ledger_number(title, unit, lower_is_better, value, other, mine is base))
    quality = {view.variant: view for view in summary.quality}
    view = quality.get(variant)
    if view is not None:
        found.append(_quality_number(view, quality.get(summary.baseline)))
    return found


_LEDGER: tuple[tuple[str, str, bool, Callable[..., Value]], ...] = (
    ("Weights in memory", "GiB", True, lambda row: row.weights_gib),
    ("Room for the KV cache", "tokens", False, lambda row: row.kv_cache_tokens),
)


def _ledger_number(
    title: str, unit: str, lower_is_better: bool, value: Value, base: Value | None, same: bool
) -> KeyNumber:
    if value.value is None:
        return KeyNumber(title, value.missing or "not measured", tone="muted")
    text = with_unit(value.value, unit)
    if same or base is None or not base.value:
        return KeyNumber(title, text)
    ratio = value.value / base.value
    good = ratio < 1 if lower_is_better else ratio > 1
    tone: Tone = "plain" if abs(ratio - 1) < 0.005 else "good" if good else "bad"
    return KeyNumber(
        title, text, change(ratio), f"baseline {with_unit(base.value, unit)}", tone=tone
    )


def _flips_words(view: QualityView) -> str:
    return f"{view.lost} lost, {view.gained} gained" if is_compared(view) else "not compared"


def _quality_number(view: QualityView, base: QualityView | None) -> KeyNumber:
    value = view.task_success
    if view.not_applicable or value.value is None:
        reason = view.not_applicable or value.missing or "not measured"
        return KeyNumber("Tasks right", reason, tone="muted")
    if base is None or base is view or base.task_success.value is None:
        return KeyNumber("Tasks right", share(value.value))
    return KeyNumber(
        "Tasks right",
        share(value.value),
        view.outcome,
        f"baseline {share(base.task_success.value)}",
        _flips_words(view),
        QUALITY_TONES[view.outcome],
    )


def _glance(summary: Summary, names: Names, point: PointRow | None) -> Table:
    boundaries: dict[str, list[str]] = {}
    for one in summary.boundaries:
        words = one.words if len(summary.workloads) < 2 else f"{one.workload}: {one.words}"
        boundaries.setdefault(one.variant, []).append(words)
    quality = {view.variant: view for view in summary.quality}
    workload = point.workload if point else ""
    throughput, tpot, _ = _speed_keys(summary, workload)
    columns = [
        Column("Variant"),
        Column("Throughput", numeric=True),
        Column(metric_of(tpot).title, numeric=True),
        Column("SLO"),
        Column("Quality"),
        Column("Verdict"),
    ]
    here = _rows_at(summary, point)
    rows = [
        [
            Cell(tag=names.tag(variant)),
            _speed_cell(here.get(variant), throughput, _why_no_speed(summary, variant, point)),
            _speed_cell(here.get(variant), tpot, _why_no_speed(summary, variant, point)),
            _boundary_cell(boundaries.get(variant), summary),
            _quality_cell(quality.get(variant)),
            _verdict_cell(summary, variant),
        ]
        for variant in names.order
    ]
    at = f"; speed at {load_title((point.kind, point.level)).lower()}" if point else ""
    return Table(
        f"Every variant at a glance{at}.", columns, rows, "The study has no variants.", even=True
    )


def _rows_at(summary: Summary, point: PointRow | None) -> dict[str, PointRow]:
    if point is None:
        return {}
    load = (point.workload, point.kind, point.level)
    return {
        row.variant: row for row in summary.points if (row.workload, row.kind, row.level) == load
    }


def _why_no_speed(summary: Summary, variant: str, point: PointRow | None) -> str:
    """Return why a variant has no number at the load that the table shows, if it shows one."""
    valid = [row.valid for row in summary.points if row.variant == variant]
    if not valid:
        return "not measured"
    if not any(valid):
        return "no valid point"
    return "not measured at this load" if point else "no load in common"


def _speed_cell(row: PointRow | None, key: str, none: str) -> Cell:
    if row is None or key not in row.metrics:
        return Cell(none, tone="muted")
    value = row.metrics[key]
    if not row.valid:
        return Cell(shown(value, key), ["invalid"], tone="muted")
    notes = []
    if value.ratio_to_baseline is not None and value.ratio_to_baseline != 1:
        higher = metric_of(key).better == "higher"
        notes.append(times(value.ratio_to_baseline) if higher else change(value.ratio_to_baseline))
    if cut := cut_words(row):
        notes.append(cut)
    return Cell(shown(value, key), notes, tone="plain" if value.value is not None else "muted")


def _boundary_cell(words: list[str] | None, summary: Summary) -> Cell:
    if not summary.slo:
        return Cell("no limits set", tone="muted")
    if not words:
        return Cell("not measured", tone="muted")
    return Cell("; ".join(words))


def _quality_cell(view: QualityView | None) -> Cell:
    if view is None:
        return Cell("not measured", tone="muted")
    chip = Chip(view.outcome, QUALITY_TONES[view.outcome])
    if view.not_applicable:
        return Cell(chips=[chip], notes=[view.not_applicable], tone="muted")
    compared = view.outcome not in ("baseline", "not measured")
    changed = [_flips_words(view)] if compared else []
    return Cell(chips=[chip], notes=changed)


_REJECTED: dict[bool | None, Chip] = {
    True: Chip("not chosen"),
    False: Chip("rejected", "bad"),
    None: Chip("undecided", "warn"),
}


def _verdict_cell(summary: Summary, variant: str) -> Cell:
    made = summary.decision
    if variant == made.variant:
        return Cell(chips=[Chip("recommended", "good")])
    candidate = next((one for one in made.candidates if one.variant == variant), None)
    if variant in made.rejected:
        why = made.rejected[variant]
        qualifies = candidate.qualifies if candidate else False
        return Cell(why[0] if why else "", chips=[_REJECTED[qualifies]])
    if candidate is None or candidate.qualifies is None:
        return Cell(chips=[Chip("undecided", "warn")])
    if candidate.qualifies:
        return Cell(chips=[Chip("qualifies", "plain")])
    failed = [gate.why for gate in candidate.gates if gate.passed is False]
    return Cell(failed[0] if failed else "", chips=[Chip("rejected", "bad")])


def _rollback(summary: Summary, names: Names) -> Callout:
    made = summary.decision
    if not made.rollback:
        text = Text("Nothing new is to be rolled out, so there is nothing to roll back.")
        return Callout("Rollback", "plain", [text])
    words = [rollback.words for rollback in made.rollback]
    hidden = len(words) - MOST_CONDITIONS
    if hidden > 1:
        words = [*words[:MOST_CONDITIONS], f"{hidden} more conditions stand under Decision."]
    blocks: list[Block] = [Text("when one of these holds:"), Bullets(words)]
    if made.variant == summary.baseline:
        blocks[0] = Text("Something is wrong when one of these holds:")
        return Callout("Watch", "warn", blocks, names.tag(summary.baseline))
    if made.rollback_command:
        blocks.append(Code(shlex.join(made.rollback_command), "With this command"))
    return Callout("Roll back to", "warn", blocks, names.tag(summary.baseline))
