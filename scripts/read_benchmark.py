"""Print a vllm bench serve result as JSON."""

from __future__ import annotations

from scripts.lib.base.command_line import run_main
from scripts.lib.base.reading import read_and_print
from scripts.lib.load.benchmark_file import read_benchmark


def main(arguments: list[str] | None = None) -> int:
    """Read the file and print its facts; 2 with one sentence when it cannot be read."""
    return read_and_print(
        read_benchmark,
        arguments,
        program="python -m scripts.read_benchmark",
        description=__doc__,
        file_help="the JSON or the printed table",
    )


if __name__ == "__main__":
    run_main(main)
