"""Render a study's report: ``report.html``, ``report.md`` and ``figures/*.svg``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pydantic import ValidationError

from scripts.lib.analysis.summary import Summary
from scripts.lib.report.render import write_report


def main(arguments: list[str] | None = None) -> int:
    """Read the summary, write the report; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--summary", type=Path, required=True, help="results/<study>/summary.json")
    parser.add_argument("--output", type=Path, required=True, help="the report's folder")
    options = parser.parse_args(arguments)
    try:
        summary = Summary.model_validate_json(options.summary.read_bytes())
    except OSError as error:
        print(f"{options.summary}: cannot be read: {error.strerror}", file=sys.stderr)
        return 2
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        print(
            f"{options.summary}: {place}: {first['msg']}; make the summary again with "
            "scripts.summarise_study of the same version",
            file=sys.stderr,
        )
        return 2
    for path in write_report(summary, options.output):
        print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
