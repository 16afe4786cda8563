"""An engine that cannot be used is found out before a model is loaded."""

import sys
from pathlib import Path

import pytest

from scripts.lib.base.console import JobError
from scripts.lib.engine.environment import inspect_engine
from scripts.lib.study.models import Engine
from scripts.lib.study.specs import EngineSpec

PROJECT = Path(__file__).parents[2]


def inspect(engine: Engine, *, serves: bool = True, makes: bool = False):
    spec = EngineSpec(name=engine.name, engine=engine, serves=serves, makes=makes)
    return inspect_engine(spec, PROJECT / "nowhere", PROJECT)


def package(folder: Path, name: str, text: str = "") -> None:
    """Write an importable module ``a.b.c``."""
    *parents, last = name.split(".")
    for depth in range(len(parents)):
        path = folder.joinpath(*parents[: depth + 1])
        path.mkdir(exist_ok=True)
        (path / "__init__.py").touch()
    folder.joinpath(*parents, f"{last}.py").write_text(text)


def test_a_python_with_the_engine_on_its_path(tmp_path):
    package(tmp_path, "vllm.entrypoints.openai.api_server")
    info = inspect(Engine(python=sys.executable, env={"PYTHONPATH": str(tmp_path)}))
    assert info.kind == "python"
    assert info.versions["python"].startswith("3.")


def test_a_maker_needs_no_server(tmp_path):
    package(tmp_path, "llmcompressor")
    maker = Engine(python=sys.executable, env={"PYTHONPATH": str(tmp_path)})
    assert inspect(maker, serves=False, makes=True).versions
    with pytest.raises(JobError, match="api_server"):
        inspect(maker, serves=True, makes=True)


def test_a_missing_import_is_named(tmp_path):
    package(tmp_path, "vllm.entrypoints.openai.api_server", "import pandaz\n")
    with pytest.raises(JobError, match="No module named 'pandaz'"):
        inspect(Engine(python=sys.executable, env={"PYTHONPATH": str(tmp_path)}))


def test_a_python_or_command_that_is_not_there():
    with pytest.raises(JobError, match="no/such/python"):
        inspect(Engine(python="no/such/python"))
    with pytest.raises(JobError, match='starts "no-such-program"'):
        inspect(Engine(command=["no-such-program"]))


def test_a_server_at_an_address_is_not_imported():
    assert inspect(Engine(address="http://127.0.0.1:1")).kind == "address"
