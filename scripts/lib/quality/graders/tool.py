"""Grades tool calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scripts.lib.quality.completions import Completion
from scripts.lib.quality.graders.grade import Grade, short
from scripts.lib.quality.graders.json_values import NotJson, equal, parse, violation
from scripts.lib.quality.probes import (
    ExpectedCall,
    ProbeItem,
    ToolGrader,
    tool_function,
    tool_schema,
)


@dataclass(frozen=True)
class Call:
    """One call as the model made it; ``problem`` says why it cannot be executed.

    Without ``arguments`` they could not be read.
    """

    name: str
    arguments: dict[str, Any] | None
    problem: str | None


def grade_tool(grader: ToolGrader, item: ProbeItem, completion: Completion) -> Grade:
    """Grade calls: they equal the expected ones, in any order; each could be executed."""
    calls = [_read_call(raw, item) for raw in completion.tool_calls]
    problems = [call.problem for call in calls if call.problem]
    success = _all_matched(calls, grader.expected)
    reason = "; ".join(problems) or _difference(calls, grader.expected, success=success)
    return Grade(tool_success=success, format_ok=not problems, reason=reason)


def _read_call(raw: Any, item: ProbeItem) -> Call:  # noqa: ANN401 - whatever the server sent
    function = raw.get("function", raw) if isinstance(raw, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return Call("", None, f"not a function call: {short(raw)}")
    name = function["name"]
    try:
        arguments = _arguments(function.get("arguments"))
    except NotJson as error:
        return Call(name, None, f"{name}: the arguments are not JSON: {short(error)}")
    if not isinstance(arguments, dict):
        return Call(name, None, f"{name}: the arguments are not a JSON object: {short(arguments)}")
    tool = next((t for t in item.tools if tool_function(t)["name"] == name), None)
    if tool is None:
        return Call(name, arguments, f"{name} is none of the given tools")
    wrong = violation(arguments, tool_schema(tool))
    return Call(name, arguments, f"{name}: {wrong}" if wrong else None)


def _arguments(raw: Any) -> Any:  # noqa: ANN401 - JSON text or a parsed value
    if raw is None or (isinstance(raw, str) and not raw.strip()):
        return {}
    return parse(raw) if isinstance(raw, str) else raw


def _is_expected(call: Call, expected: ExpectedCall) -> bool:
    if call.name != expected.name or call.arguments is None:
        return False
    extra = call.arguments.keys() - expected.arguments.keys()
    if not extra <= set(expected.allow_extra):
        return False
    required = {key: value for key, value in call.arguments.items() if key not in extra}
    return equal(required, expected.arguments)


def _all_matched(calls: list[Call], expected: list[ExpectedCall]) -> bool:
    """Whether calls and expectations match one to one (Kuhn's augmenting paths)."""
    if len(calls) != len(expected):
        return False
    owner: dict[int, int] = {}

    def place(call: int, tried: set[int]) -> bool:
        for slot, wanted in enumerate(expected):
            if slot in tried or not _is_expected(calls[call], wanted):
                continue
            tried.add(slot)
            if slot not in owner or place(owner[slot], tried):
                owner[slot] = call
                return True
        return False

    return all(place(call, set()) for call in range(len(calls)))


def _difference(calls: list[Call], expected: list[ExpectedCall], *, success: bool) -> str:
    if success:
        return "called as expected" if calls else "made no call, as expected"
    if not calls:
        return f"made no call, expected {_names(expected)}"
    if not expected:
        return f"called {_names(calls)}, but no call was needed"
    wrong = [c for c in calls if not any(_is_expected(c, e) for e in expected)]
    if wrong:
        return f"not expected: {wrong[0].name}({short(wrong[0].arguments)})"
    return f"{len(calls)} calls, expected {len(expected)}"


def _names(calls: Sequence[Call | ExpectedCall]) -> str:
    return ", ".join(call.name for call in calls)
