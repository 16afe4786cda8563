"""The decision: its gates, what was chosen and rejected, and when to roll back."""

from __future__ import annotations

import shlex

from scripts.lib.analysis.summary import Candidate, Finding, Gate, Rollback, Summary
from scripts.lib.report.blocks import (
    Block,
    Bullets,
    Callout,
    Cell,
    Chip,
    Code,
    Column,
    Details,
    Heading,
    Link,
    Section,
    Table,
    Text,
    Tone,
)
from scripts.lib.report.names import Names
from scripts.lib.report.numbers import sentence, shown
from scripts.lib.report.reasons import headline, reasons

MOST_EVIDENCE = 4
GATES = {
    "starts": "Starts",
    "fits": "Fits in memory",
    "kernel": "Runs as promised",
    "valid": "Was measured soundly",
    "quality": "Keeps quality",
    "slo": "Keeps the SLO",
    "cost": "Cost",
}
OUTCOME_TONES: dict[str, Tone] = {
    "recommended": "good",
    "none qualifies": "bad",
    "undecided": "warn",
}
_GATE_CHIPS: dict[bool | None, Chip] = {
    True: Chip("passed", "good"),
    False: Chip("failed", "bad"),
    None: Chip("not judged", "warn"),
}
_QUALIFIES: dict[bool | None, Chip] = {
    True: Chip("qualifies", "good"),
    False: Chip("rejected", "bad"),
    None: Chip("undecided", "warn"),
}
_SEVERITIES: dict[str, Tone] = {"info": "plain", "warning": "warn", "critical": "bad"}


def finding_blocks(summary: Summary, names: Names) -> list[Block]:
    """Return each diagnosis as a box: evidence, likely cause, next check.

    Variants to which the same happened under the same workload share a box.
    """
    if not summary.findings:
        return [Text("No rule of the diagnosis found anything to report.", "muted")]
    groups: dict[tuple[str, str | None, str], list[Finding]] = {}
    for finding in summary.findings:
        groups.setdefault((finding.rule, finding.workload, finding.cause), []).append(finding)
    return [_finding(group, names) for group in groups.values()]


def _finding(group: list[Finding], names: Names) -> Callout:
    first = group[0]
    title = " ".join(
        word.upper() if word in ("ttft", "tpot", "kv", "slo", "gpu", "oom", "api") else word
        for word in first.rule.replace("-", " ").replace("_", " ").split()
    )
    title = title[:1].upper() + title[1:]
    same_place = len({finding.where for finding in group}) == 1
    places = [first.where if same_place else None, first.workload]
    where = " of ".join(place for place in places if place)
    evidence = [line for finding in group for line in _evidence(finding, len(group), same_place)]
    blocks: list[Block] = [
        Bullets(evidence),
        Text(f"Likely cause: {first.cause}"),
        Text(f"Next check: {first.next_check}"),
    ]
    tag = names.tag(first.variant) if first.variant and len(group) == 1 else None
    title += f" ({where})" if where else ""
    return Callout(title, _SEVERITIES[first.severity], blocks, tag)


def _evidence(finding: Finding, sharing: int, same_place: bool) -> list[str]:
    """Return a finding's evidence; in a box that variants share, each line names its own."""
    lines = list(finding.evidence[:MOST_EVIDENCE])
    if len(finding.evidence) > MOST_EVIDENCE:
        lines.append(f"and {len(finding.evidence) - MOST_EVIDENCE} more in summary.json")
    if sharing == 1:
        return lines
    whose = ", ".join(name for name in (finding.variant, not same_place and finding.where) if name)
    return [f"{whose}: {line}" if whose else line for line in lines]


def decision(summary: Summary, names: Names) -> Section:
    """What was chosen and why, what was rejected and why, its limits, and the way back."""
    made = summary.decision
    chosen = names.tag(made.variant) if made.variant else None
    tone = OUTCOME_TONES[made.outcome]
    why = reasons(summary)
    blocks: list[Block] = [
        Callout(headline(made), tone, [Bullets(why)] if why else [], chosen),
        Heading("Gates"),
        _gate_table(summary, names),
        _gate_details(summary, names),
        Heading("Rejected"),
        *_rejected(summary, names),
        Heading("Known limitations"),
        *_sentences(list(made.limitations), "No limitation was noted."),
        Heading("Rollback"),
        *rollback_blocks(summary),
    ]
    return Section("decision", "Decision", blocks)


