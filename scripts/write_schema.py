"""Write the JSON schema of a study file, for editors, and the configuration reference."""

from __future__ import annotations

import argparse
from pathlib import Path

from scripts.lib.base.command_line import run_main
from scripts.lib.base.files import write_text_if_changed
from scripts.lib.study.json_schema import study_schema
from scripts.lib.study.reference import reference

SCHEMA = Path("config/schema.json")
REFERENCE = Path("docs/configuration.md")


def main(arguments: list[str] | None = None) -> int:
    """Write both files."""
    argparse.ArgumentParser("python -m scripts.write_schema", description=__doc__).parse_args(
        arguments
    )
    write_text_if_changed(SCHEMA, study_schema())
    write_text_if_changed(REFERENCE, reference())
    return 0


if __name__ == "__main__":
    run_main(main)
