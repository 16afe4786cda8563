"""Print what a vLLM log says, as JSON."""

from __future__ import annotations

from scripts.lib.base.command_line import run_main
from scripts.lib.base.reading import read_and_print
from scripts.lib.engine.log_reader import read_log


def main(arguments: list[str] | None = None) -> int:
    """Read the file and print its facts; 2 with one sentence when it cannot be read."""
    return read_and_print(
        read_log,
        arguments,
        program="python -m scripts.inspect_server_log",
        description=__doc__,
        file_help="a log of vLLM's start",
    )


if __name__ == "__main__":
    run_main(main)
