"""Writes each variant's, workload's, … resolved settings to a small file of its own.

Snakemake's ``params`` trigger misses changes; a file that changes only with its content does
not. So a job's settings are an input, and a changed flag reruns just what depends on it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field

from scripts.lib.base.files import canonical_json, ordered_json, write_text_if_changed
from scripts.lib.base.model_files import read_model
from scripts.lib.base.schema import Strict
from scripts.lib.study.models import Engine, Quality, Slo, SloSearch, Study, Variant, Workload


class VariantSpec(Strict):
    """``specs/variants/<name>.json``: how one variant is served."""

    name: str
    variant: Variant
    engine: str = Field(description="The name of its engine's spec.")


class WorkloadSpec(Strict):
    """``specs/workloads/<name>.json``: one workload; the SLO only where it adds load points."""

    name: str
    workload: Workload
    slo: Slo | None = None
    slo_search: SloSearch | None = None


class EngineSpec(Strict):
    """``specs/engines/<name>.json``: one engine."""

    name: str
    engine: Engine
    serves: bool = Field(description="It serves a variant.")
    makes: bool = Field(description="It makes checkpoints.")


class ProbesSpec(Strict):
    """``specs/probes/quality.json``: what is asked, and how."""

    quality: Quality


def write_specs(study: Study, results: Path) -> None:
    """Write ``study.json`` and all specs under ``results``, and remove those of former names."""
    # The report lists variants in the study's own order.
    wanted = {results / "study.json": ordered_json(dump(study))}
    for (kind, name), value in _specs(study).items():
        wanted[results / "specs" / kind / f"{name}.json"] = canonical_json(value)
    for path, text in wanted.items():
        write_text_if_changed(path, text)
    for path in (results / "specs").glob("*/*.json"):
        if path not in wanted:
            path.unlink()


def dump(model: Strict) -> Any:  # noqa: ANN401 - JSON data
    """Return a model as JSON data under the names a study file uses."""
    return model.model_dump(mode="json", by_alias=True)


def read_study(path: Path) -> Study:
    """Read a ``study.json``.

    Raises:
        ModelError: it is missing, or no resolved study of this version.
    """
    return read_model(path, Study, "give the study.json of a study of this version")


def _specs(study: Study) -> dict[tuple[str, str], Any]:
    specs: dict[tuple[str, str], Any] = {
        ("checkpoints", name): dump(checkpoint) for name, checkpoint in study.checkpoints.items()
    }
    for name, variant in study.variants.items():
        specs["variants", name] = dump(
            VariantSpec(
                name=name, variant=_measured_part(variant), engine=study.engine_of(name).name
            )
        )
    for name, given in study.workloads.items():
        search = study.slo_search
        # Each session is a job of its own: more of them leave those that are there.
        workload = given.model_copy(update={"sessions": 1})
        specs["workloads", name] = dump(
            WorkloadSpec(
                name=name, workload=workload, slo=study.slo if search else None, slo_search=search
            )
        )
    serving = [study.engine_of(name) for name in study.variants]
    for engine in [study.maker, *serving]:
        spec = EngineSpec(
            name=engine.name, engine=engine, serves=engine in serving, makes=engine == study.maker
        )
        specs["engines", engine.name] = dump(spec)
    if study.quality:
        # The margin judges answers; it does not change them.
        asked = study.quality.model_copy(update={"non_inferiority_margin": 0.0})
        specs["probes", "quality"] = dump(ProbesSpec(quality=asked))
    return specs


def _measured_part(variant: Variant) -> Variant:
    """Leave out what only the report uses, so that changing it measures nothing again."""
    return variant.model_copy(update={"label": None, "simplicity": 0, "engine": None})
