"""Check before the first server starts that disk, memory and files suffice."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.base.console import Console, run_job
from scripts.lib.base.files import read_json, write_json
from scripts.lib.checkpoints.manifest import Manifest
from scripts.lib.jobs.preflight import check_machine
from scripts.lib.study.specs import read_study
from scripts.lib.telemetry.host import Host


def main() -> int:
    """Parse the command line, check, and write ``preflight.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", type=Path, required=True)
    parser.add_argument("--host", type=Path, required=True)
    parser.add_argument("--checkpoints", type=Path, nargs="+", required=True, help="manifests")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--log", type=Path)
    arguments = parser.parse_args()
    console = Console("machine", arguments.log)

    def job() -> None:
        preflight = check_machine(
            read_study(arguments.study),
            Host.model_validate(read_json(arguments.host)),
            [Manifest.model_validate(read_json(path)) for path in arguments.checkpoints],
            arguments.output.parent,
        )
        write_json(arguments.output, preflight)
        for warning in preflight.warnings:
            console.say(f"look out: {warning}")
        console.say(
            f"{preflight.free_disk_gib} GiB of disk and {preflight.available_memory_gib} GiB of "
            "memory are free"
        )

    return run_job(console, job)


if __name__ == "__main__":
    sys.exit(main())
