"""Check before any model is loaded that an engine can be imported, and note its versions."""

from __future__ import annotations

import argparse
from pathlib import Path

from scripts.lib.base.command_line import run_main
from scripts.lib.base.console import Console, run_job
from scripts.lib.base.files import write_json
from scripts.lib.base.model_files import read_model
from scripts.lib.engine.environment import inspect_engine
from scripts.lib.study.specs import EngineSpec


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, inspect, and write ``engines/<name>.json``."""
    parser = argparse.ArgumentParser("python -m scripts.inspect_engine", description=__doc__)
    parser.add_argument("--spec", type=Path, required=True, help="specs/engines/<name>.json")
    parser.add_argument("--folder", type=Path, required=True, help="its virtual environment")
    parser.add_argument("--output", type=Path, required=True, help="engines/<name>.json")
    parser.add_argument("--log", type=Path, help="keep here what is said")
    options = parser.parse_args(arguments)
    console = Console(f"engine {options.spec.stem}", options.log)

    def job() -> None:
        spec = read_model(options.spec, EngineSpec)
        console.say("importing what a study needs of it")
        info = inspect_engine(spec, options.folder, Path.cwd())
        write_json(options.output, info)
        found = ", ".join(f"{name} {version}" for name, version in info.versions.items())
        console.say(found or "its versions are not known before it runs")

    return run_job(console, job)


if __name__ == "__main__":
    run_main(main)
