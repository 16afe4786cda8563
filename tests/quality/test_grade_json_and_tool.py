"""JSON in answers, and tool calls."""

from __future__ import annotations

import json

import pytest
from grading_helpers import grade, item
from pydantic import ValidationError

ADA = {
    "kind": "json",
    "schema": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
    },
    "expected": {"name": "Ada", "age": 36},
}


@pytest.mark.parametrize(
    ("text", "success", "only"),
    [
        ('{"name": "Ada", "age": 36}', True, True),
        (' \n{"age": 36.0, "name": "Ada"}\n', True, True),
        ('```json\n{"name": "Ada", "age": 36}\n```', True, False),
        ('Here: {"name": "Ada", "age": 36}. Done {x}', True, False),
        ('{"name": "Bob", "age": 1} or {"name": "Ada", "age": 36}', True, False),
        ('see [1] {below} {"name": "Ada", "age": 36}', True, False),
        ('{"name": "Ada", "age": 37}', False, False),
        ('{"name": "Ada", "age": "36"}', False, False),
        ('{"name": "Ada", "age": 36, "x": 1}', False, False),
        ('{"person": {"name": "Ada", "age": 36}}', False, False),
        ("{'name': 'Ada', 'age': 36}", False, False),
        ('{"name": "Ada", "age": 36,}', False, False),
        ('{"name": "Ada", "age": 36', False, False),
        ('{"name": "Ada", "age": 36} {"name": "Ada", "age": 36}', True, False),
        ("", False, False),
        ("[" * 100_000, False, False),
        ('<think>hm</think>{"name": "Ada", "age": 36}', True, False),
    ],
)
def test_json(text, success, only):
    result = grade(ADA, text)
    assert (result.task_success, result.format_ok) == (success, only)


@pytest.mark.parametrize(
    ("expected", "text", "success"),
    [
        (1, "true", False),
        (True, "1", False),
        (True, "true", True),
        (1, "1.0", True),
        (None, "null", True),
        (None, "0", False),
        ([1, 2], "[2, 1]", False),
        ("a", '"a"', True),
        ([True], "[1]", False),
    ],
)
def test_equality_of_json_values(expected, text, success):
    assert grade({"kind": "json", "schema": {}, "expected": expected}, text).task_success is success


def test_nan_is_not_json():
    assert grade({"kind": "json", "schema": {}}, "[NaN]").task_success is False


def test_an_expectation_is_optional():
    assert grade({"kind": "json", "schema": {"type": "array"}}, "[]").task_success is True


def test_a_number_in_prose_is_not_a_json_value():
    assert grade({"kind": "json", "schema": {"type": "number"}}, "It is 5.").task_success is False


def test_no_document_is_fetched_for_a_schema():
    result = grade({"kind": "json", "schema": {"$ref": "http://127.0.0.1:9/s.json"}}, "{}")
    assert result.task_success is False
    assert "cannot be resolved" in result.reason


def test_a_wrong_schema_is_refused():
    with pytest.raises(ValidationError, match="not a JSON schema"):
        item({"kind": "json", "schema": {"type": "objekt"}})


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "number"},
                "unit": {"enum": ["C", "F"]},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
SEOUL = {"name": "get_weather", "arguments": {"city": "Seoul"}}


def call(arguments: object, name: str = "get_weather") -> dict[str, object]:
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": "1", "type": "function", "function": {"name": name, "arguments": raw}}


def tool(expected: list[dict[str, object]], calls: object, text: str = "") -> tuple[object, object]:
    result = grade({"kind": "tool", "expected": expected}, text, calls=calls, tools=[WEATHER])
    assert result.task_success is None
    return result.tool_success, result.format_ok


@pytest.mark.parametrize(
    ("calls", "success", "form"),
    [
        ([call({"city": "Seoul"})], True, True),
        ([{"function": {"name": "get_weather", "arguments": {"city": "Seoul"}}}], True, True),
        ([call({"city": "Busan"})], False, True),
        ([call({"city": "Seoul", "unit": "C"})], False, True),
        ([call({"city": "Seoul", "unit": "K"})], False, False),
        ([call({"city": "Seoul", "country": "KR"})], False, False),
        ([call({})], False, False),
        ([call({"city": "Seoul"}, name="weather")], False, False),
        ([call('{"city": "Seoul"')], False, False),
        ([call('"{\\"city\\": \\"Seoul\\"}"')], False, False),
        ([call("[1]")], False, False),
        ([call({"city": "Seoul"}), call({"city": "Seoul"})], False, True),
        (["get_weather(Seoul)"], False, False),
        ([], False, True),
        (None, False, True),
    ],
)
def test_calls(calls, success, form):
    assert tool([SEOUL], calls) == (success, form)


def test_order_does_not_matter_and_numbers_go_by_value():
    expected = [SEOUL, {"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}]
    assert tool(expected, [call({"city": "Oslo", "days": 2.0}), call({"city": "Seoul"})]) == (
        True,
        True,
    )
    assert tool(expected[1:], [call('{"city": "Oslo", "days": "2"}')])[0] is False


def test_extra_arguments_need_leave():
    free = SEOUL | {"allow_extra": ["unit"]}
    assert tool([free], [call({"city": "Seoul", "unit": "F"})])[0] is True
    assert tool([free], [call({"city": "Seoul", "days": 1})])[0] is False
    # The call with the extra argument fits only the second expectation.
    both = [free, SEOUL]
    assert tool(both, [call({"city": "Seoul"}), call({"city": "Seoul", "unit": "F"})])[0] is True


def test_must_not_call():
    assert tool([], [], "It is sunny, I guess.") == (True, True)
    assert tool([], [call({"city": "Seoul"})]) == (False, True)


def test_calls_written_as_text_are_no_calls():
    text = '<tool_call>{"name": "get_weather", "arguments": {"city": "Seoul"}}</tool_call>'
    assert tool([SEOUL], [], text)[0] is False
    assert tool([], [], text)[0] is True


def test_unreadable_arguments_do_not_equal_none():
    nothing = {"name": "get_weather", "arguments": {}}
    assert tool([nothing], [call("{oops")]) == (False, False)
