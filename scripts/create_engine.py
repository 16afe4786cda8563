"""Install a locked environment: the serving engine's, or the checkpoint maker's."""

from __future__ import annotations

import argparse
from pathlib import Path

from scripts.lib.base.command_line import run_main
from scripts.lib.base.console import Console, run_job
from scripts.lib.base.files import sha256_of, write_json
from scripts.lib.engine.environment import create_environment


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, install, and write what was installed."""
    parser = argparse.ArgumentParser("python -m scripts.create_engine", description=__doc__)
    parser.add_argument("--lock", type=Path, required=True, help="requirements with hashes")
    parser.add_argument("--folder", type=Path, required=True, help="the virtual environment")
    parser.add_argument("--output", type=Path, required=True, help="environment.json")
    parser.add_argument("--log", type=Path, help="keep here what is said")
    options = parser.parse_args(arguments)
    console = Console(f"environment {options.lock.stem}", options.log)

    def job() -> None:
        create_environment(options.lock, options.folder, say=console.say)
        written = {"lock": str(options.lock), "lock_sha256": sha256_of(options.lock)}
        write_json(options.output, written)
        console.say("ready")

    return run_job(console, job)


if __name__ == "__main__":
    run_main(main)
