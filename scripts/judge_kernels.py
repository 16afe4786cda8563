"""Judge whether the engine ran what a variant's checkpoint promises."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.base.command_line import run_main
from scripts.lib.base.files import write_json
from scripts.lib.base.model_files import read_model
from scripts.lib.checkpoints.manifest import Manifest
from scripts.lib.engine.log_reader import read_log
from scripts.lib.engine.startup import Startup
from scripts.lib.load.results import LoadResult
from scripts.lib.plan.judge_study import judge_variant
from scripts.lib.plan.speed import speed_ratio
from scripts.lib.plan.tables import PlanError
from scripts.lib.study.specs import read_study
from scripts.lib.telemetry.host import Host


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line; 0: judged, 2: the input could not be read (one sentence says why)."""
    parser = argparse.ArgumentParser("python -m scripts.judge_kernels", description=__doc__)
    parser.add_argument("--study", type=Path, required=True, help="the resolved study.json")
    parser.add_argument("--variant", required=True, help="its name in the study")
    parser.add_argument("--host", type=Path, help="host.json")
    parser.add_argument("--manifest", type=Path, help="the checkpoint's manifest")
    parser.add_argument("--startup", type=Path, nargs="*", default=[], help="its starts")
    parser.add_argument(
        "--baseline-startup", type=Path, nargs="*", default=[], help="starts of the baseline"
    )
    parser.add_argument("--baseline-manifest", type=Path, help="the baseline checkpoint's")
    parser.add_argument("--output", type=Path, required=True, help="kernels/<variant>.json")
    options = parser.parse_args(arguments)
    try:
        verdict = judge_variant(
            read_study(options.study),
            options.variant,
            read_model(options.host, Host) if options.host else None,
            _manifest(options.manifest),
            _startups(options.startup),
            _startups(options.baseline_startup),
            speed_ratio=speed_ratio(_loads(options.startup), _loads(options.baseline_startup)),
            baseline_manifest=_manifest(options.baseline_manifest),
        )
        write_json(options.output, verdict)
    except (PlanError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{verdict.variant}: {verdict.verdict}. {verdict.summary}", file=sys.stderr)
    return 0


def _manifest(path: Path | None) -> Manifest | None:
    return read_model(path, Manifest) if path else None


def _startups(paths: list[Path]) -> list[Startup]:
    return [_with_log(path) for path in paths if path.is_file()]


def _with_log(path: Path) -> Startup:
    """Read a start with the facts of the log beside it: the log is the record, not our reading."""
    startup = read_model(path, Startup)
    log = path.with_name("server.log")
    if not log.is_file() or log.stat().st_size == 0:
        return startup
    return startup.model_copy(update={"facts": read_log(log)})


def _loads(startups: list[Path]) -> list[LoadResult]:
    """Return the measurements beside the starts, if there are any."""
    paths = [startup.with_name("load.json") for startup in startups]
    return [read_model(path, LoadResult) for path in paths if path.is_file()]


if __name__ == "__main__":
    run_main(main)
