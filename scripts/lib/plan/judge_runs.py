"""The verdict on one variant from the files that its runs left, measured or imported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scripts.lib.base.model_files import read_model
from scripts.lib.checkpoints.manifest import Manifest
from scripts.lib.engine.log_reader import read_log
from scripts.lib.engine.startup import Startup
from scripts.lib.load.results import LoadResult
from scripts.lib.plan.judge_study import judge_variant
from scripts.lib.plan.models import Verdict
from scripts.lib.plan.speed import speed_ratio
from scripts.lib.study.models import Study
from scripts.lib.telemetry.host import Host


def judge_runs(
    study: Study,
    variant: str,
    *,
    host: Path | None,
    manifest: Path | None,
    baseline_manifest: Path | None,
    startups: Sequence[Path],
    baseline_startups: Sequence[Path],
) -> Verdict:
    """Judge a variant by its starts, the logs and measurements beside them, and the baseline's.

    Args:
        study: The study.
        variant: Its name.
        host: ``host.json``; None: the machine is not recorded.
        manifest: The checkpoint's; None: not known.
        baseline_manifest: The baseline checkpoint's.
        startups: ``startup.json`` of its runs; ``server.log`` and ``load.json`` lie beside it.
        baseline_startups: The baseline's.

    Raises:
        PlanError: The study has no such variant, or names an unknown GPU.
        ValueError: A file is damaged.
    """
    return judge_variant(
        study,
        variant,
        read_model(host, Host) if host else None,
        read_model(manifest, Manifest) if manifest else None,
        _startups(startups),
        _startups(baseline_startups),
        speed_ratio=speed_ratio(_loads(startups), _loads(baseline_startups)),
        baseline_manifest=read_model(baseline_manifest, Manifest) if baseline_manifest else None,
    )


def _startups(paths: Sequence[Path]) -> list[Startup]:
    return [_with_log(path) for path in paths if path.is_file()]


def _with_log(path: Path) -> Startup:
    """Read a start with the facts of the log beside it: the log is the record, not our reading.

    What somebody typed stays where the log says nothing.
    """
    startup = read_model(path, Startup)
    log = path.with_name("server.log")
    if not log.is_file() or log.stat().st_size == 0:
        return startup
    typed = {name: getattr(startup.facts, name) for name in startup.typed}
    return startup.model_copy(update={"facts": read_log(log).filled(typed)})


def _loads(startups: Sequence[Path]) -> list[LoadResult]:
    """Return the measurements beside the starts, if there are any."""
    paths = [startup.with_name("load.json") for startup in startups]
    return [read_model(path, LoadResult) for path in paths if path.is_file()]
