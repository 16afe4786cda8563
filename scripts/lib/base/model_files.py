"""Reading a JSON file as a model, or saying in one sentence why it is none."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from scripts.lib.base.files import read_json

DELETE_AND_RUN = "delete it and run snakemake again: it is made anew"
Model = TypeVar("Model", bound=BaseModel)


class ModelError(ValueError):
    """A JSON file that is not what it should be; the message names file, place and fix."""


def read_model(path: Path, model: type[Model], fix: str = DELETE_AND_RUN) -> Model:
    """Read a JSON file as ``model``.

    Raises:
        ModelError: it is missing, no JSON or of another shape; the message ends with ``fix``.
    """
    try:
        return model.model_validate(read_json(path))
    except ValidationError as error:
        raise ModelError(f"{path}: {first_problem(error)}; {fix}") from None
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}); {fix}") from None
    except ValueError as error:
        raise ModelError(f"{path}: not JSON ({error}); {fix}") from None


def first_problem(error: ValidationError) -> str:
    """Return the first thing that pydantic found to be wrong: its place, and what."""
    detail = error.errors()[0]
    place = ".".join(str(part) for part in detail["loc"]) or "the file"
    return f"{place}: {detail['msg'].removeprefix('Value error, ')}"
