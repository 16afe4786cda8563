"""The process that holds the tests: it starts the candidate and judges what comes back."""

from __future__ import annotations

import ast
import builtins
import contextlib
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
from types import FrameType
from typing import Any

from scripts.lib.quality.sandbox.wire import CALLBACKS, BrokenWire, Peer, Remote

MODULES = {
    "cmath",
    "collections",
    "datetime",
    "functools",
    "itertools",
    "json",
    "math",
    "operator",
    "random",
    "re",
    "statistics",
    "string",
}
"""Modules that tests may use without importing them."""

EVALUATOR_MEMORY = 2 * 1024**3


class _Timeout(BaseException):
    pass


def main() -> None:
    """Read a job, run its tests, write the verdict: ``{"failure": null | sentence}``."""
    result = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    job = json.load(sys.stdin)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (EVALUATOR_MEMORY, EVALUATOR_MEMORY))
    with subprocess.Popen(
        job["candidate"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            verdict = _judge(job, process)
        finally:
            process.kill()
    print(json.dumps(verdict), file=result, flush=True)


def _judge(job: dict[str, Any], process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    peer = Peer(process.stdout, process.stdin, CALLBACKS)
    try:
        peer.send({key: job[key] for key in ("code", "limits", "library")})
        ready = peer.receive()
    except BrokenWire as error:
        return {"broken": str(error)}
    signal.signal(signal.SIGALRM, _on_timeout)
    signal.setitimer(signal.ITIMER_REAL, job["timeout_s"])
    try:
        failure = _run(job, peer)
    except _Timeout:
        failure = f"not done after {job['timeout_s']:g} s"
    except BrokenWire:
        failure = "the code ended its process"
    except MemoryError:
        failure = "the tests ran out of memory"
    except Exception as error:  # replies that the code forged
        failure = f"the code does not answer as it should: {_words(error)}"
    signal.setitimer(signal.ITIMER_REAL, 0)
    return {"failure": failure, "filtered": ready.get("filtered")}


def _on_timeout(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise _Timeout


def _run(job: dict[str, Any], peer: Peer) -> str | None:
    root = Remote(peer, 0)
    try:
        root.run()
    except BrokenWire:
        raise
    except Exception as error:
        return f"the code fails: {_words(error)}"
    if root.has(job["entry_point"]) is not True:
        return f"{job['entry_point']} is not defined"
    names = _namespace(job, root)
    for test in job["tests"]:
        try:
            exec(compile(test, "<test>", "exec", dont_inherit=True), names)  # noqa: S102 - the tests are the user's
        except (BrokenWire, _Timeout, MemoryError):
            raise
        except AssertionError as error:
            return f"failed: {test}" + (f" ({error})" if str(error) else "")
        except BaseException as error:
            return f"failed: {test} ({_words(error)})"
    return None


def _namespace(job: dict[str, Any], root: Remote) -> dict[str, Any]:
    """Return what the tests may name: the entry point, modules, other names of the code.

    Built-in functions are this process's own, whatever the code did to its own.
    """
    used = {
        node.id
        for test in job["tests"]
        for node in ast.walk(ast.parse(test))
        if isinstance(node, ast.Name)
    }
    names: dict[str, Any] = {"__name__": "tests"}
    for name in sorted(used - {job["entry_point"]}):
        if name in MODULES:
            names[name] = importlib.import_module(name)
        elif not hasattr(builtins, name) and root.has(name) is True:
            names[name] = root.get(name)
    names[job["entry_point"]] = root.get(job["entry_point"])
    return names


def _words(error: BaseException) -> str:
    text = " ".join(str(error).split())[:120]
    name = type(error).__name__
    return text if name == "RemoteError" else f"{name}: {text}" if text else name
