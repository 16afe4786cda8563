"""Diagnosis, decision and rollback conditions of a study: summary.json and alerts.yaml."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.analysis.assemble import assemble
from scripts.lib.analysis.decision.alerts import alerts_text
from scripts.lib.base.command_line import run_main
from scripts.lib.base.files import write_json, write_text
from scripts.lib.base.model_files import ModelError
from scripts.lib.study.specs import read_study


def main(arguments: list[str] | None = None) -> int:
    """Read a study's results, write the summary; return the exit status."""
    parser = argparse.ArgumentParser("python -m scripts.summarise_study", description=__doc__)
    parser.add_argument("--study", type=Path, required=True, help="results/<study>/study.json")
    parser.add_argument("--results", type=Path, required=True, help="results/<study>")
    parser.add_argument("--output", type=Path, required=True, help="results/<study>/summary.json")
    parser.add_argument("--alerts", type=Path, help="results/<study>/alerts.yaml")
    options = parser.parse_args(arguments)
    try:
        study = read_study(options.study)
        summary = assemble(study, options.results, Path.cwd())
    except ModelError as error:
        print(error, file=sys.stderr)
        return 2
    write_json(options.output, summary)
    if options.alerts:
        write_text(options.alerts, alerts_text(study.study, summary.decision))
    print(f"{study.study}: {summary.decision.headline}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    run_main(main)
