"""Note what machine this is: GPUs, driver, compute capability, processor, memory."""

from __future__ import annotations

import argparse
from pathlib import Path

from scripts.lib.base.command_line import run_main
from scripts.lib.base.console import Console, run_job
from scripts.lib.base.files import write_json
from scripts.lib.telemetry.host_reader import inspect_host


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, inspect, and write ``host.json``."""
    parser = argparse.ArgumentParser("python -m scripts.inspect_host", description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="host.json")
    parser.add_argument("--log", type=Path, help="keep here what is said")
    options = parser.parse_args(arguments)
    console = Console("host", options.log)

    def job() -> None:
        host = inspect_host()
        write_json(options.output, host)
        gpus = ", ".join(f"{gpu.name} ({gpu.compute_capability})" for gpu in host.gpus)
        cores = f"{host.cpu.usable_cores} cores, {host.memory_gib} GiB"
        console.say(f"{gpus or 'no GPU'}; {host.cpu.model}, {cores}")

    return run_job(console, job)


if __name__ == "__main__":
    run_main(main)
