"""Are a run's raw records those that were measured: all there, not cut off, not edited?"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pandas as pd

from scripts.lib.base.again import measure_again
from scripts.lib.base.files import sha256_of
from scripts.lib.load.results import LoadResult


class RecordError(ValueError):
    """A raw file that cannot be used; the message names file, place and what is wrong."""


def check_files(folder: Path, load: LoadResult, scrubbed: Collection[str] = ()) -> None:
    """Hold the raw records in ``folder`` against the hashes that ``load.json`` noted.

    ``scrubbed`` names files, from the study's folder on, whose text an archive has changed.

    Raises:
        RecordError: one is missing, or is not the one that was measured.
    """
    for name, expected in load.records.items():
        path = folder / name
        if not path.is_file():
            raise RecordError(f"{path}: is missing; {measure_again(folder)}")
        if "/".join(path.parts[-5:]) not in scrubbed and sha256_of(path) != expected:
            raise RecordError(
                f"{path}: cut off or edited, for its SHA-256 is not the one that load.json noted; "
                f"{measure_again(folder)}"
            )


def check_counts(path: Path, load: LoadResult, requests: pd.DataFrame | None) -> None:
    """Hold the requests in ``path`` against the counts of ``load.json``, hashes or not.

    Imported results may have no requests; what we measured has all of them.

    Raises:
        RecordError: they are missing, or more or fewer than were sent.
    """
    if load.origin_unix_s is None or not load.points:
        return
    if requests is None:
        raise RecordError(f"{path}: is missing; {measure_again(path.parent)}")
    held = requests.groupby("point")["ok"].agg(["size", "sum"])
    for index, point in enumerate(load.points):
        sent, completed = held.loc[index] if index in held.index else (0, 0)
        if (point.sent, point.completed) != (sent, completed):
            raise RecordError(
                f"{path}: holds {sent} requests of point {index}, {completed} of them completed, "
                f"where load.json counts {point.sent} and {point.completed}: cut off or edited; "
                f"{measure_again(path.parent)}"
            )
