"""Results, first part: what ran, what its start-up left room for, and what did not start."""

from __future__ import annotations

from scripts.lib.analysis.summary import FailureRow, LedgerRow, Summary, Value
from scripts.lib.plan.models import Evidence, Verdict
from scripts.lib.report.blocks import (
    Block,
    Callout,
    Cell,
    Chip,
    Code,
    Column,
    Details,
    Fact,
    Facts,
    Link,
    Table,
    Text,
    Tone,
)
from scripts.lib.report.names import Names, verdict_tone
from scripts.lib.report.numbers import change, number, with_unit

_LEVELS = {
    "table": "Rule table",
    "log": "Log line",
    "weights": "Size of the loaded weights",
    "speed": "Speed",
}
_SUPPORT: dict[bool | None, Chip] = {
    True: Chip("supports", "good"),
    False: Chip("contradicts", "bad"),
    None: Chip("says nothing", "muted"),
}


def kernel_blocks(summary: Summary, names: Names) -> list[Block]:
    """Return the kernel verdicts with their evidence, quoted."""
    imported = summary.imported_from is not None
    unnamed = "no kernel is named" if imported else "no kernel named in the log"
    columns = [Column("Variant"), Column("Verdict"), Column("Promised"), Column("What really ran")]
    rows = [
        [
            Cell(tag=names.tag(verdict.variant)),
            Cell(verdict.summary, chips=[Chip(verdict.verdict, verdict_tone(verdict))]),
            Cell(verdict.promised_scheme, code=True),
            Cell(
                verdict.real_scheme,
                notes=verdict.kernels or [unnamed],
                sources=[Link(f"kernels/{verdict.variant}.json")],
                code=True,
            ),
        ]
        for verdict in summary.verdicts
    ]
    caption = "Did the engine run what the checkpoint promises? The name of a method is no proof."
    table = Table(caption, columns, rows, "No kernel verdict: no server started.")
    return [table, *[_evidence(summary, verdict, names) for verdict in summary.verdicts]]


def _evidence(summary: Summary, verdict: Verdict, names: Names) -> Details:
    columns = [Column("Evidence"), Column("What it says"), Column("For the verdict")]
    rows = [
        [Cell(_LEVELS[piece.level]), Cell(piece.says), Cell(chips=[_SUPPORT[piece.supports]])]
        for piece in verdict.evidence
    ]
    blocks: list[Block] = [Table("From weak to strong.", columns, rows, "There is no evidence.")]
    blocks += [_quoted(piece) for piece in verdict.evidence if piece.line]
    blocks += [
        Code(degradation.line, f"Sign of a degradation: {degradation.kind}")
        for degradation in summary.degradations.get(verdict.variant, [])
    ]
    return Details("Evidence", blocks, names.tag(verdict.variant))


def _quoted(piece: Evidence) -> Code:
    return Code(piece.line or "", f"{_LEVELS[piece.level]}, quoted")


def ledger_blocks(summary: Summary, names: Names) -> list[Block]:
    """Return the start-up ledger: against the baseline, and plan against measured.

    An imported study has no plan: what ran is already known.
    """
    planned = summary.imported_from is None or bool(summary.plans)
    columns = [
        Column("Variant"),
        Column("Weights", numeric=True),
        Column("KV cache", numeric=True),
        Column("Maximum concurrency", numeric=True),
        Column("Graph capture", numeric=True),
    ]
    rows = [
        [
            Cell(tag=names.tag(row.variant), sources=[Link(row.source)]),
            _against(row.weights_gib, row.planned_weights_gib if planned else None, "GiB"),
            _against(
                row.kv_cache_tokens, row.planned_kv_cache_tokens if planned else None, "tokens"
            ),
            _against(row.max_concurrency, None, "requests"),
            _against(row.graph_capture_gib, None, "GiB"),
        ]
        for row in summary.ledger
    ]
    caption = (
        "What start-up cost and left room for; percentages in the second line are against the "
        "baseline. Maximum concurrency is the engine's own figure, for requests of full length."
    )
    table = Table(caption, columns, rows, "No server reported its start-up.")
    return [table, *([_times(summary.ledger, names)] if summary.ledger else [])]


