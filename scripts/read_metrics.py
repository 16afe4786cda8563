"""Print what one scrape of /metrics says, as JSON."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.base.command_line import run_main
from scripts.lib.base.files import canonical_json
from scripts.lib.base.printed_text import decode, why_unreadable
from scripts.lib.telemetry.metrics_text import parse_metrics


def main(arguments: list[str] | None = None) -> int:
    """Read the file and print its facts; 2 with one sentence when it cannot be read."""
    parser = argparse.ArgumentParser("python -m scripts.read_metrics", description=__doc__)
    parser.add_argument("file", type=Path, metavar="FILE", help="the saved body of GET /metrics")
    file = parser.parse_args(arguments).file
    try:
        scrape = parse_metrics(decode(file.read_bytes(), "the body of GET /metrics"))
    except (OSError, ValueError) as error:
        print(why_unreadable(file, error), file=sys.stderr)
        return 2
    print(canonical_json(scrape), end="")
    return 0


if __name__ == "__main__":
    run_main(main)
