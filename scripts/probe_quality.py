"""Serve one variant and ask it the quality probes."""

from __future__ import annotations

import argparse
from pathlib import Path

from scripts.lib.base.command_line import run_main
from scripts.lib.base.console import Console, run_job
from scripts.lib.base.model_files import read_model
from scripts.lib.jobs.quality_job import clear_folder, probe_quality
from scripts.lib.jobs.serving import ServedVariant, add_served_variant
from scripts.lib.study.specs import ProbesSpec


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and ask; ``asked.json`` is written last."""
    parser = argparse.ArgumentParser("python -m scripts.probe_quality", description=__doc__)
    add_served_variant(parser)
    parser.add_argument("--probes", type=Path, required=True, help="specs/probes/quality.json")
    parser.add_argument("--output", type=Path, required=True, help="asked.json")
    parser.add_argument("--log", type=Path, help="keep here what is said")
    options = parser.parse_args(arguments)
    console = Console(f"{options.variant.stem} · quality", options.log)

    def job() -> None:
        served = ServedVariant.of(options)
        quality = read_model(options.probes, ProbesSpec).quality
        clear_folder(served.folder)
        probe_quality(served, quality, console=console)

    return run_job(console, job)


if __name__ == "__main__":
    run_main(main)
