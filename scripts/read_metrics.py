"""Print what one scrape of /metrics says, as JSON."""

from __future__ import annotations

from pathlib import Path

from scripts.lib.base.command_line import run_main
from scripts.lib.base.printed_text import decode
from scripts.lib.base.reading import read_and_print
from scripts.lib.telemetry.metrics_text import Scrape, parse_metrics


def _read(file: Path) -> Scrape:
    return parse_metrics(decode(file.read_bytes(), "the body of GET /metrics"))


def main(arguments: list[str] | None = None) -> int:
    """Read the file and print its facts; 2 with one sentence when it cannot be read."""
    return read_and_print(
        _read,
        arguments,
        program="python -m scripts.read_metrics",
        description=__doc__,
        file_help="the saved body of GET /metrics",
    )


if __name__ == "__main__":
    run_main(main)
