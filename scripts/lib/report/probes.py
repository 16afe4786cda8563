"""Results, third part: quality by axis, what was lost and gained, and what it looked like."""

from __future__ import annotations

from collections.abc import Sequence

from scripts.lib.analysis.comparison.quality_need import is_compared
from scripts.lib.analysis.summary import AskedHow, AxisQuality, QualityView, Summary, Value
from scripts.lib.report.blocks import (
    Block,
    Bullets,
    Cell,
    Chip,
    Column,
    Details,
    Example,
    Link,
    Table,
    Text,
    Tone,
)
from scripts.lib.report.names import Names
from scripts.lib.report.numbers import EN_DASH, number, plural, share

OUTCOME_TONES: dict[str, Tone] = {
    "baseline": "plain",
    "non-inferior": "good",
    "worse": "bad",
    "undecided": "warn",
    "not measured": "muted",
}


def quality_blocks(summary: Summary, names: Names) -> list[Block]:
    """Return the verdicts, the axes, and folded examples of lost and gained items."""
    if not summary.quality:
        return [Text("Quality was not measured in this study.", "warn")]
    blocks: list[Block] = [*_asked(summary, names), _verdicts(summary, names)]
    blocks += _axes(summary, names)
    for view in summary.quality:
        blocks += _flips(view, names)
    return blocks


def _asked(summary: Summary, names: Names) -> list[Block]:
    """Say how the questions were asked, and what asking several at a time can do to answers."""
    ways: dict[str, list[str]] = {}
    together = False
    for view in summary.quality:
        if view.asked and (words := _asked_words(view.asked)):
            ways.setdefault(words, []).append(names.text(view.variant))
            together |= (view.asked.concurrency or 1) > 1
    if not ways:
        return []
    several = len(ways) > 1
    said = [f"{words} ({', '.join(who)})" if several else words for words, who in ways.items()]
    text = f"The questions were asked at {'; at '.join(said)}."
    if together:
        text += (
            " With several at a time the composition of a batch can change answers, greedy ones "
            "(temperature 0) too: a single item lost or gained may come from that."
        )
    return [Text(text)]


def _asked_words(asked: AskedHow) -> str:
    parts = []
    if asked.temperature is not None:
        parts.append(f"temperature {number(asked.temperature)}")
    if asked.seed is not None:
        parts.append(f"seed {asked.seed}")
    if asked.concurrency is not None:
        parts.append(f"{asked.concurrency} at a time")
    return ", ".join(parts)


def _verdicts(summary: Summary, names: Names) -> Table:
    tells_cut = any(_cut(view) is not None for view in summary.quality)
    columns = [
        Column("Variant"),
        Column("Verdict"),
        Column("Tasks right", numeric=True),
        Column("Format right", numeric=True),
        Column("Tool calls right", numeric=True),
        Column("Similarity to the baseline", numeric=True),
        *([Column("Cut off", numeric=True)] if tells_cut else []),
        Column("Lost and gained"),
    ]
    rows = []
    for view in summary.quality:
        *cells, flips = _verdict(view, names)
        rows.append([*cells, *([_cut_cell(view)] if tells_cut else []), flips])
    caption = (
        "Quality against the baseline's own answers: an item that the baseline got wrong too "
        "is not held against a variant. An item passes by its main measure: the task, else the "
        "tool calls, else the format; each column counts the items that have its measure. Ranges "
        "in the columns are 95 % confidence intervals (Wilson's). Non-inferior: the 90 % interval "
        "of the difference in items passed (Tango's) stays above minus the margin. Worse: it does "
        "not, and McNemar's exact test finds that more were lost than gained."
    )
    if tells_cut:
        caption += (
            " An answer that reached its max_tokens is cut off: it may be wrong for its length "
            "alone."
        )
    return Table(caption, columns, rows)


def _verdict(view: QualityView, names: Names) -> list[Cell]:
    measured = view.source and view.outcome != "not measured"
    head = Cell(tag=names.tag(view.variant), sources=[Link(view.source)] if measured else [])
    words = view.not_applicable or view.words
    chip = Chip(view.outcome, OUTCOME_TONES[view.outcome])
    cells = [
        head,
        Cell(words, chips=[chip]),
        _share_cell(view.task_success),
        _share_cell(view.format_accuracy),
        _share_cell(view.tool_success),
        _share_cell(view.similarity),
    ]
    if view.outcome == "baseline":
        return [*cells, Cell("the reference")]
    if view.outcome == "not measured" or view.not_applicable:
        return [*cells, Cell("not measured", tone="muted")]
    if not is_compared(view):
        return [*cells, Cell("not compared", tone="muted")]
    return [*cells, Cell(f"{view.lost} lost, {view.gained} gained", _test_words(view))]


