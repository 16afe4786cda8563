"""Reads ``results/<study>/``: everything that is there, and sentences for what is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from scripts.lib.base.files import read_json, sha256_of
from scripts.lib.base.model_files import Model, first_problem

GENERATED = ("summary.json", "alerts.yaml", "report", "archive")
"""What is made from the raw files; not part of the raw files' list."""


class StudyFolder:
    """Typed access to the files of one study; unreadable ones become sentences in ``problems``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problems: list[str] = []

    def read(self, relative: str, model: type[Model]) -> Model | None:
        """Return one file as a model; None where it is missing or cannot be used."""
        path = self.folder / relative
        if not path.is_file():
            return None
        try:
            return model.model_validate(read_json(path))
        except ValidationError as error:
            self.problems.append(f"{relative} was left out: {first_problem(error)}")
        except (OSError, ValueError) as error:
            self.problems.append(f"{relative} was left out: {error}")
        return None

    def read_all(self, pattern: str, model: type[Model]) -> dict[str, Model]:
        """Return all files matching ``pattern`` as models, by relative path."""
        found = {}
        for path in sorted(self.folder.glob(pattern)):
            relative = path.relative_to(self.folder).as_posix()
            value = self.read(relative, model)
            if value is not None:
                found[relative] = value
        return found

    def by_stem(self, pattern: str, model: type[Model]) -> dict[str, Model]:
        """Return all files matching ``pattern`` as models, by file name without its ending."""
        return {Path(name).stem: value for name, value in self.read_all(pattern, model).items()}

    def hashes(self) -> dict[str, str]:
        """Return the SHA-256 of every raw file, by relative path."""
        return {path.relative_to(self.folder).as_posix(): sha256_of(path) for path in self.files()}

    def files(self) -> Iterator[Path]:
        """Yield every file that the summary is made from, in order."""
        for path in sorted(self.folder.rglob("*")):
            parts = path.relative_to(self.folder).parts
            hidden = any(part.startswith(".") for part in parts)
            if path.is_file() and not hidden and parts[0] not in GENERATED:
                yield path
