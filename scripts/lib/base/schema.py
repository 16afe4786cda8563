"""The base class of every configuration and result model."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1
"""Version of the JSON files under ``results/``; raised when a reader must know."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
"""A name from the configuration that is also a file name."""

Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
"""A full commit: a branch or tag can move."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Strict(BaseModel):
    """A model that refuses unknown keys and cannot be changed after it was made."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)
