"""Check an archive: every file's SHA-256, and every table again from the raw records.

Exit status: 0 all is well, 1 something differs, 2 the file is no readable archive.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.base.command_line import run_main
from scripts.lib.report.verify import UnreadableError, verify_archive


def main(arguments: list[str] | None = None) -> int:
    """Check the archive, say what was found; return the exit status."""
    parser = argparse.ArgumentParser("python -m scripts.verify_archive", description=__doc__)
    parser.add_argument("archive", type=Path, help="<study>-<hash>.zip")
    options = parser.parse_args(arguments)
    try:
        findings = verify_archive(options.archive)
    except UnreadableError as error:
        print(error, file=sys.stderr)
        return 2
    for problem in findings.problems:
        print(problem)
    if findings.problems:
        return 1
    print(
        f"OK: {findings.files} files are unchanged, and {findings.tables} tables follow from "
        "the raw records."
    )
    return 0


if __name__ == "__main__":
    run_main(main)
