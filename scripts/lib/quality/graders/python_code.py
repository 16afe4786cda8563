"""Grades Python code: finds it in an answer and runs it against tests in the sandbox."""

from __future__ import annotations

import ast
import functools
import re
import textwrap
from collections.abc import Iterator

from scripts.lib.quality.completions import Completion
from scripts.lib.quality.graders.grade import Grade, without_thoughts
from scripts.lib.quality.probes import ProbeItem, PythonGrader
from scripts.lib.quality.sandbox.runner import run_tests

_FENCE = re.compile(
    r"^[ \t]*(?P<mark>`{3,}|~{3,})[ \t]*(?P<tag>[\w+.-]*)[^\n]*\n"
    r"(?P<code>.*?)(?:^[ \t]*(?P=mark)|\Z)",
    re.DOTALL | re.MULTILINE,
)
_INLINE = re.compile(r"`([^`\n]+)`")
_TAGS = {"", "python", "python3", "py", "py3", "python2", "code", "text", "plaintext"}
_FIRST_LINE = re.compile(
    r"^(?:def|async def|class|import|from|@)\b|^@|^[A-Za-z_]\w*\s*(?::[^=\n]+)?=[^=]"
)
_INDENTED = re.compile(r"(?:^(?: {4,}\S.*|[ \t]*)(?:\n|\Z))+", re.MULTILINE)
_OPENS_A_BLOCK = re.compile(
    r"\s*(?:(?:async\s+)?def|class|if|for|while|try|with|else|elif)\b.*:\s*$|\s+\S"
)
MOST_TRIES = 4
MOST_LINES = 400


def grade_python(grader: PythonGrader, item: ProbeItem, completion: Completion) -> Grade:  # noqa: ARG001
    """Grade code: it defines the entry point and passes every test.

    An answer may hold several pieces of code (a draft, then a better one): any that passes will
    do; the last is tried first.
    """
    reason = f"no code in the text defines {grader.entry_point}"
    text = without_thoughts(completion.text)
    for code in list(candidates(text, grader.entry_point))[:MOST_TRIES]:
        failure = run_tests(code, grader.entry_point, grader.tests)
        if failure is None:
            return Grade(task_success=True, reason="passed all tests")
        reason = failure
    return Grade(task_success=False, reason=reason)


def candidates(text: str, entry_point: str) -> Iterator[str]:
    """Yield the pieces of code in ``text`` that define ``entry_point``, each once."""
    text = text.replace("\r\n", "\n").replace("\t", "    ").replace("\ufeff", "")
    blocks = [
        textwrap.dedent(found["code"])
        for found in _FENCE.finditer(text)
        if found["tag"].casefold() in _TAGS
    ]
    inline = _INLINE.findall(text)
    pieces = [*reversed(blocks), "\n".join(blocks), *inline, _bare(text), *_indented(text)]
    seen: set[str] = set()
    fitted = functools.partial(_compilable, entry_point=entry_point)
    for piece in pieces:
        code = _without_prompts(piece)
        found = (f(c) for c in dict.fromkeys((code, piece)) for f in (str, fitted))
        for variant in found:
            if variant.strip() in seen or not defines(variant, entry_point):
                continue
            seen.add(variant.strip())
            yield variant
            break


def defines(code: str, name: str) -> bool:
    """Whether ``code`` compiles and binds ``name`` at its top level."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(name in _bound(node) for node in tree.body)


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name for alias in node.names}
    if isinstance(node, ast.If | ast.Try | ast.With):
        return {
            name
            for child in ast.walk(node)
            if child is not node and isinstance(child, ast.stmt)
            for name in _bound(child)
        }
    return {
        child.id
        for child in ast.walk(node)
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store)
    }


def _bare(text: str) -> str:
    """Return a text without its fence lines: what may be code without a fence."""
    text = re.sub(r"^[ \t]*(?:```|~~~).*$", "", text, flags=re.MULTILINE)
    return re.sub(r"\A\s*python3?[ \t]*\n", "", text, flags=re.IGNORECASE)


def _indented(text: str) -> Iterator[str]:
    """Yield the code blocks that Markdown marks by indentation alone: below a line of prose."""
    for found in _INDENTED.finditer(text):
        before = text[: found.start()].rstrip().rpartition("\n")[2]
        if not _OPENS_A_BLOCK.match(before):
            yield textwrap.dedent(found[0])


def _without_prompts(code: str) -> str:
    """Return code copied from an interactive session without its prompts and output."""
    if not re.search(r"^>>> ", code, re.MULTILINE):
        return code
    lines = [line for line in code.split("\n") if line.startswith((">>> ", "... "))]
    return "\n".join(line[4:] for line in lines)


def _compilable(text: str, entry_point: str) -> str:
    """Return the longest run of whole lines that compiles and defines ``entry_point``.

    For code with prose around it. The start may be within a line ("Here it is: def f(x): …").
    """
    lines = textwrap.dedent(text).split("\n")[:MOST_LINES]
    starts = [i for i, line in enumerate(lines) if _FIRST_LINE.match(line)]
    for start in starts:
        found = _longest(lines[start:], entry_point)
        if found:
            return found
    inside = re.search(rf"(?<=\S )def\s+{re.escape(entry_point)}\s*\(", text)
    return _longest(text[inside.start() :].split("\n")[:MOST_LINES], entry_point) if inside else ""


def _longest(lines: list[str], entry_point: str) -> str:
    """Return the most of the first lines that compile: cut before each line that does not."""
    while lines:
        code = "\n".join(lines)
        try:
            ast.parse(code)
        except SyntaxError as error:
            lines = lines[: min(max(error.lineno or 1, 1), len(lines)) - 1]
        except (ValueError, RecursionError, MemoryError):
            return ""
        else:
            return code if defines(code, entry_point) else ""
    return ""
