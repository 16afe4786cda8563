"""Render a study's report: report.html, report.md and figures/*.svg."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.analysis.summary import Summary
from scripts.lib.base.command_line import run_main
from scripts.lib.base.model_files import ModelError, read_model
from scripts.lib.report.render import write_report


def main(arguments: list[str] | None = None) -> int:
    """Read the summary, write the report; return the exit status."""
    parser = argparse.ArgumentParser("python -m scripts.render_report", description=__doc__)
    parser.add_argument("--summary", type=Path, required=True, help="results/<study>/summary.json")
    parser.add_argument("--output", type=Path, required=True, help="the report's folder")
    options = parser.parse_args(arguments)
    try:
        summary = read_model(
            options.summary,
            Summary,
            "make the summary again with scripts.summarise_study of the same version",
        )
    except ModelError as error:
        print(error, file=sys.stderr)
        return 2
    for path in write_report(summary, options.output):
        print(path)
    return 0


if __name__ == "__main__":
    run_main(main)
