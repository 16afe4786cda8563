"""From a summary to a typed report: every word, number and figure, in reading order."""

from __future__ import annotations

from collections.abc import Sequence

from scripts.lib.analysis.comparison.comparisons import COMPARISON_WORDS
from scripts.lib.analysis.summary import PointRow, Summary
from scripts.lib.report.answer import answer
from scripts.lib.report.blocks import (
    Block,
    Bullets,
    Callout,
    Cell,
    Column,
    Details,
    Fact,
    Facts,
    Figure,
    Figures,
    Heading,
    Link,
    Report,
    Section,
    Table,
    Text,
)
from scripts.lib.report.kernels import failure_blocks, kernel_blocks, ledger_blocks, plan_blocks
from scripts.lib.report.names import Names
from scripts.lib.report.numbers import plural
from scripts.lib.report.probes import quality_blocks
from scripts.lib.report.setting import environment, slo, workload
from scripts.lib.report.speed import noise_blocks, speed_blocks, timeline_blocks
from scripts.lib.report.verdicts import decision, finding_blocks


def build_report(summary: Summary) -> Report:
    """Return everything a report says, ready to be printed by a template."""
    summary = _with_sound_ratios(summary)
    names = Names(summary)
    sections = [
        environment(summary, names),
        workload(summary, names),
        slo(summary),
        _results(summary, names),
        decision(summary, names),
        _method(summary),
        _files(summary),
    ]
    return Report(
        summary.title or summary.study,
        summary.study,
        _subtitle(summary),
        answer(summary, names),
        sections,
        _footer(summary),
        list(_figures_in([block for section in sections for block in section.blocks])),
        frozenset(summary.files),
    )


def _with_sound_ratios(summary: Summary) -> Summary:
    """Return the summary without ratios to a baseline whose own point is invalid."""
    sound = {
        (row.workload, row.kind, row.level)
        for row in summary.points
        if row.variant == summary.baseline and row.valid
    }
    points = [
        row if (row.workload, row.kind, row.level) in sound else _without_ratios(row)
        for row in summary.points
    ]
    return summary.model_copy(update={"points": points})


def _without_ratios(row: PointRow) -> PointRow:
    metrics = {
        key: value.model_copy(update={"ratio_to_baseline": None})
        for key, value in row.metrics.items()
    }
    return row.model_copy(update={"metrics": metrics})


def _subtitle(summary: Summary) -> str:
    device = ", ".join(gpu.name for gpu in summary.host.gpus) or summary.host.cpu.model
    device = f"on {device}" if device != "not recorded" else "on a machine that was not recorded"
    engines = ", ".join(
        f"{name} {version}"
        for engine in summary.engines
        for name, version in sorted(engine.versions.items())
        if name.startswith("vllm")
    )
    parts = [plural(len(summary.variants), "variant"), device]
    text = " ".join(parts) + (f", served with {engines}" if engines else "")
    if summary.imported_from is not None:
        text += f". Imported, not measured by this workflow: {summary.imported_from.rstrip('.')}"
    return text


def _results(summary: Summary, names: Names) -> Section:
    blocks: list[Block] = [
        Heading("What really ran"),
        *kernel_blocks(summary, names),
        *plan_blocks(summary, names),
        Heading("Start-up ledger"),
        *ledger_blocks(summary, names),
        Heading("Speed by load"),
        *speed_blocks(summary, names),
        Heading("Noise floor"),
        *noise_blocks(summary),
        Heading("Quality"),
        *quality_blocks(summary, names),
        Heading("Diagnosis"),
        *finding_blocks(summary, names),
        Heading("Failures"),
        *failure_blocks(summary, names),
        Heading("Over time"),
        *timeline_blocks(summary, names),
    ]
    return Section("results", "Results", blocks)


def _method(summary: Summary) -> Section:
    formulas = [Fact(name, text) for name, text in summary.formulas.items()]
    if summary.comparisons:
        tables = ("tables/comparisons.csv", "tables/points.csv")
        sources = [Link(path) for path in tables if path in summary.files]
        formulas.append(Fact("better and worse", COMPARISON_WORDS, sources=sources))
    missing = list(summary.not_measured)
    blocks: list[Block] = [
        Heading("Formulas"),
        Facts(formulas) if formulas else Text("No formula was recorded.", "muted"),
        Heading("Not measured"),
        Bullets(missing)
        if missing
        else Text("Everything the study asks for was measured.", "muted"),
    ]
    return Section("method", "Method", blocks)


def _files(summary: Summary) -> Section:
    rows = [
        [Cell(sources=[Link(path)]), Cell(digest, code=True)]
        for path, digest in sorted(summary.files.items())
    ]
    table = Table(
        "Paths are relative to the study's folder.",
        [Column("File"), Column("SHA-256")],
        rows,
        "The summary lists no raw file.",
    )
    lead = "Every number above comes from one of these files; the archive holds them all."
    files = Details(f"{plural(len(rows), 'raw file')} with SHA-256", [table])
    return Section("files", "Raw files", [files], lead)


def _footer(summary: Summary) -> list[str]:
    made = summary.provenance
    commit = f"Git commit {made.git_commit[:12]}" if made.git_commit else "Git commit unknown"
    dirty = " with uncommitted changes" if made.git_dirty else ""
    return [
        f"Study {summary.study}, configuration {made.study_hash}, load measured until "
        f"{made.created_at}.",
        f"{commit}{dirty}. Workflow version {made.tool_version}.",
    ]


def _figures_in(blocks: Sequence[Block]) -> list[Figure]:
    found: list[Figure] = []
    for block in blocks:
        if isinstance(block, Figures):
            found += block.items
        elif isinstance(block, Details | Callout):
            found += _figures_in(block.blocks)
    return found
