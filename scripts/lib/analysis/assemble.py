"""Puts ``summary.json`` together from the files of one study."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from scripts.lib.analysis.decision.decide import decide
from scripts.lib.analysis.diagnosis.diagnose import diagnose
from scripts.lib.analysis.formulas import FORMULAS
from scripts.lib.analysis.import_models import ImportNote
from scripts.lib.analysis.material import Material
from scripts.lib.analysis.not_measured import not_measured
from scripts.lib.analysis.points.cost import study_cost_usd
from scripts.lib.analysis.points.lengths import realised_lengths
from scripts.lib.analysis.provenance import provenance
from scripts.lib.analysis.sanitize import clean_command
from scripts.lib.analysis.study_folder import StudyFolder
from scripts.lib.analysis.summary import Decision, EngineView, Summary
from scripts.lib.analysis.tables import Analysis
from scripts.lib.analysis.views import (
    engine_view,
    slo_views,
    variant_view,
    workload_view,
)
from scripts.lib.base.model_files import read_model
from scripts.lib.checkpoints.manifest import Manifest
from scripts.lib.engine.environment import EngineInfo
from scripts.lib.engine.flags import OUR_ENVIRONMENT
from scripts.lib.engine.startup import Degradation, Startup
from scripts.lib.load.results import LoadResult
from scripts.lib.plan.models import Plan, Verdict
from scripts.lib.study.models import Study
from scripts.lib.telemetry.host import Cpu, Host

Item = TypeVar("Item")

SERVER_PORT = "8000"
"""The port in the rollback command: vLLM's default, not the free port of a measurement."""

NOT_FOR_PRODUCTION = {*OUR_ENVIRONMENT, "HF_HUB_OFFLINE", "CUDA_VISIBLE_DEVICES"}
"""Variables that belong to the measurement, not to the served variant."""


def assemble(study: Study, results: Path, project: Path) -> Summary:
    """Read everything under ``results`` and return the summary.

    Files that are missing or cannot be used become sentences in ``not_measured``.

    Args:
        study: The resolved study.
        results: ``results/<study>``.
        project: The project's root: for relative paths and the git commit.
    """
    folder = StudyFolder(results)
    material = read_material(study, folder)
    loads = {key: list(found) for key, found in material.loads.items()}
    lengths = realised_lengths(results, loads)
    decision = decide(material)
    command = rollback_command(material, decision, project)
    note = folder.read("imported.json", ImportNote)
    return Summary(
        study=study.study,
        title=study.title or study.study,
        baseline=study.baseline,
        provenance=provenance(
            study,
            project,
            [r for found in loads.values() for r in found],
            note.measured_at if note else None,
        ),
        host=material.host or unknown_host(),
        engines=_engines(material, folder),
        variants=[variant_view(material, name, project) for name in study.baseline_first],
        workloads=[workload_view(material, name, lengths) for name in study.workloads],
        slo=slo_views(study.slo),
        price_usd_per_hour=study.usd_per_hour,
        plans=list(material.plans.values()),
        verdicts=[material.verdicts[n] for n in study.variants if n in material.verdicts],
        degradations=_degradations(material.startups),
        ledger=list(material.ledger),
        points=list(material.points),
        boundaries=list(material.boundaries),
        comparisons=list(material.comparisons),
        crossovers=list(material.crossovers),
        noise_floor=dict(material.noise_floor),
        quality=list(material.quality),
        findings=diagnose(material),
        failures=list(material.failures),
        timelines=list(material.timelines),
        decision=decision.model_copy(update={"rollback_command": command}),
        formulas=FORMULAS,
        not_measured=not_measured(material, folder),
        files=folder.hashes(),
        **_use_of_machine(material, note),
    )


def _use_of_machine(material: Material, note: ImportNote | None) -> dict[str, Any]:
    """Return how long the machine was used, and what that cost, as far as known."""
    hours = note.hours if note else measured_hours(material)
    price = material.study.usd_per_hour
    return {
        "imported_from": note.source if note else None,
        "measured_at": note.measured_at if note else None,
        "machine_hours": hours,
        "study_cost_usd": study_cost_usd(price, hours) if price and hours else None,
    }


def measured_hours(material: Material) -> float | None:
    """Return the time from start to last token, added up over the servers that were loaded.

    Set-up, probes and failed starts are not in it.
    """
    seconds = [
        max(point.end_s for point in load.points)
        for loads in material.loads.values()
        for load in loads
        if load.points and load.url_kind == "started"
    ]
    return sum(seconds) / 3600 if seconds else None


