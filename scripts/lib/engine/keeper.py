"""Starts one server and ends all of it when its own standard input closes.

The job that started it holds the other end of that pipe. However the job ends, even by
SIGKILL, the pipe closes and the server's whole group is ended: INT, then TERM, then KILL.
Standard library only, and started by path: it must be up in milliseconds.

Usage: python -I keeper.py LOG INT_GRACE_S TERM_GRACE_S NICENESS COMMAND...
Exit status: the server's own (128 + signal when a signal ended it).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def main(arguments: list[str]) -> int:
    """Run the command until it ends or standard input closes."""
    log, int_grace, term_grace, niceness, *command = arguments
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # only the pipe ends us
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans of the server come to us

    def in_child() -> None:
        os.setsid()
        os.nice(int(niceness))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    with Path(log).open("ab", buffering=0) as out:
        try:
            server = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, preexec_fn=in_child
            )
        except OSError as error:
            out.write(f"cannot start {command[0]}: {error.strerror}\n".encode())
            return 127
    while server.poll() is None and not _pipe_closed(0.1):
        pass
    _end(server, float(int_grace), float(term_grace))
    status = server.wait()
    return 128 - status if status < 0 else status


def _pipe_closed(wait_s: float) -> bool:
    readable, _, _ = select.select([0], [], [], wait_s)
    return bool(readable) and not os.read(0, 64)


def _end(server: subprocess.Popen[bytes], int_grace: float, term_grace: float) -> None:
    """End the server and everything it started, also what left its process group."""
    steps = ((signal.SIGINT, int_grace), (signal.SIGTERM, term_grace), (signal.SIGKILL, 10.0))
    for number, grace in steps:
        if not _descendants():
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, number)
        if number != signal.SIGINT:  # a polite interrupt goes to the group alone
            for pid in _descendants():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        deadline = time.monotonic() + grace
        while time.monotonic() < deadline and _descendants():
            _reap(server)
            time.sleep(0.02)


def _reap(server: subprocess.Popen[bytes]) -> None:
    server.poll()
    with contextlib.suppress(ChildProcessError):
        while True:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None or found.si_pid == server.pid:
                return
            os.waitpid(found.si_pid, 0)


def _descendants() -> list[int]:
    """Return the pids of all living descendants of this process."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, queue = [], [os.getpid()]
    while queue:
        for pid in children.get(queue.pop(), []):
            found.append(pid)
            queue.append(pid)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
