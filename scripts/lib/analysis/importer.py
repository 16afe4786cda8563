"""Builds ``results/<study>/`` from logs and result files made by hand."""

from __future__ import annotations

import datetime
import gzip
import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from scripts.lib.analysis.import_models import ImportNote, ImportStudy
from scripts.lib.analysis.import_numbers import ImportPoint
from scripts.lib.analysis.import_parts import host_of, manifest_of, startup_of, study_of
from scripts.lib.analysis.import_points import (
    Imported,
    ImportProblem,
    import_session,
    level_of,
)
from scripts.lib.analysis.import_quality import import_quality
from scripts.lib.analysis.import_scrape import read_scrape, scrape_warnings
from scripts.lib.analysis.sanitize import clean_text
from scripts.lib.base.files import write_json, write_text
from scripts.lib.engine.environment import EngineInfo
from scripts.lib.engine.startup import Startup
from scripts.lib.load.results import LoadResult
from scripts.lib.study.models import Study
from scripts.lib.study.specs import write_specs

RAW = ("runs", "quality", "checkpoints", "engines", "plan", "kernels", "tables")
"""Folders of a former import, removed before a new one."""

MARK = "imported.json"
"""Shows that a study's folder is an import, which a new import may replace."""


def read_import(path: Path) -> ImportStudy:
    """Read an import file.

    Raises:
        ImportProblem: with every problem, one sentence a line.
    """
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ImportProblem(f"{path}: cannot be read ({error.strerror})") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ImportProblem(f"{path}: not valid YAML: {str(error).splitlines()[0]}") from None
    try:
        return ImportStudy.model_validate(raw)
    except ValidationError as error:
        problems = [_sentence(path, detail) for detail in error.errors()]
        raise ImportProblem("\n".join(problems)) from None


def _sentence(path: Path, detail: Any) -> str:  # noqa: ANN401 - pydantic's error details
    key = ".".join(str(part) for part in detail["loc"]) or "the file"
    message = str(detail["msg"]).removeprefix("Value error, ")
    if detail["type"] == "extra_forbidden":
        message = "is no key of an import file; see docs/import.md"
    if detail["type"] == "missing":
        message = "is missing"
    return f"{path}: {key}: {message}"


def import_study(path: Path, results: Path) -> tuple[Study, Path]:
    """Import what the file at ``path`` describes; return the study and its folder.

    Args:
        path: The import file; paths in it count from its folder.
        results: The folder that holds the folders of studies.

    Raises:
        ImportProblem: if something cannot be read, or a measured study has the same name.
    """
    given = read_import(path)
    folder = results / given.study
    if (folder / "study.json").exists() and not (folder / MARK).exists():
        raise ImportProblem(
            f'{path}: study is "{given.study}", and {folder} holds a study that was measured; '
            "give the import another name"
        )
    variants = {name: given.points_of(name) for name in given.variants}
    sessions = {name: _sessions(points, path.parent) for name, points in variants.items()}
    study = study_of(given, _loads(sessions))
    _clear(folder)
    write_specs(study, folder)
    copy = clean_text(path.read_text(encoding="utf-8"), Path.cwd())
    write_text(folder / "imported.yaml", copy)
    note = ImportNote(
        source=given.source, measured_at=_measured_at(given, sessions), hours=given.hours
    )
    write_json(folder / MARK, note)
    _write_machine(folder, given, study)
    for name in given.variants:
        _write_variant(folder, path.parent, given, name, sessions[name])
    return study, folder


def _sessions(points: Sequence[ImportPoint], base: Path) -> dict[int, list[Imported]]:
    numbers = sorted({point.session for point in points})
    by_session = {n: [p for p in points if p.session == n] for n in numbers}
    return {n: import_session(own, base) for n, own in by_session.items()}


def _loads(sessions: dict[str, dict[int, list[Imported]]]) -> dict[str, Sequence[float]]:
    """Return the levels, counts, repetitions and sessions that were measured."""
    everything = [one for by in sessions.values() for own in by.values() for one in own]
    rates = sorted({level_of(o.point) for o in everything if o.point.rate is not None})
    levels = sorted({level_of(o.point) for o in everything if o.point.rate is None})
    if rates and levels:
        raise ImportProblem(
            "points with a concurrency and points with a rate belong to different workloads; "
            "import them as two studies"
        )
    if not everything:
        raise ImportProblem("no variant has a load point; give points or tables")
    counts = {level_of(o.point): o.point.sent for o in everything}
    known = [n for level in levels or rates if (n := counts[level])]
    return {
        "concurrency": levels,
        "rate": rates,
        "counts": known if len(known) == len(counts) else [],
        "repetitions": [max(one.point.repetition for one in everything)],
        "sessions": [max((n for by in sessions.values() for n in by), default=1)],
    }


