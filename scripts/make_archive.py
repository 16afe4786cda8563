"""Pack a study's report and its evidence into one zip file; print its path."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.base.command_line import run_main
from scripts.lib.report.archive import ArchiveError, make_archive


def main(arguments: list[str] | None = None) -> int:
    """Write the archive; return the exit status."""
    parser = argparse.ArgumentParser("python -m scripts.make_archive", description=__doc__)
    parser.add_argument("--results", type=Path, required=True, help="results/<study>")
    parser.add_argument("--output", type=Path, required=True, help="folder of the zip file")
    parser.add_argument("--project", type=Path, default=Path(), help="the project's folder")
    options = parser.parse_args(arguments)
    try:
        archive = make_archive(options.results, options.output, options.project)
    except (ArchiveError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(archive)
    return 0


if __name__ == "__main__":
    run_main(main)
