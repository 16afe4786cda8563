"""JSON values in texts: strict parsing, finding, comparing and checking them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from jsonschema.exceptions import ValidationError, best_match
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from scripts.lib.quality.graders.grade import short
from scripts.lib.quality.probes import JsonSchema

_FENCE = re.compile(r"(?:```|~~~)[^\n`]*\n(.*?)(?:```|~~~|\Z)", re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
_OPENING = re.compile(r"[{\[]")
MOST_VALUES = 200
"""No more candidates are looked at in one text."""


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


class NotJson(ValueError):
    """The text is not one JSON value."""


def parse(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return the JSON value that the stripped ``text`` is (RFC 8259: no NaN, no comments).

    Raises:
        NotJson: It is none.
    """
    try:
        value, end = _DECODER.raw_decode(text.strip())
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from None
    if end != len(text.strip()):
        raise NotJson(f"something follows the JSON value at column {end + 1}")
    return value


def is_json(text: str) -> bool:
    """Whether the stripped ``text`` is one JSON value and nothing else."""
    try:
        parse(text)
    except NotJson:
        return False
    return True


def values_in(text: str) -> Iterator[Any]:
    """Yield the JSON values of a text: itself, its code passages, objects and arrays in prose.

    A bare number or word in a sentence is prose and not a JSON value.
    """
    pieces = [text, *_FENCE.findall(text), *_INLINE.findall(text)]
    for piece in pieces[:MOST_VALUES]:
        try:
            yield parse(piece)
        except NotJson:
            continue
    position = 0
    for _ in range(MOST_VALUES):
        found = _OPENING.search(text, position)
        if not found:
            return
        try:
            value, position = _DECODER.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            position = found.end()
        else:
            yield value


def equal(left: Any, right: Any) -> bool:  # noqa: ANN401 - any JSON values
    """Whether two JSON values are equal: numbers by value, and true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(equal(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    return type(left) is type(right) and bool(left == right)


def violation(value: Any, schema: JsonSchema) -> str | None:  # noqa: ANN401 - any JSON value
    """Return in words why ``value`` does not satisfy ``schema``; None if it does.

    A reference to another document is never fetched: it is a violation.
    """
    registry: Registry[Any] = Registry()
    validator = validator_for(schema)(schema, registry=registry)
    try:
        error = best_match(validator.iter_errors(value))
    except (Unresolvable, RecursionError) as failure:
        return f"the schema cannot be resolved: {short(failure)}"
    if error is None:
        return None
    assert isinstance(error, ValidationError)
    return short(f"{error.json_path}: {error.message}", 100)