def _against(value: Value, planned: Value | None, unit: str) -> Cell:
    if value.value is None:
        return Cell(value.missing or "not measured", tone="muted")
    notes = []
    if value.ratio_to_baseline is not None and value.ratio_to_baseline != 1:
        notes.append(change(value.ratio_to_baseline))
    if planned is not None:
        notes.append(_plan_words(value.value, planned, unit))
    digits = 4 if unit == "GiB" else 3
    return Cell(with_unit(value.value, unit, digits), notes=notes)


def _plan_words(measured: float, planned: Value, unit: str) -> str:
    if planned.value is None:
        return f"plan: {planned.missing or 'none'}"
    words = f"plan: {with_unit(planned.value, unit, digits=4)}"
    if planned.value:
        words += f" (measured {change(measured / planned.value)})"
    return words


def _times(ledger: list[LedgerRow], names: Names) -> Details:
    columns = [
        Column("Variant"),
        Column("Start to ready", numeric=True),
        Column("Loading the model", numeric=True),
        Column("Compiling", numeric=True),
    ]
    rows = [
        [Cell(tag=names.tag(row.variant))]
        + [_seconds(value) for value in (row.ready_s, row.model_load_s, row.compile_s)]
        for row in ledger
    ]
    text = Text(
        "Whether files came from the page cache is unknown, so these times compare nothing."
    )
    table = Table("Start-up times, not comparable.", columns, rows, compact=True)
    return Details("Start-up times (not comparable)", [text, table])


def _seconds(value: Value) -> Cell:
    if value.value is None:
        return Cell(value.missing or "not measured", tone="muted")
    return Cell(with_unit(value.value, "s"))


def failure_blocks(summary: Summary, names: Names) -> list[Block]:
    """Return one box per variant that did not start or died, with the cause and a hint."""
    grouped: dict[tuple[str, str, str], list[FailureRow]] = {}
    for row in summary.failures:
        key = (row.variant, row.failure.kind, row.failure.line)
        grouped.setdefault(key, []).append(row)
    boxes: list[Block] = [_failure(rows, names) for rows in grouped.values()]
    return boxes or [Text("Every variant started and stayed up.", "good")]


def _failure(rows: list[FailureRow], names: Names) -> Callout:
    first = rows[0].failure
    stages = " and ".join(dict.fromkeys(row.stage for row in rows))
    sources = [Link(path) for path in dict.fromkeys(row.source for row in rows)]
    blocks: list[Block] = [
        Text(first.hint or "There is no hint for this failure."),
        Code(first.line, "Decisive line"),
        Facts([Fact("Source", "", sources=sources)]),
    ]
    return Callout(f"Failed at {stages}: {first.kind}", "bad", blocks, names.tag(rows[0].variant))


def plan_blocks(summary: Summary, names: Names) -> list[Block]:
    """Return what was expected before anything ran."""
    columns = [
        Column("Variant"),
        Column("Expected path"),
        Column("Does it fit?"),
        Column("Warnings"),
    ]
    tones: dict[str, Tone] = {"native": "good", "degraded": "warn", "unsupported": "bad"}
    fits = {True: "yes", False: "no", None: "unknown"}
    rows = [
        [
            Cell(tag=names.tag(plan.variant)),
            Cell(
                plan.expected.why,
                chips=[Chip(plan.expected.kind, tones.get(plan.expected.kind, "muted"))],
                notes=[f"source: {plan.expected.source}"] if plan.expected.source else [],
            ),
            Cell(fits[plan.fits], notes=[plan.fits_why] if plan.fits_why else []),
            Cell("; ".join(plan.warnings) or "none", sources=[Link(f"plan/{plan.variant}.json")]),
        ]
        for plan in summary.plans
    ]
    device = ", ".join(sorted({plan.device for plan in summary.plans})) or "this machine"
    floors = [
        f"{names.text(plan.variant)}: {number(plan.tpot_floor_ms.value)} {plan.tpot_floor_ms.unit}"
        for plan in summary.plans
        if plan.tpot_floor_ms
    ]
    blocks: list[Block] = [Table(f"The plan for {device}.", columns, rows, "There is no plan.")]
    if floors:
        words = "; ".join(floors)
        blocks.append(Text(f"Lowest TPOT that memory bandwidth allows at concurrency 1: {words}."))
    return [Details("What the plan expected", blocks)] if summary.plans else []
