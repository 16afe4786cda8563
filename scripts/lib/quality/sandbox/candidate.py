"""The process that holds a model's code and does the calls it is asked for."""

from __future__ import annotations

import os
import sys
import types

from scripts.lib.quality.sandbox import confine, seccomp
from scripts.lib.quality.sandbox.wire import OPERATIONS, BrokenWire, Peer


def main() -> None:
    """Read the code, give up what it must not do, run it, then serve until the wire ends."""
    reader, writer = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    peer = Peer(reader, writer, OPERATIONS)
    job = peer.receive()
    sys.path[:] = [path for path in sys.path if path != job["library"]]
    seccomp.die_with_parent()
    filtered = seccomp.forbid()
    confine.limit(job["limits"])
    confine.watch()
    peer.send({"ready": True, "filtered": filtered})
    module = types.ModuleType("candidate")
    root = peer.keep(_Root(module, job["code"]))
    assert root == 0
    try:
        while True:
            peer.serve(peer.receive())
    except BrokenWire:
        os._exit(0)


class _Root:
    """What the evaluator asks first: run the code, then for names that it defines."""

    def __init__(self, module: types.ModuleType, code: str) -> None:
        self._module, self._code = module, code

    def run(self) -> None:
        """Run the code as a module that is not the main program."""
        sys.modules["candidate"] = self._module
        exec(compile(self._code, "<answer>", "exec", dont_inherit=True), self._module.__dict__)  # noqa: S102

    def has(self, name: str) -> bool:
        """Whether the code has bound ``name``."""
        return name in self._module.__dict__

    def get(self, name: str) -> object:
        """Return what the code has bound to ``name``."""
        return self._module.__dict__[name]
