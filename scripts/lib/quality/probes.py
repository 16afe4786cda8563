"""Probe items: a prompt, the axis it belongs to, and how its answer is graded."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from jsonschema import SchemaError
from jsonschema.validators import validator_for
from pydantic import Field, TypeAdapter, ValidationError, field_validator, model_validator

from scripts.lib.base.schema import Strict
from scripts.lib.quality.completions import read_lines
from scripts.lib.study.checks import probe_files
from scripts.lib.study.sentences import sentence

JsonSchema = dict[str, Any] | bool
Texts = Annotated[list[str], Field(min_length=1)]


class ProbeError(ValueError):
    """A probe file that cannot be used; the message is a sentence (a line) per problem."""


def _check_schema(schema: JsonSchema, where: str) -> None:
    if isinstance(schema, bool):
        return
    try:
        validator_for(schema).check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"{where} is not a JSON schema: {error.message}") from None


class NumberGrader(Strict):
    """The final answer is this number."""

    kind: Literal["number"]
    expected: int | float
    tolerance: float = Field(default=0, ge=0, description="Largest absolute difference.")
    only_number: bool = Field(default=False, description="The answer is to be nothing else.")


class TextGrader(Strict):
    """One of the accepted words or phrases occurs, and none of the rejected."""

    kind: Literal["text"]
    accepted: Texts
    rejected: list[str] = []


class ChoiceGrader(Strict):
    """One option is finally chosen, and it is this one."""

    kind: Literal["choice"]
    options: Texts
    expected: str

    @model_validator(mode="after")
    def _expected_is_an_option(self) -> ChoiceGrader:
        if self.expected not in self.options:
            options = ", ".join(self.options)
            raise ValueError(f'expected "{self.expected}" is none of the options ({options})')
        return self


class JsonGrader(Strict):
    """Some JSON value in the text satisfies the schema and equals what is expected."""

    model_config = {**Strict.model_config, "populate_by_name": True}

    kind: Literal["json"]
    schema_: JsonSchema = Field(default=True, alias="schema")
    expected: Any = None

    @field_validator("schema_")
    @classmethod
    def _is_a_schema(cls, value: JsonSchema) -> JsonSchema:
        _check_schema(value, "schema")
        return value

    @property
    def expects_a_value(self) -> bool:
        """Whether ``expected`` was given (``null`` is a value too)."""
        return "expected" in self.model_fields_set


class Checks(Strict):
    """What an answer's form must keep; a check that is not given is not made."""

    max_words: int | None = Field(default=None, ge=0)
    min_words: int | None = Field(default=None, ge=0)
    contains: list[str] = []
    excludes: list[str] = []
    starts_with: str | None = None
    ends_with: str | None = None
    bullets: int | None = Field(default=None, ge=0, description="Exactly so many.")
    paragraphs: int | None = Field(default=None, ge=0, description="Exactly so many.")
    uppercase: bool = False
    lowercase: bool = False
    language: Literal["en", "ko"] | None = None
    json_only: bool = False

    @field_validator("contains", "excludes", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _at_least_one(self) -> Checks:
        if all(value is None or value is False or value == [] for value in dict(self).values()):
            raise ValueError("give at least one check")
        return self


class InstructionsGrader(Strict):
    """The answer's form follows every instruction."""

    kind: Literal["instructions"]
    checks: Checks


class PythonGrader(Strict):
    """The code defines ``entry_point`` and passes the tests in the sandbox."""

    kind: Literal["python"]
    entry_point: str = Field(pattern=r"^[^\W\d]\w*$")
    tests: Texts

    @field_validator("tests")
    @classmethod
    def _are_asserts(cls, tests: list[str]) -> list[str]:
        for number, test in enumerate(tests):
            try:
                tree = ast.parse(test)
            except (SyntaxError, ValueError) as error:
                raise ValueError(f"tests[{number}] is not Python: {error}") from None
            if not any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
                raise ValueError(f"tests[{number}] asserts nothing: {test}")
        return tests


class ExpectedCall(Strict):
    """One call that the model must make."""

    name: str
    arguments: dict[str, Any] = {}
    allow_extra: list[str] = Field(default=[], description="Optional arguments it may add.")


class ToolGrader(Strict):
    """The calls are exactly the expected ones, in any order; none expected: must not call."""

    kind: Literal["tool"]
    expected: list[ExpectedCall]


Grader = Annotated[
    NumberGrader
    | TextGrader
    | ChoiceGrader
    | JsonGrader
    | InstructionsGrader
    | PythonGrader
    | ToolGrader,
    Field(discriminator="kind"),
]


class ProbeItem(Strict):
    """One question and how its answer is graded."""

    id: str = Field(min_length=1)
    axis: str = Field(min_length=1)
    messages: list[dict[str, Any]] = Field(min_length=1, description="As in the OpenAI API.")
    tools: list[dict[str, Any]] = Field(default=[], description="As in the OpenAI API.")
    max_tokens: int | None = Field(default=None, gt=0)
    grader: Grader

    @field_validator("tools", mode="before")
    @classmethod
    def _null_is_none(cls, value: object) -> object:
        return [] if value is None else value

    @field_validator("tools")
    @classmethod
    def _have_names_and_schemas(cls, tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for number, tool in enumerate(tools):
            function = tool_function(tool)
            if not isinstance(function.get("name"), str):
                raise ValueError(f"tools[{number}].function.name is missing")
            _check_schema(tool_schema(tool), f"tools[{number}].function.parameters")
        return tools


def tool_function(tool: dict[str, Any]) -> dict[str, Any]:
    """Return the ``function`` object of a tool (or the tool itself, where it is flat)."""
    function = tool.get("function", tool)
    return function if isinstance(function, dict) else {}


def tool_schema(tool: dict[str, Any]) -> JsonSchema:
    """Return the schema of a tool's arguments; without one, any object is fit."""
    parameters = tool_function(tool).get("parameters")
    return parameters if isinstance(parameters, dict | bool) else {"type": "object"}


_ITEM: TypeAdapter[ProbeItem] = TypeAdapter(ProbeItem)


def load_probes(patterns: Iterable[str], root: Path = Path()) -> list[ProbeItem]:
    """Read the items of every file that ``patterns`` match below ``root``, in order of name.

    Raises:
        ProbeError: A pattern matches nothing, or an item is wrong; one line per problem, each
            naming file, line, key and fix.
    """
    patterns = list(patterns)
    problems = [
        f'no probe file matches "{pattern}"'
        for pattern in patterns
        if not any(probe_files([pattern], root))
    ]
    items, found = read_probe_files(probe_files(patterns, root), root)
    if problems + found:
        raise ProbeError("\n".join(problems + found))
    return items


def read_probe_files(
    paths: Iterable[Path], root: Path = Path()
) -> tuple[list[ProbeItem], list[str]]:
    """Return the items of JSONL files and the problems found in them, as sentences.

    Relative ``paths`` count from ``root``; messages name them as they are.
    """
    items: list[ProbeItem] = []
    problems: list[str] = []
    places: dict[str, str] = {}
    for path in paths:
        try:
            lines = list(read_lines(root / path))
        except ValueError as error:
            problems.append(str(error).replace(str(root / path), str(path), 1))
            continue
        if not lines:
            problems.append(f"{path}: holds no probe item")
        for number, raw in lines:
            where = f"{path}:{number}"
            item = _read_item(where, raw, problems)
            if item is not None and item.id in places:
                problems.append(f'{where}: id "{item.id}" was used at {places[item.id]}')
            elif item is not None:
                places[item.id] = where
                items.append(item)
    return items, problems


def _read_item(where: str, raw: dict[str, Any], problems: list[str]) -> ProbeItem | None:
    try:
        return _ITEM.validate_python(raw)
    except ValidationError as error:
        for found in error.errors():
            problems.append(f"{where}: {_words(found, raw)}")
    return None


def _words(found: Any, raw: dict[str, Any]) -> str:  # noqa: ANN401 - pydantic's error details
    if found["type"] == "union_tag_invalid":
        known = re.sub("'", "", found["ctx"]["expected_tags"])
        return f'grader.kind is "{found["ctx"]["tag"]}"; give one of {known}'
    if found["type"] == "union_tag_not_found":
        return "grader.kind is missing; it says how the answer is graded"
    return sentence(found, raw, ProbeItem)
