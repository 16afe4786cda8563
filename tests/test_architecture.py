"""Imports point one way, and each place holds what its name says."""

import ast
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
LIB = PROJECT / "scripts/lib"
LEVELS = {
    "base": 0,
    "study": 1,
    "checkpoints": 2,
    "engine": 2,
    "telemetry": 2,
    "quality": 2,
    "judging": 2,
    "load": 3,
    "plan": 4,
    "jobs": 5,
    "analysis": 5,
    "report": 6,
}
# The shapes of files on disk: any area may read another's.
SHARED_SHAPES = {
    "scripts.lib.load.requests",
    "scripts.lib.load.results",
    "scripts.lib.engine.startup",
    "scripts.lib.telemetry.host",
    "scripts.lib.checkpoints.manifest",
    "scripts.lib.quality.results",
}
MODULES = sorted(LIB.rglob("*.py"))
RULES = sorted((PROJECT / "rules").glob("*.smk"))


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def area(module: str) -> str:
    return module.split(".")[2]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(LIB)))
def test_imports_point_one_way(path):
    here = path.relative_to(LIB).parts[0]
    for module in imports_of(path):
        assert module.split(".")[0] != "snakemake", "the library knows nothing of Snakemake"
        assert not (module.startswith("scripts.") and not module.startswith("scripts.lib")), module
        if not module.startswith("scripts.lib.") or module in SHARED_SHAPES:
            continue
        there = area(module)
        assert there == here or LEVELS[there] < LEVELS[here], f"{here} must not import {module}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(LIB)))
def test_modules_stay_readable(path):
    assert len(path.read_text().splitlines()) <= 400


def test_no_import_cycles():
    graph = {}
    for path in MODULES:
        name = ".".join(path.relative_to(PROJECT).with_suffix("").parts)
        graph[name] = {module for module in imports_of(path) if module.startswith("scripts.lib")}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " → ".join((*trail, name))
        if name in done or name not in graph:
            return
        for module in graph[name]:
            visit(module, (*trail, name))
        done.add(name)

    for name in graph:
        visit(name, ())


def test_rule_script_and_log_share_their_name():
    for path in RULES:
        text = path.read_text()
        for block in text.split("\nrule ")[1:]:
            name = block.partition(":")[0]
            if "python -m scripts." in block and "output:" in block:
                assert f"python -m scripts.{name} " in block, f"{path}: {name}"
                assert f"/{name}" in block.partition("log:")[2].partition("\n    shell")[0], name


def test_engine_side_imports_neither_the_library_nor_the_workflow():
    for path in (PROJECT / "scripts/engine_side").glob("*.py"):
        assert not {m for m in imports_of(path) if m.split(".")[0] in ("scripts", "snakemake")}
