"""The commands that read one file and print what it says."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import BaseModel

from scripts.lib.base.files import canonical_json
from scripts.lib.base.printed_text import why_unreadable


def read_and_print(
    read: Callable[[Path], BaseModel],
    arguments: Sequence[str] | None,
    *,
    program: str,
    description: str | None,
    file_help: str,
) -> int:
    """Print as JSON what ``read`` finds in the file that the arguments name.

    Args:
        read: The reader; an OSError or ValueError of its own says why the file cannot be read.
        arguments: The command's words; None: those of the process.
        program: How the command is called.
        description: What it does.
        file_help: What the file is.

    Returns:
        The exit status: 0, or 2 with one sentence on standard error.
    """
    parser = argparse.ArgumentParser(program, description=description)
    parser.add_argument("file", type=Path, metavar="FILE", help=file_help)
    file = parser.parse_args(arguments).file
    try:
        found = read(file)
    except (OSError, ValueError) as error:
        sys.stderr.write(why_unreadable(file, error) + "\n")
        return 2
    sys.stdout.write(canonical_json(found))
    return 0
