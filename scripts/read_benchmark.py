"""Print a vllm bench serve result as JSON."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.base.command_line import run_main
from scripts.lib.base.files import canonical_json
from scripts.lib.base.printed_text import why_unreadable
from scripts.lib.load.benchmark_file import read_benchmark


def main(arguments: list[str] | None = None) -> int:
    """Read the file and print its facts; 2 with one sentence when it cannot be read."""
    parser = argparse.ArgumentParser("python -m scripts.read_benchmark", description=__doc__)
    parser.add_argument("file", type=Path, metavar="FILE", help="the JSON or the printed table")
    file = parser.parse_args(arguments).file
    try:
        result = read_benchmark(file)
    except (OSError, ValueError) as error:
        print(why_unreadable(file, error), file=sys.stderr)
        return 2
    print(canonical_json(result), end="")
    return 0


if __name__ == "__main__":
    run_main(main)
