"""Runs code against tests in processes of its own and returns the verdict."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TIMEOUT_S = 10.0
"""Wall time for all tests of one item."""

GRACE_S = 50.0
"""Longest wait for the two processes to start and end, on a busy machine."""

MEMORY_BYTES = 512 * 1024**2

_LIBRARY = str(Path(__file__).resolve().parents[4])


class SandboxError(RuntimeError):
    """The sandbox itself does not work here, which says nothing of the code."""


def run_tests(
    code: str, entry_point: str, tests: list[str], *, timeout_s: float = TIMEOUT_S
) -> str | None:
    """Return why ``code`` fails the tests, as a sentence, or None: it passes them all.

    Raises:
        SandboxError: The sandbox could not be started.
    """
    job = {
        "code": code,
        "entry_point": entry_point,
        "tests": tests,
        "timeout_s": timeout_s,
        "limits": {"cpu_s": int(timeout_s) + 1, "memory_bytes": MEMORY_BYTES},
        "library": _LIBRARY,
        "candidate": _command("candidate"),
    }
    verdict = _verdict(job, timeout_s + GRACE_S)
    if "failure" not in verdict:
        raise SandboxError(f"the code sandbox could not start: {verdict.get('broken')}")
    failure = verdict["failure"]
    return None if failure is None else str(failure)


def _command(module: str) -> list[str]:
    """Return the command of a child: isolated, without site-packages, so alike everywhere."""
    start = (
        f"import sys; sys.path.insert(0, {_LIBRARY!r}); "
        f"from scripts.lib.quality.sandbox.{module} import main; main()"
    )
    return [sys.executable, "-I", "-S", "-c", start]


def _verdict(job: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="sandbox-") as folder:
        process = subprocess.Popen(
            _command("evaluator"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env={},
            start_new_session=True,
        )
        try:
            out, err = process.communicate(json.dumps(job).encode(), timeout=timeout_s)
        except subprocess.TimeoutExpired:
            return {"failure": f"not done after {timeout_s:g} s"}
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    try:
        verdict = json.loads(out)
    except ValueError:
        last = err.decode(errors="replace").strip().rpartition("\n")[2]
        return {"broken": last or f"exit status {process.returncode}"}
    return verdict if isinstance(verdict, dict) else {"broken": "no verdict"}