def _clear(folder: Path) -> None:
    for name in RAW:
        shutil.rmtree(folder / name, ignore_errors=True)
    (folder / "host.json").unlink(missing_ok=True)


def _write_machine(folder: Path, given: ImportStudy, study: Study) -> None:
    host = host_of(given.host)
    if host is not None:
        write_json(folder / "host.json", host)
    engine = EngineInfo(name=study.engine.name, kind="address", versions=given.engine_versions)
    write_json(folder / "engines" / f"{study.engine.name}.json", engine)


def _write_variant(
    folder: Path,
    base: Path,
    given: ImportStudy,
    name: str,
    sessions: dict[int, list[Imported]],
) -> None:
    variant = given.variants[name]
    manifest = manifest_of(name, variant.checkpoint, base)
    if manifest is not None:
        write_json(folder / "checkpoints" / f"{name}.json", manifest)
    startup, log = startup_of(name, variant, given, base, bool(sessions))
    warnings: list[str] = []
    if variant.metrics:
        points = [one.point for own in sessions.values() for one in own]
        warnings = scrape_warnings(read_scrape(base / variant.metrics), points)
    for number, own in (sessions or {1: []}).items():
        run = folder / "runs" / name / given.workload.name / f"session{number}"
        _write_run(run, given, startup, own, number, warnings)
        if number == 1:
            _write_sources(run, log, base / variant.metrics if variant.metrics else None)
    quality = import_quality(given, name)
    if quality is not None:
        write_json(folder / "quality" / name / "quality.json", quality)


def _write_run(
    run: Path,
    given: ImportStudy,
    startup: Startup,
    imported: Sequence[Imported],
    session: int,
    warnings: Iterable[str],
) -> None:
    levels = sorted({level_of(one.point) for one in imported})
    warnings = [*warnings, *_partial(imported)]
    points = [
        one.point.model_copy(
            update={
                "workload_point": levels.index(level_of(one.point)),
                "warnings": [*one.point.warnings, *warnings],
            }
        )
        for one in imported
    ]
    load = LoadResult(
        points=points,
        model=startup.variant,
        url_kind="attached",
        origin_unix_s=None,
        dataset={
            "kind": "imported",
            "file": given.workload.dataset,
            "sha256": given.workload.dataset_sha256,
            "source": given.source,
            "warmup_requests": given.workload.warmup_requests,
            "not_recorded": given.workload.not_recorded,
        },
        variant=startup.variant,
        workload=given.workload.name,
        session=session,
        failure=startup.failure,
    )
    write_json(run / "load.json", load)
    write_json(run / "startup.json", startup)
    _write_records(run, imported)
    for file in [file for one in imported for file in one.files]:
        _copy(file, run / "imported" / file.name)


def _measured_at(given: ImportStudy, sessions: dict[str, dict[int, list[Imported]]]) -> str | None:
    """Return the given day, else when the last result file says it ended (in no time zone)."""
    if given.measured_at:
        return given.measured_at.isoformat()
    everything = [one for by in sessions.values() for own in by.values() for one in own]
    dates = [moment for one in everything if (moment := _moment(one.date))]
    return max(dates).isoformat() if dates else None


def _moment(text: str | None) -> datetime.datetime | None:
    """Read the benchmark's own date, a local time whose zone it does not name."""
    try:
        return datetime.datetime.strptime(text or "", "%Y%m%d-%H%M%S")  # noqa: DTZ007
    except ValueError:
        return None


def _partial(imported: Sequence[Imported]) -> list[str]:
    if not any(one.records for one in imported) or all(one.records for one in imported):
        return []
    return [
        "the single requests of some points are in their files and those of others are not; all "
        "points are taken as printed, so that they compare"
    ]


def _write_records(run: Path, imported: Sequence[Imported]) -> None:
    """Write request records, if every point has them: half of them would count as all."""
    if not imported or not all(one.records for one in imported):
        return
    text = "".join(json.dumps(record) + "\n" for one in imported for record in one.records)
    # Without a time stamp: the same import gives the same bytes.
    packed = gzip.compress(text.encode(), compresslevel=5, mtime=0)
    (run / "requests.jsonl.gz").write_bytes(packed)


def _write_sources(run: Path, log: Path | str | None, metrics: Path | None) -> None:
    if isinstance(log, Path):
        _copy(log, run / "server.log")
    elif log:
        write_text(run / "server.log", log)
    if metrics is not None:
        _copy(metrics, run / "imported" / metrics.name)


def _copy(source: Path, target: Path) -> None:
    """Copy a raw file; one of the same name but another content gets a number."""
    target.parent.mkdir(parents=True, exist_ok=True)
    place, number = target, 1
    while place.exists() and place.read_bytes() != source.read_bytes():
        number += 1
        place = target.with_name(f"{target.stem}-{number}{target.suffix}")
    shutil.copyfile(source, place)
