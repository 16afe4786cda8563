"""Check before a variant's server starts that disk, memory and its files suffice."""

from __future__ import annotations

import argparse
from pathlib import Path

from scripts.lib.base.command_line import run_main
from scripts.lib.base.console import Console, run_job
from scripts.lib.base.files import write_json
from scripts.lib.base.model_files import read_model
from scripts.lib.jobs.preflight import check_machine
from scripts.lib.jobs.serving import ServedVariant, add_served_variant
from scripts.lib.telemetry.host import Host


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, check, and write ``preflight/<variant>.json``."""
    parser = argparse.ArgumentParser("python -m scripts.check_machine", description=__doc__)
    parser.add_argument("--host", type=Path, required=True, help="host.json")
    add_served_variant(parser)
    parser.add_argument("--output", type=Path, required=True, help="preflight/<variant>.json")
    parser.add_argument("--log", type=Path, help="keep here what is said")
    options = parser.parse_args(arguments)
    console = Console(f"{options.variant.stem} · machine", options.log)

    def job() -> None:
        served = ServedVariant.of(options)
        preflight = check_machine(served, read_model(options.host, Host))
        write_json(options.output, preflight)
        for warning in preflight.warnings:
            console.say(f"look out: {warning}")
        console.say(preflight.summary)

    return run_job(console, job)


if __name__ == "__main__":
    run_main(main)
