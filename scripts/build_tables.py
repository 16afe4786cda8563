"""Build every table of a study from its raw records."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from scripts.lib.analysis.analyse import analyse_study
from scripts.lib.analysis.points.wholeness import RecordError
from scripts.lib.analysis.tables import TableError, write_tables
from scripts.lib.base.command_line import run_main
from scripts.lib.study.specs import read_study


def main(arguments: list[str] | None = None) -> int:
    """Write ``<results>/tables/*.csv`` and ``tables/analysis.json``; print what was written."""
    parser = argparse.ArgumentParser("python -m scripts.build_tables", description=__doc__)
    parser.add_argument("--study", type=Path, required=True, help="results/<study>/study.json")
    parser.add_argument("--results", type=Path, required=True, help="results/<study>")
    options = parser.parse_args(arguments)
    try:
        analysis = analyse_study(read_study(options.study), options.results)
        files = write_tables(options.results / "tables", analysis)
    except (RecordError, TableError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(
        json.dumps(
            {
                "tables": [path.name for path in files],
                "points": len(analysis.points),
                "failures": len(analysis.failures),
            }
        )
    )
    return 0


if __name__ == "__main__":
    run_main(main)
