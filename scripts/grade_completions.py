"""Grade recorded completions: one JSON object a line on standard output."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.base.command_line import run_main
from scripts.lib.quality.completions import CompletionError, load_completions
from scripts.lib.quality.grading import grade_all, unknown_ids
from scripts.lib.quality.probes import ProbeError, read_probe_files
from scripts.lib.quality.sandbox.runner import SandboxError


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts.grade_completions", description=__doc__
    )
    parser.add_argument(
        "--probes", type=Path, required=True, nargs="+", metavar="FILE", help="probe items, JSONL"
    )
    parser.add_argument(
        "--completions",
        type=Path,
        required=True,
        metavar="FILE",
        help="JSONL (also .gz) of {id, text, tool_calls, finish_reason}",
    )
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Grade, and return the exit status: 0, or 2 if something could not be read."""
    given = parse_arguments(arguments)
    try:
        items, problems = read_probe_files(given.probes)
        if problems:
            raise ProbeError("\n".join(problems))
        completions = load_completions(given.completions)
        for graded in grade_all(items, completions):
            print(graded.model_dump_json(), flush=True)
    except (ProbeError, CompletionError, SandboxError) as error:
        print(error, file=sys.stderr)
        return 2
    for name in unknown_ids(items, completions):
        print(f'{given.completions}: no probe has the id "{name}"; left out', file=sys.stderr)
    return 0


if __name__ == "__main__":
    run_main(main)
