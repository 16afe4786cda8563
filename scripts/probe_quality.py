"""Serve one variant and ask it the quality probes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.base.console import Console, run_job
from scripts.lib.base.files import read_json
from scripts.lib.jobs.quality_job import clear_folder, probe_quality
from scripts.lib.jobs.serving import ServedVariant
from scripts.lib.study.specs import ProbesSpec


def main() -> int:
    """Parse the command line and ask; ``quality.json`` is written last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variant", type=Path, required=True, help="its spec")
    parser.add_argument("--engine-spec", type=Path, required=True)
    parser.add_argument("--engine", type=Path, required=True, help="engines/<name>.json")
    parser.add_argument("--checkpoint", type=Path, required=True, help="its manifest")
    parser.add_argument("--probes", type=Path, required=True, help="specs/probes/quality.json")
    parser.add_argument("--output", type=Path, required=True, help="quality.json")
    parser.add_argument("--log", type=Path)
    arguments = parser.parse_args()
    served = ServedVariant.read(
        variant=arguments.variant,
        engine=arguments.engine_spec,
        info=arguments.engine,
        manifest=arguments.checkpoint,
        folder=arguments.output.parent,
    )
    quality = ProbesSpec.model_validate(read_json(arguments.probes)).quality
    console = Console(f"{served.name} · quality", arguments.log)

    def job() -> None:
        clear_folder(served.folder)
        probe_quality(served, quality, console=console)

    return run_job(console, job)


if __name__ == "__main__":
    sys.exit(main())
