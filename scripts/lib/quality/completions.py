"""Completions: what a model answered, as records that can be graded again later."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from scripts.lib.base.files import write_bytes
from scripts.lib.base.model_files import first_problem


class CompletionError(ValueError):
    """A file of completions that cannot be read; the message is a sentence for the user."""


class Completion(BaseModel):
    """One answer: ``{id, text, tool_calls, finish_reason}``; further keys are kept unread."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str
    text: str = ""
    tool_calls: list[Any] = Field(default=[], description="As in the OpenAI API.")
    finish_reason: str | None = None
    error: str | None = None

    @field_validator("text", mode="before")
    @classmethod
    def _null_is_empty(cls, value: object) -> object:
        return "" if value is None else value

    @field_validator("tool_calls", mode="before")
    @classmethod
    def _null_is_none_called(cls, value: object) -> object:
        return [] if value is None else value


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield ``(line number, object)`` of a JSONL file, plain or gzipped (``.gz``).

    Raises:
        ValueError: The file is missing, not UTF-8 or a line is not a JSON object; the message
            names file and line.
    """
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start} is not UTF-8 text") from None
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"{path}: cannot be read: {reason}") from None
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, _object(path, number, line)


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        where = f"{path}:{number}"
        raise ValueError(f"{where}: not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise ValueError(f"{path}:{number}: JSON that is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path}:{number}: expected a JSON object, found {type(value).__name__}")
    return value


def load_completions(path: Path) -> list[Completion]:
    """Read a file of completions, in its order.

    Raises:
        CompletionError: It cannot be read; the message names file, line and key.
    """
    try:
        return [_completion(path, number, value) for number, value in read_lines(path)]
    except ValueError as error:
        raise CompletionError(str(error)) from None


def _completion(path: Path, number: int, value: dict[str, Any]) -> Completion:
    try:
        return Completion.model_validate(value)
    except ValidationError as error:
        raise ValueError(f"{path}:{number}: {first_problem(error)}") from None


def write_completions(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Write records as gzipped JSONL, in one step; equal records give equal bytes."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False, sort_keys=True).encode() + b"\n")
    write_bytes(path, buffer.getvalue())
