"""Grade what one variant answered to the quality probes; needs no server."""

from __future__ import annotations

import argparse
from pathlib import Path

from scripts.lib.base.again import ask_again
from scripts.lib.base.command_line import run_main
from scripts.lib.base.console import Console, JobError, run_job
from scripts.lib.base.files import write_json
from scripts.lib.base.model_files import read_model
from scripts.lib.quality.completions import read_lines
from scripts.lib.quality.grading import grade_records
from scripts.lib.quality.probes import load_probes
from scripts.lib.quality.results import AskedProbes
from scripts.lib.study.specs import ProbesSpec


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, grade and write ``quality.json``."""
    parser = argparse.ArgumentParser("python -m scripts.grade_quality", description=__doc__)
    parser.add_argument("--asked", type=Path, required=True, help="asked.json")
    parser.add_argument("--completions", type=Path, required=True, help="completions.jsonl.gz")
    parser.add_argument("--probes", type=Path, required=True, help="specs/probes/quality.json")
    parser.add_argument("--output", type=Path, required=True, help="quality.json")
    parser.add_argument("--log", type=Path, help="keep here what is said")
    options = parser.parse_args(arguments)
    console = Console(f"{options.output.parent.name} · grades", options.log)

    def job() -> None:
        asked = read_model(options.asked, AskedProbes)
        items = load_probes(read_model(options.probes, ProbesSpec).quality.probes, Path.cwd())
        try:
            records = [record for _, record in read_lines(options.completions)]
            result = grade_records(asked, items, records)
        except ValueError as error:
            raise JobError(f"{error}; {ask_again(options.asked.parent)}") from error
        write_json(options.output, result)
        passed = sum(item.passed is True for item in result.items)
        console.say(asked.not_applicable or f"{passed} of {len(result.items)} probes passed")

    return run_job(console, job)


if __name__ == "__main__":
    run_main(main)
