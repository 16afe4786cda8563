"""Serve one variant and run one workload against it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.base.console import Console, run_job
from scripts.lib.base.files import read_json
from scripts.lib.engine.startup import Failure, Startup
from scripts.lib.jobs.degraded import refusal
from scripts.lib.jobs.load_job import clear_folder, measure_load
from scripts.lib.jobs.serving import ServedVariant
from scripts.lib.study.specs import WorkloadSpec, read_study
from scripts.lib.telemetry.host import Host


def main() -> int:
    """Parse the command line and measure; ``load.json`` is written last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", type=Path, required=True, help="study.json")
    parser.add_argument("--host", type=Path, required=True, help="host.json")
    parser.add_argument("--variant", type=Path, required=True, help="its spec")
    parser.add_argument("--engine-spec", type=Path, required=True)
    parser.add_argument("--engine", type=Path, required=True, help="engines/<name>.json")
    parser.add_argument("--checkpoint", type=Path, required=True, help="its manifest")
    parser.add_argument("--workload", type=Path, required=True, help="its spec")
    parser.add_argument("--session", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True, help="load.json")
    parser.add_argument("--log", type=Path)
    arguments = parser.parse_args()
    workload = WorkloadSpec.model_validate(read_json(arguments.workload))
    served = ServedVariant.read(
        variant=arguments.variant,
        engine=arguments.engine_spec,
        info=arguments.engine,
        manifest=arguments.checkpoint,
        folder=arguments.output.parent,
    )
    console = Console(
        f"{served.name} · {workload.name} · session {arguments.session}", arguments.log
    )

    def after_start(startup: Startup) -> Failure | None:
        study = read_study(arguments.study)
        host = Host.model_validate(read_json(arguments.host))
        return refusal(study, served, host, startup)

    def job() -> None:
        clear_folder(served.folder)
        measure_load(
            served, workload, session=arguments.session, console=console, after_start=after_start
        )

    return run_job(console, job)


if __name__ == "__main__":
    sys.exit(main())
