"""The configuration reference, written from the models (``docs/configuration.md``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from scripts.lib.study.models import Flags, Study

HEAD = """# Configuration reference

Generated from `scripts/lib/study/` by `make schema`; a test keeps it current. A study file is
YAML; an unknown key is an error. `config/config.yaml` is a complete example, and
`config/schema.json` gives completion and checks in editors.
"""


def reference() -> str:
    """Return the reference as Markdown, one section a model, in reading order."""
    sections = [HEAD]
    for model in _in_order(Study, []):
        rows = [_row(field.alias or name, field) for name, field in model.model_fields.items()]
        table = "\n".join(["| key | value | default | |", "| --- | --- | --- | --- |", *rows])
        text = " ".join((model.__doc__ or "").split())
        sections.append(f"## {model.__name__}\n\n{text}\n\n{table}\n")
    return "\n".join(sections)


def _in_order(model: type[BaseModel], seen: list[type[BaseModel]]) -> list[type[BaseModel]]:
    if model not in seen:
        seen.append(model)
        for field in model.model_fields.values():
            for inner in _models(field.annotation):
                _in_order(inner, seen)
    return seen


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _row(name: str, field: FieldInfo) -> str:
    if field.is_required():
        default = "required"
    elif field.default in (None, PydanticUndefined):
        default = "—"
    elif isinstance(field.default, BaseModel):
        default = f"see {type(field.default).__name__}"
    else:
        default = f"`{field.default!r}`".replace("'", '"')
    words = (field.description or "").replace("|", "\\|")
    return f"| `{name}` | {_type(field.annotation)} | {default} | {words} |"


def _type(annotation: object) -> str:
    if annotation is type(None):
        return "null"
    if annotation == Flags:
        return "mapping of flags to their values, or list of words"
    if isinstance(annotation, type) and not get_args(annotation):
        if issubclass(annotation, BaseModel):
            return f"[{annotation.__name__}](#{annotation.__name__.lower()})"
        return {"str": "text", "int": "integer", "float": "number", "bool": "true/false"}.get(
            annotation.__name__, annotation.__name__
        )
    parts, origin = get_args(annotation), get_origin(annotation)
    if origin is Literal:
        return ", ".join(f"`{part}`" for part in parts)
    if origin is Annotated:
        return _type(parts[0])
    if origin is dict:
        return f"mapping of name to {_type(parts[1])}"
    if origin is list:
        return f"list of {_type(parts[0])}"
    kinds = dict.fromkeys(_type(part) for part in parts if part is not type(None))
    return " or ".join(kinds) if kinds else "any"
