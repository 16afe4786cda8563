"""Say what is wrong with a study file, all at once; starts nothing."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from scripts.lib.base.command_line import run_main
from scripts.lib.jobs.study_files import find_file_problems
from scripts.lib.study.load import StudyError, load_study


def main(arguments: list[str] | None = None) -> int:
    """Print its name and warnings as JSON; 2 with a sentence for each problem."""
    parser = argparse.ArgumentParser("python -m scripts.check_study", description=__doc__)
    parser.add_argument("study", type=Path, metavar="STUDY.yaml", help="the study file")
    path = parser.parse_args(arguments).study
    try:
        loaded = load_study(path, Path.cwd(), further=[find_file_problems])
    except StudyError as error:
        print(error, file=sys.stderr)
        return 2
    found = {"study": loaded.study.study, "warnings": loaded.warnings}
    print(json.dumps(found, indent=1, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    run_main(main)
