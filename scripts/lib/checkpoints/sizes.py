"""Sizes in words, and whether the disk can hold them."""

from __future__ import annotations

import shutil
from pathlib import Path

from scripts.lib.checkpoints.errors import CheckpointError

SPARE_BYTES = 1 << 30


def size_words(count: int | None) -> str:
    """Return a number of bytes in words, e.g. "98.4 MB" (decimal units); None: no weight files."""
    if count is None:
        return "no weight files"
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"


def require_space(folder: Path, needed: int, what: str, fix: str) -> None:
    """Stop where the disk of ``folder`` (or of the nearest parent there is) is too small.

    Raises:
        CheckpointError: Less than ``needed`` bytes and a reserve of 1 GiB are free.
    """
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free
    if free < needed + SPARE_BYTES:
        raise CheckpointError(
            f"{what} may need {size_words(needed)}, and {folder} has {size_words(free)} free: "
            f"free some space, or {fix}"
        )
