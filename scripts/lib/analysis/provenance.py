"""Where a summary comes from: the study, the time, the state of the code, the versions."""

from __future__ import annotations

import datetime
import platform
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from scripts.lib.analysis.summary import Provenance
from scripts.lib.base.files import content_hash
from scripts.lib.base.git import git
from scripts.lib.load.results import LoadResult
from scripts.lib.study.models import Study
from scripts.lib.study.specs import dump

DISTRIBUTIONS = ("snakemake", "pydantic", "numpy", "pandas", "scipy", "matplotlib")


def provenance(
    study: Study, project: Path, loads: Iterable[LoadResult], measured_at: str | None = None
) -> Provenance:
    """Return the provenance of a summary made now in ``project`` from these measurements.

    ``measured_at``: when they were made, as an import says; None: as the measurements say.
    """
    commit = git(project, "rev-parse", "HEAD")
    status = git(project, "status", "--porcelain") if commit else None
    return Provenance(
        study_hash=content_hash(dump(study)),
        created_at=measured_at or _time_of(loads),
        git_commit=commit.strip() if commit else None,
        git_dirty=None if status is None else bool(status.strip()),
        tool_version=_tool_version(project),
        workflow_versions=_versions(),
    )


def _time_of(loads: Iterable[LoadResult]) -> str:
    """When the last measurement ended; a summary made again from the same records is equal."""
    ends = [
        load.origin_unix_s + max((point.end_s for point in load.points), default=0.0)
        for load in loads
        if load.origin_unix_s is not None
    ]
    moment = (
        datetime.datetime.fromtimestamp(max(ends), datetime.UTC)
        if ends
        else datetime.datetime.now(datetime.UTC)
    )
    return moment.isoformat(timespec="seconds")


def _tool_version(project: Path) -> str:
    try:
        with (project / "pyproject.toml").open("rb") as file:
            return str(tomllib.load(file)["project"]["version"])
    except (OSError, KeyError, tomllib.TOMLDecodeError):
        return "unknown"


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in DISTRIBUTIONS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions
