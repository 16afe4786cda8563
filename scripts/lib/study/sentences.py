"""Turns what pydantic found into sentences that name the key, the value and the fix."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

NAME_RULE = "use letters, digits, '.', '_' and '-', beginning with a letter or digit, 64 at most"


def sentence(error: ErrorDetails, raw: object, model: type[BaseModel]) -> str:
    """Return one sentence for one pydantic error about ``raw``, read as ``model``."""
    path, of_a_key = _plain_path(error["loc"], raw)
    where = ".".join(str(part) for part in path) or "the file"
    kind, value = error["type"], error["input"]
    field = _field_at(path, model)
    if kind == "extra_forbidden":
        return _unknown_key(path, model)
    if kind == "missing":
        return f"{where} is missing{_give(field)}"
    if of_a_key or (kind == "string_pattern_mismatch" and "{0,63}" in str(error.get("ctx"))):
        return f"{where}: the name {show(value)} is unfit for paths; {NAME_RULE}"
    if kind == "string_pattern_mismatch":
        return f"{where} is {show(value)}; {_pattern_fix(str(error.get('ctx')))}"
    if kind == "invalid_key":
        return f"{where}: a key must be text; put it in quotes"
    if kind == "too_short":
        return f"{where} is empty; give at least one"
    if kind == "value_error":
        return f"{where}: {error['msg'].removeprefix('Value error, ')}"
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return f"{where} is {show(value)}; give a mapping of keys to values{_give(field)}"
    message = error["msg"].removeprefix("Input ").replace("should", "must", 1)
    return f"{where} is {show(value)}; it {message}{_give(field)}"


def suggest(name: str, known: Sequence[str], *, kind: str) -> str:
    """Return the fix for an unknown name: the nearest known one, or all of them."""
    lowered = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), lowered, n=1)
    if near:
        return f'did you mean "{lowered[near[0]]}"?'
    return f"the {kind} are {', '.join(known)}" if known else f"there are no {kind}"


def _plain_path(loc: tuple[int | str, ...], raw: object) -> tuple[list[int | str], bool]:
    """Drop pydantic's own words (union members, '[key]') from an error's location."""
    path: list[int | str] = []
    here: Any = raw
    of_a_key = loc[-1:] == ("[key]",)
    for position, part in enumerate(loc):
        if part == "[key]":
            continue
        known = (isinstance(here, dict) and part in here) or (
            isinstance(here, list) and isinstance(part, int) and part < len(here)
        )
        if known:
            here = here[part]
        elif not (position == len(loc) - 1 and isinstance(here, dict)):
            continue
        path.append(part)
    return path, of_a_key


def _unknown_key(path: list[int | str], model: type[BaseModel]) -> str:
    where = ".".join(str(part) for part in path)
    parent = _model_at(path[:-1], model)
    known = _keys(parent) if parent else []
    return f"{where} is not a known key; {suggest(str(path[-1]), known, kind='known keys')}"


def _keys(model: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]


def _model_at(path: Sequence[int | str], model: type[BaseModel]) -> type[BaseModel] | None:
    """Return the model that describes the mapping at ``path``, if it is one."""
    current: type[BaseModel] | None = model
    inside_container = False
    for part in path:
        if inside_container:  # a dict's key or a list's index: the model is its value's
            inside_container = False
            continue
        field = _field(current, part)
        models = _models_in(field.annotation) if field else []
        if not field or not models:
            return None
        current = models[0]
        inside_container = str(field.annotation).startswith(("dict", "list"))
    return current


def _field(model: type[BaseModel] | None, key: int | str) -> FieldInfo | None:
    if model is None:
        return None
    for name, field in model.model_fields.items():
        if key in (name, field.alias):
            return field
    return None


def _field_at(path: Sequence[int | str], model: type[BaseModel]) -> FieldInfo | None:
    if not path:
        return None
    return _field(_model_at(path[:-1], model), path[-1])


def _give(field: FieldInfo | None) -> str:
    description = field.description if field else None
    return f" ({description.rstrip('.')})" if description else ""


def _pattern_fix(context: str) -> str:
    if "{40}" in context:
        return "give the full 40-digit commit, so that the study can be repeated"
    if "]+/[" in context:
        return "give owner/name"
    if "{64}" in context:
        return "give the SHA-256 as 64 hexadecimal digits"
    return f"it must match {context}"


def show(value: object) -> str:
    """Return a value of a study file for a sentence: on one line, cut at 80 characters."""
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