def _gate_table(summary: Summary, names: Names) -> Table:
    candidates = summary.decision.candidates
    present = {gate.gate for candidate in candidates for gate in candidate.gates}
    kinds = [kind for kind in GATES if kind in present]
    columns = [
        Column("Variant"),
        *[Column(GATES[kind]) for kind in kinds],
        Column("Verdict"),
        Column("Score", numeric=True),
    ]
    rows = [
        [
            Cell(tag=names.tag(candidate.variant)),
            *[_gate_cell(candidate, kind, summary) for kind in kinds],
            Cell(chips=[_QUALIFIES[candidate.qualifies]]),
            _score(candidate),
        ]
        for candidate in candidates
    ]
    ranked_by = summary.decision.ranked_by
    caption = f"Each variant goes through the gates; those that qualify are ranked by {ranked_by}."
    return Table(caption, columns, rows, "There was nothing to judge.", compact=True)


def _gate_cell(candidate: Candidate, kind: str, summary: Summary) -> Cell:
    found = [gate for gate in candidate.gates if gate.gate == kind]
    if not found:
        return Cell("not reached", tone="muted")
    return Cell(chips=[_gate_chip(gate, summary) for gate in found])


def _gate_chip(gate: Gate, summary: Summary) -> Chip:
    """Return a gate's verdict; a cost that nobody asked for is not one left unjudged."""
    if gate.gate == "cost" and gate.passed is None and summary.price_usd_per_hour is None:
        return Chip("no price", "muted")
    return _GATE_CHIPS[gate.passed]


def _score(candidate: Candidate) -> Cell:
    text = shown(candidate.score, "")
    return Cell(text, tone="plain" if candidate.score.value is not None else "muted")


def _gate_details(summary: Summary, names: Names) -> Details:
    rows = [
        [
            Cell(tag=names.tag(candidate.variant)),
            Cell(GATES[gate.gate]),
            Cell(chips=[_gate_chip(gate, summary)]),
            Cell(gate.why, sources=_source(gate)),
        ]
        for candidate in summary.decision.candidates
        for gate in candidate.gates
    ]
    columns = [Column("Variant"), Column("Gate"), Column("Passed?"), Column("Why")]
    table = Table("In the order of judging.", columns, rows, "No gate was reached.")
    return Details("Every gate with its reason", [table])


def _source(gate: Gate) -> list[Link]:
    return [Link(gate.source)] if gate.source else []


def _rejected(summary: Summary, names: Names) -> list[Block]:
    made = summary.decision
    if not made.rejected:
        return [Text("No variant was rejected.", "muted")]
    rows = [
        [
            Cell(tag=names.tag(variant)),
            Cell(" ".join(map(sentence, whys)) or "No reason was given."),
        ]
        for variant, whys in made.rejected.items()
    ]
    return [Table("What was given up, and why.", [Column("Variant"), Column("Why")], rows)]


def _sentences(items: list[str], none: str) -> list[Block]:
    return [Bullets([sentence(one) for one in items])] if items else [Text(none, "muted")]


def rollback_blocks(summary: Summary) -> list[Block]:
    """Return when to go back (words and PromQL) and the command that does it."""
    made = summary.decision
    blocks: list[Block] = [_condition(rollback) for rollback in made.rollback]
    if not made.rollback:
        blocks.append(Text("There is no condition: nothing new is to be rolled out.", "muted"))
    if made.rollback_command:
        blocks.append(Code(shlex.join(made.rollback_command), "Go back with this command"))
    return blocks


def _condition(rollback: Rollback) -> Callout:
    lasting = f" (for {rollback.for_})" if rollback.for_ else ""
    blocks: list[Block] = [Text(rollback.words)]
    if rollback.expression:
        blocks.append(Code(rollback.expression, f"PromQL{lasting}"))
    else:
        blocks.append(Text("There is no metric for it: look it up by hand.", "muted"))
    blocks.append(Text(f"The threshold comes from {rollback.from_}.", "muted"))
    return Callout(rollback.name, "plain", blocks)