def _cut(view: QualityView) -> int | None:
    told = [axis.cut for axis in view.axes if axis.cut is not None]
    return sum(told) if told else None


def _cut_cell(view: QualityView) -> Cell:
    cut = _cut(view)
    if cut is None:
        return Cell("not recorded" if view.axes else "not measured", tone="muted")
    return Cell(f"{cut} of {sum(axis.items for axis in view.axes)}")


def _test_words(view: QualityView) -> list[str]:
    return [] if view.p_value is None else [f"McNemar p = {number(view.p_value)}"]


def _share_cell(value: Value) -> Cell:
    if value.value is None:
        return Cell(value.missing or "not measured", tone="muted")
    notes = []
    if value.low is not None and value.high is not None:
        notes.append(f"{number(100 * value.low)}{EN_DASH}{share(value.high)}")
    if value.n is not None:
        notes.append(f"n = {value.n:,}")
    return Cell(share(value.value), notes)


def _axes(summary: Summary, names: Names) -> list[Block]:
    views = [view for view in summary.quality if view.axes]
    if not views:
        return []
    axes = list(dict.fromkeys(axis.axis for view in views for axis in view.axes))
    columns = [Column("Axis"), *[Column(names.text(view.variant), numeric=True) for view in views]]
    by_axis = {(view.variant, axis.axis): axis for view in views for axis in view.axes}
    if len(views) > 4:
        return [_long_axes(views, names)]
    rows = [
        [
            Cell(axis),
            *[_axis_cell(by_axis.get((view.variant, axis)), view.outcome) for view in views],
        ]
        for axis in axes
    ]
    return [Table("Items right on each axis.", columns, rows)]


def _axis_cell(axis: AxisQuality | None, outcome: str) -> Cell:
    if axis is None:
        return Cell("not measured on this axis", tone="muted")
    notes = _axis_notes(axis, outcome == "baseline")
    if axis.cut:
        notes.append(f"{axis.cut} cut off")
    return Cell(f"{axis.passed} of {axis.items}", notes)


def _axis_notes(axis: AxisQuality, is_baseline: bool) -> list[str]:
    if is_baseline:
        return [f"{axis.items - axis.passed} wrong"]
    if axis.baseline_passed is None:
        return ["not compared with the baseline"]
    notes = [f"{len(axis.lost)} lost, {len(axis.gained)} gained"]
    if axis.baseline_wrong_too:
        notes.append(f"the baseline got {axis.baseline_wrong_too} wrong too")
    if axis.similarity_to_baseline is not None:
        notes.append(f"similarity {share(axis.similarity_to_baseline)}")
    notes.append(f"{axis.identical_to_baseline} identical")
    return notes


def _long_axes(views: Sequence[QualityView], names: Names) -> Table:
    """One row per variant and axis: what fits a page with many variants."""
    rows = [
        [
            Cell(tag=names.tag(view.variant)),
            Cell(axis.axis),
            _axis_cell(axis, view.outcome),
        ]
        for view in views
        for axis in view.axes
    ]
    columns = [Column("Variant"), Column("Axis"), Column("Items right", numeric=True)]
    return Table("Items right on each axis.", columns, rows)


def _flips(view: QualityView, names: Names) -> list[Block]:
    lost = [item for axis in view.axes for item in axis.lost]
    gained = [item for axis in view.axes for item in axis.gained]
    if not (lost or gained or view.examples) or view.outcome == "baseline":
        return []
    lines = []
    if lost:
        lines.append(f"Lost (the baseline was right): {', '.join(lost)}.")
    if gained:
        lines.append(f"Gained (the baseline was wrong): {', '.join(gained)}.")
    blocks: list[Block] = [Bullets(lines)] if lines else []
    blocks += [_example(one, view, names) for one in view.examples]
    title = f"{plural(len(lost), 'item')} lost, {len(gained)} gained"
    if view.examples:
        title += f", {plural(len(view.examples), 'example')}"
    return [Details(title, blocks, names.tag(view.variant))]


def _example(one: dict[str, str], view: QualityView, names: Names) -> Example:
    title = " · ".join(part for part in (one.get("axis", ""), one.get("id", "")) if part)
    return Example(
        title or "one item",
        one.get("prompt") or "(the prompt was not kept)",
        one.get("baseline") or "(an empty answer)",
        one.get("variant") or "(an empty answer)",
        names.tag(view.variant),
        names.tag(names.baseline),
        one.get("baseline_reason", ""),
        one.get("variant_reason", ""),
    )
