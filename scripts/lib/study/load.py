"""Reads a study file and reports everything that is wrong with it at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from scripts.lib.study.checks import find_errors, find_warnings
from scripts.lib.study.models import Study
from scripts.lib.study.refusals import find_absent_folders
from scripts.lib.study.sentences import sentence

Check = Callable[[Mapping[str, Any], Path], Iterable[str]]
"""Finds problems in the raw content of a study file; relative paths count from the second."""


class StudyError(ValueError):
    """A study file that cannot be used; ``problems`` holds one sentence each."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


@dataclass(frozen=True)
class LoadedStudy:
    """A valid study, and what a reader should know about it."""

    study: Study
    warnings: list[str]


def load_study(
    path: Path,
    project: Path,
    overrides: Mapping[str, Any] | None = None,
    *,
    further: Iterable[Check] = (),
) -> LoadedStudy:
    """Read the study file at ``path``; relative paths in it count from ``project``.

    Args:
        path: The YAML file.
        project: The project's root.
        overrides: Top-level keys that replace the file's (``snakemake --config``).
        further: Checks of other areas; their problems are reported with the rest.

    Raises:
        StudyError: with every problem found, each a sentence that names file and key.
    """
    try:
        raw = _read_yaml(path)
    except StudyError as error:
        raise StudyError([f"{path}: {problem}" for problem in error.problems]) from None
    place = f"{path} with --config" if overrides else f"{path}"
    try:
        return check_study({**raw, **(overrides or {})}, project, further)
    except StudyError as error:
        raise StudyError([f"{place}: {problem}" for problem in error.problems]) from None


def check_study(
    raw: Mapping[str, Any], project: Path, further: Iterable[Check] = ()
) -> LoadedStudy:
    """Validate the content of a study file; see :func:`load_study`."""
    problems: list[str] = []
    study: Study | None = None
    try:
        study = Study.model_validate(dict(raw))
    except ValidationError as error:
        problems = [sentence(detail, raw, Study) for detail in error.errors()]
    problems += find_errors(raw, project)
    problems += [problem for check in further for problem in check(raw, project)]
    if problems or study is None:
        raise StudyError(list(dict.fromkeys(problems)))
    return LoadedStudy(study, [*find_absent_folders(raw, project), *find_warnings(study)])


class _UniqueKeys(yaml.SafeLoader):
    """A YAML loader that refuses a key given twice, where YAML would drop the first."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Build a mapping, refusing doubled keys."""
        seen: set[object] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            line = key_node.start_mark.line + 1
            if not isinstance(key, Hashable):
                raise StudyError([f"line {line}: a key is {type(key).__name__}; give plain text"])
            if key in seen and key != "<<":
                raise StudyError([f'line {line}: the key "{key}" is given twice; remove one'])
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise StudyError([f"cannot be read ({error.strerror}); give the path of a study"]) from None
    except UnicodeDecodeError:
        raise StudyError(["is not text; give a YAML file"]) from None
    try:
        raw = yaml.load(text, Loader=_UniqueKeys)  # noqa: S506 - a subclass of SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or "cannot be parsed"
        raise StudyError([f"{line}not valid YAML: {problem}"]) from None
    except RecursionError:
        raise StudyError(["is nested too deeply to be read; see config/config.yaml"]) from None
    if not isinstance(raw, dict):
        raise StudyError(["holds no keys; see config/config.yaml for the shape of a study"])
    return raw
