"""Judge whether the engine ran what a variant's checkpoint promises."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pydantic import ValidationError

from scripts.lib.base.files import read_json, write_json
from scripts.lib.checkpoints.manifest import Manifest
from scripts.lib.engine.log_reader import read_log
from scripts.lib.engine.startup import Startup
from scripts.lib.load.results import LoadResult
from scripts.lib.plan.judge_study import judge_variant
from scripts.lib.plan.speed import speed_ratio
from scripts.lib.plan.tables import PlanError
from scripts.lib.study.specs import read_study
from scripts.lib.telemetry.host import Host


def main() -> int:
    """Parse the command line; 0: judged, 2: the input could not be read (one sentence says why)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", type=Path, required=True, help="the resolved study.json")
    parser.add_argument("--variant", required=True)
    parser.add_argument("--host", type=Path, help="host.json")
    parser.add_argument("--manifest", type=Path, help="the checkpoint's manifest")
    parser.add_argument("--startup", type=Path, nargs="*", default=[], help="its starts")
    parser.add_argument("--baseline-startup", type=Path, nargs="*", default=[])
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    try:
        verdict = judge_variant(
            read_study(arguments.study),
            arguments.variant,
            Host.model_validate(read_json(arguments.host)) if arguments.host else None,
            Manifest.model_validate(read_json(arguments.manifest)) if arguments.manifest else None,
            _startups(arguments.startup),
            _startups(arguments.baseline_startup),
            speed_ratio=speed_ratio(_loads(arguments.startup), _loads(arguments.baseline_startup)),
        )
        write_json(arguments.output, verdict)
    except (PlanError, OSError, ValidationError, ValueError) as error:
        print(f"judge_kernels: {error}", file=sys.stderr)
        return 2
    print(f"{verdict.variant}: {verdict.verdict}. {verdict.summary}", file=sys.stderr)
    return 0


def _startups(paths: list[Path]) -> list[Startup]:
    return [_with_log(path) for path in paths if path.is_file()]


def _with_log(path: Path) -> Startup:
    """Read a start with the facts of the log beside it: the log is the record, not our reading."""
    startup = Startup.model_validate(read_json(path))
    log = path.with_name("server.log")
    if not log.is_file() or log.stat().st_size == 0:
        return startup
    return startup.model_copy(update={"facts": read_log(log)})


def _loads(startups: list[Path]) -> list[LoadResult]:
    """Return the measurements beside the starts, if there are any."""
    paths = [startup.with_name("load.json") for startup in startups]
    return [LoadResult.model_validate(read_json(path)) for path in paths if path.is_file()]


if __name__ == "__main__":
    sys.exit(main())
