"""The parts before the results: environment, workload, SLO."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence

from scripts.lib.analysis.points.remarks import thin_samples
from scripts.lib.analysis.summary import EngineView, Summary, VariantView, WorkloadView
from scripts.lib.report.blocks import (
    Block,
    Bullets,
    Callout,
    Cell,
    Code,
    Column,
    Details,
    Fact,
    Facts,
    Heading,
    Link,
    Section,
    Table,
    Text,
)
from scripts.lib.report.names import Names
from scripts.lib.report.numbers import number, plural, size, tidy, with_unit

_LENGTHS = ("min", "p50", "mean", "p95", "max")


def environment(summary: Summary, names: Names) -> Section:
    """The machine, the engines, the variants, and the state of the workflow."""
    imported = summary.imported_from is not None
    blocks: list[Block] = [
        Heading("Machine"),
        Facts(_machine(summary)),
        Heading("Engines"),
        *[block for engine in summary.engines for block in _engine(engine, imported)],
        Heading("Variants"),
        _variants(summary, names),
        Details(
            "How each variant was served", [_serving(v, summary, names) for v in summary.variants]
        ),
        Heading("Workflow"),
        Facts(_provenance(summary)),
    ]
    if imported:
        blocks[:0] = [Heading("Source"), Facts(_source(summary))]
    lead = "Numbers hold for this machine and these versions; another GPU needs its own run."
    return Section("environment", "Environment", blocks, lead)


def _machine(summary: Summary) -> list[Fact]:
    host = summary.host
    cores = "number of cores not recorded"
    if host.cpu.usable_cores is not None and host.cpu.logical_cores is not None:
        cores = f"{host.cpu.usable_cores} of {host.cpu.logical_cores} logical cores usable"
    memory = "not recorded" if host.memory_gib is None else with_unit(host.memory_gib, "GiB")
    flags = f"; {', '.join(host.cpu.flags)}" if host.cpu.flags else ""
    gpus = [
        f"{gpu.index}: {gpu.name}, {gpu.memory_mib:,} MiB, compute capability "
        f"{gpu.compute_capability}"
        for gpu in host.gpus
    ]
    source = _known(summary, "host.json")
    return [
        Fact("GPU", "; ".join(gpus) or _no_gpu(summary), sources=source),
        Fact("Driver", _driver(summary)),
        Fact("CPU", f"{host.cpu.model}; {cores}{flags}"),
        Fact("Memory", memory),
        Fact("System", f"{host.os}, Python {host.python}"),
        Fact("Price", _price(summary.price_usd_per_hour)),
    ]


def _no_gpu(summary: Summary) -> str:
    reason = summary.host.no_gpu_reason or ""
    if summary.imported_from is not None:
        return f"not recorded: {reason}" if reason else "not recorded"
    return f"none. {reason}".strip()


def _driver(summary: Summary) -> str:
    host = summary.host
    if not host.driver and summary.imported_from is not None:
        return "not recorded"
    if not host.driver:
        return "no NVIDIA driver" if not host.gpus else "unknown"
    return f"{host.driver}, CUDA {host.cuda_driver or 'version unknown'}"


def _price(usd_per_hour: float | None) -> str:
    if usd_per_hour is None:
        return "not given in the study, so no costs are shown"
    return f"{tidy(usd_per_hour)} USD per hour, as the study says"


def _source(summary: Summary) -> list[Fact]:
    """Say that somebody else measured, and when."""
    return [
        Fact("Imported from", summary.imported_from or ""),
        Fact("Measured at", summary.measured_at or "not recorded"),
        Fact("By this workflow", "only the analysis: it started no server and sent no request"),
    ]


def _engine(engine: EngineView, imported: bool) -> list[Block]:
    versions = ", ".join(f"{name} {version}" for name, version in sorted(engine.versions.items()))
    if imported:
        return [Facts([Fact("Versions", versions or "not recorded")])]
    lock = engine.lock or "none: this engine is not an environment of ours"
    facts = [
        Fact("Engine", f"{engine.name} ({engine.kind})"),
        Fact("Versions", versions or "unknown: the engine does not tell"),
        Fact("Lock file", lock, code=engine.lock is not None),
    ]
    if engine.lock_sha256:
        facts.append(Fact("Lock file's SHA-256", engine.lock_sha256, code=True))
    return [Facts(facts)]


def _variants(summary: Summary, names: Names) -> Table:
    columns = [
        Column("Variant"),
        Column("Weights and activations"),
        Column("Checkpoint"),
        Column("Size on disk", numeric=True),
        Column("Ideal size", numeric=True),
        Column("GPUs", numeric=True),
    ]
    rows = [
        [
            Cell(tag=names.tag(variant.name)),
            Cell(variant.scheme_words),
            Cell(
                variant.checkpoint,
                notes=[variant.checkpoint_source],
                sources=[Link(variant.manifest)] if variant.manifest else [],
            ),
            Cell(size(variant.checkpoint_bytes)),
            Cell(size(variant.ideal_bytes)),
            Cell(str(variant.gpus) if variant.gpus else "none"),
        ]
        for variant in summary.variants
    ]
    caption = (
        "Ideal size is parameters × bits / 8; scales, zero points and unquantized layers come on "
        "top of it."
    )
    return Table(caption, columns, rows, "The study has no variants.")


def _serving(variant: VariantView, summary: Summary, names: Names) -> Callout:
    command = shlex.join(variant.command) if variant.command else None
    without = "No server was started for this variant."
    if summary.imported_from is not None:
        without = "The import file does not say with which command it was served."
    blocks: list[Block] = [
        Code(command, "Command") if command else Text(without),
        Code(shlex.join(variant.serving_flags) or "(none)", "Serving flags of this variant"),
    ]
    if variant.environment:
        lines = "\n".join(f"{key}={value}" for key, value in sorted(variant.environment.items()))
        blocks.append(Code(lines, "Environment variables"))
    return Callout("", "plain", blocks, names.tag(variant.name))


def _provenance(summary: Summary) -> list[Fact]:
    made = summary.provenance
    state = {True: "with uncommitted changes", False: "clean", None: "state unknown"}
    commit = f"{made.git_commit} ({state[made.git_dirty]})" if made.git_commit else "unknown"
    versions = ", ".join(f"{name} {text}" for name, text in sorted(made.workflow_versions.items()))
    return [
        Fact("Study", f"{summary.study}, configuration hash {made.study_hash}"),
        Fact("Load measured until", made.created_at),
        Fact("Machine time", _machine_time(summary)),
        Fact("Git commit", commit),
        Fact("Workflow", f"version {made.tool_version}; {versions}".rstrip("; ")),
    ]


def _machine_time(summary: Summary) -> str:
    if summary.machine_hours is None:
        return "not recorded"
    measured = "from the start to the last token of every load measurement"
    said = "as the import file says" if summary.imported_from else measured
    text = f"{with_unit(summary.machine_hours, 'hours')}, {said}"
    if summary.study_cost_usd is None:
        return text
    return f"{text}: {with_unit(summary.study_cost_usd, 'USD')} at the study's price"


def workload(summary: Summary, names: Names) -> Section:
    """What was sent, how often, and how long prompts and answers really were."""
    blocks: list[Block] = []
    for one in summary.workloads:
        blocks += [
            Heading(one.name),
            Facts(_workload(one, summary.imported_from is not None)),
            _lengths(one, names),
        ]
    if not blocks:
        blocks.append(Text("The study has no workload.", "muted"))
    return Section("workload", "Workload", blocks)


def _workload(one: WorkloadView, imported: bool) -> list[Fact]:
    decoding = ", ".join(_setting(key, value) for key, value in sorted(one.decoding.items()))
    without = "not recorded" if imported else "none: the prompts are made from the seed"
    return [
        Fact("Data set", one.dataset_words),
        Fact(
            "Data set's SHA-256",
            one.dataset_sha256 or without,
            code=one.dataset_sha256 is not None,
        ),
        Fact("Load", one.load_words),
        Fact("Warm-up", one.warmup_words),
        Fact(
            "Repeats",
            f"{plural(one.repetitions, 'repetition')} of each point in each of "
            f"{plural(one.sessions, 'session')}; a session is a fresh server",
        ),
        Fact("Endpoint", one.endpoint, code=one.endpoint.startswith("/")),
        Fact("Decoding", decoding or "the engine's defaults"),
        Fact("Seed", "not recorded" if one.seed is None else str(one.seed)),
    ]


def _setting(key: str, value: object) -> str:
    return f"{key} not recorded" if value is None else f"{key} = {_json(value)}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _lengths(one: WorkloadView, names: Names) -> Table:
    rows = [[Cell("Prompts"), *_length_cells(one.input_tokens)]]
    rows += [
        [Cell("Answers of", tag=names.tag(variant)), *_length_cells(lengths)]
        for variant, lengths in one.output_tokens.items()
    ]
    columns = [Column("Length in tokens"), *[Column(name, numeric=True) for name in _LENGTHS]]
    caption = "Lengths as they really were. A quantized model may answer longer than its baseline."
    return Table(caption, columns, rows, compact=True)


def _length_cells(lengths: Mapping[str, float]) -> list[Cell]:
    return [
        Cell(number(lengths[name])) if name in lengths else Cell("not recorded", tone="muted")
        for name in _LENGTHS
    ]


def slo(summary: Summary) -> Section:
    """The limits of the study, and where they were judged from too little or not at all."""
    if not summary.slo:
        text = Text("The study sets no limits, so no load point passes or fails.", "muted")
        return Section("slo", "SLO", [text])
    columns = [Column("Limit"), Column("Key"), Column("Requests a point needs", numeric=True)]
    rows = [
        [
            Cell(limit.words),
            Cell(limit.key, code=True),
            Cell(f"{limit.requests_needed:,}" if limit.requests_needed else "any number"),
        ]
        for limit in summary.slo
    ]
    blocks: list[Block] = [Table("A load point passes when it keeps every limit.", columns, rows)]
    if thin := _thin(summary):
        why = Text(
            "A table withholds the percentile of so few requests. The limit was held against the "
            "sample's own value all the same, so such a pass or miss is no proof:"
        )
        blocks.append(Callout("Limits judged from too few requests", "warn", [why, Bullets(thin)]))
    if unjudged := _unjudged(summary):
        why = Text("Their value is missing, so these points neither keep nor miss them:")
        blocks.append(Callout("Limits that could not be judged", "warn", [why, Bullets(unjudged)]))
    lead = "Set in the study file."
    if summary.imported_from is not None:
        lead = "Set in the import file."
    return Section("slo", "SLO", blocks, lead)


def _thin(summary: Summary) -> list[str]:
    """Say how many points keep or miss a limit by a percentile of too few requests."""
    found = []
    for limit in summary.slo:
        judged = [row for row in summary.points if row.slo_pass is not None]
        counts = [n for row in judged if (n := thin_samples(row, [limit.key]).get(limit.key))]
        if counts:
            needs = f" of the {limit.requests_needed:,} needed" if limit.requests_needed else ""
            found.append(
                f"{limit.key} at {len(counts)} of {plural(len(judged), 'judged point')} "
                f"(the fewest: {min(counts):,}{needs})."
            )
    return found


def _unjudged(summary: Summary) -> list[str]:
    """Say how many points lack the value that a limit is about and were not judged by it."""
    found = []
    for limit in summary.slo:
        rows = [row for row in summary.points if limit.key in row.metrics]
        without = [
            row
            for row in rows
            if row.metrics[limit.key].value is None
            and limit.key not in thin_samples(row, [limit.key])
        ]
        if without:
            reason = without[0].metrics[limit.key].missing or "not measured"
            found.append(
                f"{limit.key} at {len(without)} of {plural(len(rows), 'point')} (e.g. {reason})."
            )
    return found


def _known(summary: Summary, path: str) -> Sequence[Link]:
    return [Link(path)] if path in summary.files else []