def read_material(study: Study, folder: StudyFolder) -> Material:
    """Return what is there of a study's results.

    Raises:
        ModelError: tables/analysis.json is damaged: without it a summary would look complete.
    """
    tables = folder.folder / "tables" / "analysis.json"
    analysis = read_model(tables, Analysis) if tables.is_file() else None
    parts = (
        {
            name: getattr(analysis, name)
            for name in Analysis.model_fields
            if name != "schema_version"
        }
        if analysis
        else {}
    )
    return Material(
        study=study,
        host=folder.read("host.json", Host),
        plans=_of_study(study, folder.by_stem("plan/*.json", Plan)),
        verdicts=_of_study(study, folder.by_stem("kernels/*.json", Verdict)),
        manifests=folder.by_stem("checkpoints/*.json", Manifest),
        startups=_startups(study, folder),
        loads=_loads(study, folder),
        **parts,
    )


def _of_study(study: Study, found: Mapping[str, Item]) -> dict[str, Item]:
    """Keep what belongs to the study's variants, in their order."""
    return {name: found[name] for name in study.variants if name in found}


def _startups(study: Study, folder: StudyFolder) -> dict[str, Startup]:
    """Return one start per variant: one that became ready if there is any."""
    found: dict[str, Startup] = {}
    every = folder.read_all("runs/*/*/session*/startup.json", Startup)
    runs = {path: startup for path, startup in every.items() if _is_own(study, path)}
    probes = folder.read_all("quality/*/startup.json", Startup)
    for path, startup in [*runs.items(), *probes.items()]:
        variant = Path(path).parts[1]
        if variant not in found or (startup.ready and not found[variant].ready):
            found[variant] = startup
    return _of_study(study, found)


def _loads(study: Study, folder: StudyFolder) -> dict[tuple[str, str], list[LoadResult]]:
    found: dict[tuple[str, str], list[LoadResult]] = {}
    for path, load in folder.read_all("runs/*/*/session*/load.json", LoadResult).items():
        variant, workload = Path(path).parts[1:3]
        if _is_own(study, path):
            found.setdefault((variant, workload), []).append(load)
    return found


def _is_own(study: Study, path: str) -> bool:
    """Return whether a file under ``runs/`` is of a run that the study has."""
    _, variant, workload, session, _ = Path(path).parts
    number = session.removeprefix("session")
    return number.isdigit() and study.measures(variant, workload, int(number))


def _engines(material: Material, folder: StudyFolder) -> list[EngineView]:
    """Return the engines that served, with the version their logs name."""
    study = material.study
    infos = folder.by_stem("engines/*.json", EngineInfo)
    versions = {
        study.engine_of(name).name: startup.facts.vllm_version
        for name, startup in material.startups.items()
    }
    names = dict.fromkeys([*(study.engine_of(name).name for name in study.variants), *infos])
    return [engine_view(infos[name], versions.get(name)) for name in names if name in infos]


def _degradations(startups: Mapping[str, Startup]) -> dict[str, list[Degradation]]:
    return {
        name: list(startup.facts.degradations)
        for name, startup in startups.items()
        if startup.facts.degradations
    }


def unknown_host() -> Host:
    """Return a machine of which nothing is recorded."""
    return Host(
        gpus=[],
        cpu=Cpu(model="not recorded", physical_cores=None, logical_cores=None, usable_cores=None),
        memory_gib=None,
        os="not recorded",
        python="not recorded",
        no_gpu_reason="the machine is not recorded",
    )


def rollback_command(material: Material, decision: Decision, project: Path) -> list[str] | None:
    """Return the command that serves the baseline again.

    None when nothing or the baseline itself is recommended, or its command is not known or did
    not start.
    """
    baseline = material.study.baseline
    startup = material.startups.get(baseline)
    if decision.variant in (None, baseline) or startup is None or not startup.command:
        return None
    if not startup.ready:
        return None
    words = clean_command(startup.command, project)
    for index, word in enumerate(words[:-1]):
        if word == "--port":
            words[index + 1] = SERVER_PORT
    engine, variant = material.study.engine_of(baseline), material.study.variants[baseline]
    given = {**engine.env, **variant.env}
    kept = {k: v for k, v in startup.environment.items() if k in given}
    kept = {k: v for k, v in kept.items() if k not in NOT_FOR_PRODUCTION}
    variables = clean_command([f"{name}={value}" for name, value in sorted(kept.items())], project)
    return ["env", *variables, *words] if variables else words
