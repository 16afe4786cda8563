"""The reference tables under ``config/reference``, and versions to choose their rows by."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from packaging.version import InvalidVersion, Version

REFERENCE = Path(__file__).parents[3] / "config" / "reference"


class PlanError(Exception):
    """A plan cannot be made; the message is one sentence that names the fix."""


@cache
def reference(name: str) -> Any:  # noqa: ANN401 - YAML data
    """Read one reference table, e.g. ``gpus``."""
    return yaml.safe_load((REFERENCE / f"{name}.yaml").read_text(encoding="utf-8"))


def parse_version(text: str | None) -> Version | None:
    """Read an engine's version; text that is no proper one counts by the numbers it starts with."""
    if not text:
        return None
    try:
        return Version(text)
    except InvalidVersion:
        start = re.match(r"v?(\d+(?:\.\d+)*)", text)
        return Version(start[1]) if start else None


def in_range(version: Version | None, row: dict[str, Any]) -> bool:
    """Say if a row's ``since``/``until`` (not included) hold; an unknown version is the latest.

    A release candidate or development build counts as the release it leads to.
    """
    if version is None:
        return row.get("until") is None
    release = Version(version.base_version)
    if row.get("since") is not None and release < Version(str(row["since"])):
        return False
    return row.get("until") is None or release < Version(str(row["until"]))
