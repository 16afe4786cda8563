"""Write the JSON schema of a study file, for editors."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.base.files import write_text_if_changed
from scripts.lib.study.json_schema import study_schema

SCHEMA = Path("config/schema.json")


def main() -> int:
    """Write config/schema.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=SCHEMA)
    arguments = parser.parse_args()
    write_text_if_changed(arguments.output, study_schema())
    return 0


if __name__ == "__main__":
    sys.exit(main())
