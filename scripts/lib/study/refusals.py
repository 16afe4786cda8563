"""What a job would refuse, some of them hours later: refused before any job starts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from scripts.lib.study.gpu_names import gpu_problem
from scripts.lib.study.raw import Raw, engines, section, sources
from scripts.lib.study.sentences import show

LOCK = re.compile(r"envs/[A-Za-z0-9._-]+\.txt")
"""Where the rules look for the lock of an environment."""
PIN = re.compile(r"\s*[A-Za-z0-9._-]+(\[[\w.,\s-]+\])?\s*==\s*[A-Za-z0-9][A-Za-z0-9.!+_-]*\s*")
GROUPED = ("W4A16", "W8A16")
"""llm-compressor's schemes whose weights have a scale per group."""
SOURCES = ("hub", "path", "package", "quantize", "dummy")
OURS = {
    "model": "the checkpoint is served",
    "served-model-name": "the variant's name is served",
    "host": "the server listens on 127.0.0.1",
    "port": "a free port is chosen",
}
"""Flags that a job sets itself: given twice, the client would wait for another server."""
SIZES = {
    short: f"{name}_parallel_size"
    for name in ("tensor", "pipeline", "data")
    for short in (f"{name}-parallel-size", f"{name[0]}p")
}
"""vLLM's flags that decide how many GPUs a job takes."""


def find_refusals(raw: Raw, project: Path) -> Iterator[str]:
    """Yield a sentence for each value of ``raw`` that a job would refuse."""
    host = raw.get("host")
    if isinstance(host, dict) and isinstance(host.get("gpu"), str):
        problem = gpu_problem(host["gpu"])
        if problem:
            yield problem
    yield from _unpinned(raw)
    yield from _unquantizable(raw)
    yield from _folders_without_a_model(raw, project)
    for where, engine in engines(raw).items():
        yield from _engine(where, engine)
    for name, variant in section(raw, "variants").items():
        yield from _environment(f"variants.{name}.env", variant.get("env"))
        yield from _flags(f"variants.{name}.engine_args", variant.get("engine_args"))


def _unpinned(raw: Raw) -> Iterator[str]:
    for name, package in sources(raw, "package").items():
        wanted = package.get("distribution")
        if isinstance(wanted, str) and not PIN.fullmatch(wanted):
            yield (
                f"checkpoints.{name}.package.distribution is {show(wanted)}; pin it "
                "(name==version), so that the study can be repeated"
            )


def _unquantizable(raw: Raw) -> Iterator[str]:
    for name, quantize in sources(raw, "quantize").items():
        where, scheme = f"checkpoints.{name}.quantize", quantize.get("scheme")
        kind = _kind(section(raw, "checkpoints").get(str(quantize.get("from")), {}))
        if kind == "quantize" and quantize.get("from") != name:
            yield (
                f"{where}.from is {show(quantize['from'])}, which is quantized already; start from "
                "an unquantized checkpoint"
            )
        if kind == "dummy":
            yield (
                f"{where}.from is {show(quantize['from'])}, which has no weights; for random "
                "weights give a dummy source with a quantized model's config"
            )
        if scheme == "FP8" and not quantize.get("calibration"):
            yield (
                f"{where}: scheme FP8 learns its activations' scales from text; give calibration: "
                "a ShareGPT-format file, or scheme: FP8_DYNAMIC, which needs none"
            )
        if isinstance(scheme, str) and quantize.get("group_size") and scheme not in GROUPED:
            yield (
                f"{where}.group_size is {show(quantize['group_size'])}, and scheme {show(scheme)} "
                f"has no groups; remove it, or give scheme {' or '.join(GROUPED)}"
            )


def _folders_without_a_model(raw: Raw, project: Path) -> Iterator[str]:
    for where, folder in _model_folders(raw):
        if _holds_no_model(folder, project):
            yield (
                f"{where} is {show(folder)}, where there is no config.json; give the folder of a "
                "model, from the project"
            )


def find_absent_folders(raw: Raw, project: Path) -> Iterator[str]:
    """Yield a sentence for each model that is not on this machine: planned elsewhere, it may be."""
    for where, folder in _model_folders(raw):
        if _is_absent(folder, project):
            yield (
                f"{where} is {show(folder)}, which is not on this machine: it can be planned here, "
                "and measured where that folder is"
            )


def _model_folders(raw: Raw) -> Iterator[tuple[str, str]]:
    """Yield where a study names the folder of a model, and the folder."""
    for name, checkpoint in section(raw, "checkpoints").items():
        kind = _kind(checkpoint)
        dummy = checkpoint.get("dummy")
        key, folder = "path", checkpoint.get("path") if kind == "path" else None
        if kind == "dummy" and isinstance(dummy, dict):
            key, folder = "dummy.config", dummy.get("config")
        if isinstance(folder, str):
            yield f"checkpoints.{name}.{key}", folder


def _kind(checkpoint: dict[str, Any]) -> str | None:
    """Return a checkpoint's kind of source; None where it has none or several."""
    given = [kind for kind in SOURCES if checkpoint.get(kind)]
    return given[0] if len(given) == 1 else None


def _holds_no_model(folder: str, project: Path) -> bool:
    """Say if the folder is here without a model, or cannot be anywhere."""
    try:
        path = project / Path(folder).expanduser()
        return path.exists() and not (path / "config.json").is_file()
    except RuntimeError:  # the home of somebody who is not known here
        return False
    except (OSError, ValueError):  # too long, a NUL
        return True


def _is_absent(folder: str, project: Path) -> bool:
    try:
        return not (project / Path(folder).expanduser()).exists()
    except RuntimeError:
        return True
    except (OSError, ValueError):
        return False


def _engine(where: str, engine: dict[str, Any]) -> Iterator[str]:
    lock, address = engine.get("environment"), engine.get("address")
    # Any other place passes for a file that is there, and no rule installs it.
    if isinstance(lock, str) and lock and not LOCK.fullmatch(str(PurePosixPath(lock))):
        yield f"{where}.environment is {show(lock)}; put the lock into envs/, as envs/NAME.txt"
    if isinstance(address, str) and address and not _is_url(address):
        yield f"{where}.address is {show(address)}; give a URL such as http://127.0.0.1:8000"
    kind = next((kind for kind in ("command", "address") if engine.get(kind)), None)
    if where == "maker" and kind:
        yield f"maker.{kind} cannot make checkpoints; give maker environment or python"
    yield from _environment(f"{where}.env", engine.get("env"))
    yield from _flags(f"{where}.args", engine.get("args"))


def _is_url(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:  # no such port, or a bracket left open
        return False


def _environment(where: str, variables: object) -> Iterator[str]:
    for name in variables if isinstance(variables, dict) else ():
        if not name or "=" in str(name) or "\0" in str(name):
            yield f"{where} names a variable {show(name)}; give NAME: value"


def _flags(where: str, flags: object) -> Iterator[str]:
    for given in _flag_names(flags):
        flag = given.lstrip("-").replace("_", "-")
        if flag in OURS:
            yield f"{where} sets {show(given)}, which is set here ({OURS[flag]}); remove it"
        if flag in SIZES:
            place = "the variants" if where.endswith(".args") else where.rpartition(".")[0]
            yield (
                f"{where} sets {show(given)}; give {SIZES[flag]} to {place}, so that its job takes "
                "as many GPUs"
            )


def _flag_names(flags: object) -> Iterator[str]:
    if isinstance(flags, dict):
        yield from (str(name) for name in flags)
    elif isinstance(flags, list):
        words = (str(word).partition("=")[0] for word in flags)
        yield from (word for word in words if word.startswith("-"))
