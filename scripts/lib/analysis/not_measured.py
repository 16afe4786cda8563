"""Says what could not be measured, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from scripts.lib.analysis.material import Material
from scripts.lib.analysis.study_folder import StudyFolder
from scripts.lib.analysis.wording import listed

SERIES = {
    "kv_usage_peak": "KV-cache usage",
    "queue_mean_ms": "mean queue time",
    "preemptions": "preemptions",
    "gpu_memory_peak_mib": "peak GPU memory",
    "power_mean_w": "GPU power and energy",
    "goodput_req_s": "goodput",
    "prefix_hit_share": "prefix-cache hits",
}
"""Metrics whose absence at every point is worth a sentence."""


def not_measured(material: Material, folder: StudyFolder) -> list[str]:
    """Return one sentence for each thing that is missing from the results."""
    sentences = [s for source in SOURCES for s in source(material, folder)]
    sentences += [f"not measured: {problem}" for problem in folder.problems]
    return list(dict.fromkeys(sentences))


def _files(_: Material, folder: StudyFolder) -> Iterator[str]:
    if not (folder.folder / "tables" / "analysis.json").is_file():
        yield (
            "not measured: tables/analysis.json is not there, so nothing could be compared; run "
            "python -m scripts.build_tables first"
        )
    if not (folder.folder / "host.json").is_file():
        yield "not measured: host.json is not there, so the machine is not known"


def _is_import(folder: StudyFolder) -> bool:
    """An import is not planned: what ran is already known."""
    return (folder.folder / "imported.json").is_file()


def _per_variant(material: Material, folder: StudyFolder) -> Iterator[str]:
    study = material.study
    failed = {row.variant for row in material.failures}
    kinds: tuple[tuple[str, set[str]], ...] = (
        ("plan", set(study.variants) if _is_import(folder) else set(material.plans)),
        ("kernel verdict", set(material.verdicts)),
        ("start-up log", set(material.startups)),
    )
    for what, there in kinds:
        gone = [name for name in study.variants if name not in there]
        if gone:
            yield f"not measured: no {what} of {listed(gone)}"
    for name, spec in study.variants.items():
        if spec.checkpoint not in material.manifests:
            yield f"not measured: no manifest of {spec.checkpoint}, the checkpoint of {name}"
        for workload, settings in study.workloads.items():
            runs = len(material.loads.get((name, workload), ()))
            if runs < settings.sessions and name not in failed:
                yield (
                    f"not measured: {name} on {workload} has {runs} of {settings.sessions} "
                    "session(s)"
                )


def _quality(material: Material, _: StudyFolder) -> Iterator[str]:
    if material.study.quality is None:
        yield "not measured: quality; the study asks for none"
        return
    for name in material.study.variants:
        view = material.quality_of(name)
        if view is None:
            yield f"not measured: quality of {name}; no quality result"
        elif view.not_applicable:
            yield f"not measured: quality of {name}; {view.not_applicable}"


def _metrics(material: Material, _: StudyFolder) -> Iterator[str]:
    if not material.points:
        return
    for metric, words in SERIES.items():
        values = [row.metrics[metric] for row in material.points if metric in row.metrics]
        if any(value.value is not None for value in values):
            continue
        reasons = list(dict.fromkeys(v.missing for v in values if v.missing))
        yield f"not measured: {words}; {'; '.join(reasons[:2]) or 'not in the tables'}"


def _money(material: Material, _: StudyFolder) -> Iterator[str]:
    if material.study.price is None:
        yield "not measured: cost; the study names no price"


SOURCES: tuple[Callable[[Material, StudyFolder], Iterator[str]], ...] = (
    _files,
    _per_variant,
    _quality,
    _metrics,
    _money,
)
