"""Serve one variant and run one workload against it."""

from __future__ import annotations

import argparse
from pathlib import Path

from scripts.lib.base.command_line import run_main
from scripts.lib.base.console import Console, run_job
from scripts.lib.base.model_files import read_model
from scripts.lib.jobs.degraded import refusal
from scripts.lib.jobs.load_job import clear_folder, measure_load
from scripts.lib.jobs.serving import ServedVariant, add_served_variant
from scripts.lib.study.specs import WorkloadSpec, read_study
from scripts.lib.telemetry.host import Host


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and measure; ``load.json`` is written last."""
    parser = argparse.ArgumentParser("python -m scripts.measure_load", description=__doc__)
    parser.add_argument("--study", type=Path, required=True, help="study.json")
    parser.add_argument("--host", type=Path, required=True, help="host.json")
    add_served_variant(parser)
    parser.add_argument("--workload", type=Path, required=True, help="its spec")
    parser.add_argument("--session", type=int, required=True, help="its number, from 1 on")
    parser.add_argument("--output", type=Path, required=True, help="load.json")
    parser.add_argument("--log", type=Path, help="keep here what is said")
    options = parser.parse_args(arguments)
    name = f"{options.variant.stem} · {options.workload.stem} · session {options.session}"
    console = Console(name, options.log)

    def job() -> None:
        served = ServedVariant.of(options)
        study, host = read_study(options.study), read_model(options.host, Host)
        clear_folder(served.folder)
        measure_load(
            served,
            read_model(options.workload, WorkloadSpec),
            session=options.session,
            console=console,
            after_start=lambda startup: refusal(study, served, host, startup),
        )

    return run_job(console, job)


if __name__ == "__main__":
    run_main(main)
