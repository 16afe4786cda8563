"""The commands that make again what cannot be made without a server, for messages with the fix."""

from __future__ import annotations

from pathlib import Path

RUN = "snakemake --configfile STUDY.yaml --cores 1 --forcerun"
"""Deleting a file is not enough: Snakemake does not miss it while the report is there."""


def measure_again(folder: Path) -> str:
    """Return the fix for a record that is lost: from a copy, or by measuring its session again."""
    return (
        "put it back from a copy, or measure its session again: "
        f"{RUN} {(folder / 'load.json').as_posix()}"
    )


def ask_again(*folders: Path) -> str:
    """Return the fix for answers that cannot be used; ``folders`` are ``quality/<variant>``.

    ``quality.json`` beside them would only be graded again.
    """
    files = " ".join((folder / "asked.json").as_posix() for folder in folders)
    return f"ask the probes again: {RUN} {files}"
