"""The environment that makes checkpoints, and running a tool in it."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from scripts.lib.base.files import read_json
from scripts.lib.base.schema import Strict
from scripts.lib.checkpoints.errors import CheckpointError

TOOLS = (
    "llmcompressor",
    "compressed-tensors",
    "transformers",
    "torch",
    "gguf",
    "tokenizers",
    "safetensors",
)
"""The packages whose version can change a checkpoint's content."""

ENGINE_SIDE = Path(__file__).resolve().parents[2] / "engine_side"
EXCEPTION = re.compile(r"([a-zA-Z_]\w*\.)*\w*(Error|Exception|Interrupt)(: |$)")
"""How Python ends a traceback; a long message may follow on further lines."""


class Maker(Strict):
    """A Python that has llm-compressor, transformers and gguf."""

    model_config = {**Strict.model_config, "extra": "ignore"}

    python: str
    env: dict[str, str | int | float] = {}
    versions: dict[str, str] = {}

    @property
    def tools(self) -> dict[str, str]:
        """The versions that matter for a checkpoint's content."""
        return {name: self.versions[name] for name in TOOLS if name in self.versions}


def read_maker(path: Path | None) -> Maker | None:
    """Read the description of the maker environment; None stays None."""
    if path is None:
        return None
    if not path.is_file():
        raise CheckpointError(f"{path} is missing: the rule that sets up the maker writes it")
    return Maker.model_validate(read_json(path))


def tool(name: str) -> Path:
    """Return the path of a script that runs in the maker's Python."""
    return ENGINE_SIDE / f"{name}.py"


def run_tool(maker: Maker, name: str, arguments: list[str], log: Path) -> None:
    """Run ``scripts/engine_side/<name>.py`` in the maker's Python, its output into ``log``.

    Nothing is asked from the hub: all inputs are local.

    Raises:
        CheckpointError: It failed; the message ends with what it said last.
    """
    environment = {
        **os.environ,
        **{key: str(value) for key, value in maker.env.items()},
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    run_command([maker.python, str(tool(name)), *arguments], f"{name}.py", log, environment)


def run_command(
    command: list[str], what: str, log: Path, environment: Mapping[str, str] | None = None
) -> None:
    """Run a command with its output appended to ``log``; it ends when this process does.

    Raises:
        CheckpointError: It cannot be started, or fails.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        output.write(f"$ {' '.join(command)}\n".encode())
        output.flush()
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - no threads in these command lines
            )
        except OSError as error:
            raise CheckpointError(
                f"{command[0]} cannot be started ({error.strerror}); is its environment set up?"
            ) from None
        status = _wait(child)
    if status:
        raise CheckpointError(_failure(what, status, log))


def _wait(child: subprocess.Popen[bytes]) -> int:
    try:
        return child.wait()
    except BaseException:
        child.terminate()
        try:
            child.wait(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        raise


def _die_with_parent() -> None:
    """Ask Linux to end the child when its parent is killed (PR_SET_PDEATHSIG = 1)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def _failure(what: str, status: int, log: Path) -> str:
    if status == -signal.SIGKILL:
        return (
            f"{what} was killed, most likely for lack of memory: it needs about twice the size "
            f"of the checkpoint; the whole log: {log}"
        )
    return f"{what} failed: {last_words(log)}; the whole log: {log}"


def last_words(log: Path) -> str:
    """Return the last exception in the log, or else the last line that says something."""
    text = log.read_text(encoding="utf-8", errors="replace").replace("\r", "\n")
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    exceptions = [line for line in lines if EXCEPTION.match(line)]
    last = (exceptions or lines or ["it said nothing"])[-1]
    return last.strip().rstrip(".:")
