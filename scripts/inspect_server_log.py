"""Print what a vLLM log says, as JSON."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.base.command_line import run_main
from scripts.lib.base.files import canonical_json
from scripts.lib.base.printed_text import why_unreadable
from scripts.lib.engine.log_reader import read_log


def main(arguments: list[str] | None = None) -> int:
    """Read the file and print its facts; 2 with one sentence when it cannot be read."""
    parser = argparse.ArgumentParser("python -m scripts.inspect_server_log", description=__doc__)
    parser.add_argument("file", type=Path, metavar="FILE", help="a log of vLLM's start")
    file = parser.parse_args(arguments).file
    try:
        facts = read_log(file)
    except (OSError, ValueError) as error:
        print(why_unreadable(file, error), file=sys.stderr)
        return 2
    print(canonical_json(facts), end="")
    return 0


if __name__ == "__main__":
    run_main(main)
