"""Parts of a study file's raw content, of which nothing is known yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Raw = Mapping[str, Any]


def section(raw: Raw, key: str) -> dict[str, dict[str, Any]]:
    """Return those entries of a section that are mappings; none where it is no section."""
    found = raw.get(key)
    if not isinstance(found, dict):
        return {}
    return {str(name): value for name, value in found.items() if isinstance(value, dict)}


def sources(raw: Raw, kind: str) -> dict[str, dict[str, Any]]:
    """Return checkpoint -> its source of one kind (hub, quantize, ...), where that is a mapping."""
    checkpoints = section(raw, "checkpoints")
    found = {name: checkpoint.get(kind) for name, checkpoint in checkpoints.items()}
    return {name: source for name, source in found.items() if isinstance(source, dict)}


def engines(raw: Raw) -> dict[str, dict[str, Any]]:
    """Return place in the file -> engine settings: the study's, its variants', the maker's."""
    found = {"engine": raw.get("engine"), "maker": raw.get("maker")}
    for name, variant in section(raw, "variants").items():
        found[f"variants.{name}.engine"] = variant.get("engine")
    return {where: engine for where, engine in found.items() if isinstance(engine, dict)}
