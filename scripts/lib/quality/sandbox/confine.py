"""Takes from the candidate's process what code under test has no business with."""

from __future__ import annotations

import contextlib
import resource
import sys
from collections.abc import Mapping

_FORBIDDEN_EVENTS = (
    "os.fork",
    "os.forkpty",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "os.kill",
    "os.killpg",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.mkdir",
    "os.chmod",
    "os.chown",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.utime",
    "os.putenv",
    "subprocess.Popen",
    "pty.spawn",
    "signal.pthread_kill",
    "shutil.",
    "socket.",
    "ctypes.",
    "resource.setrlimit",
    "resource.prlimit",
)
_WRITE_FLAGS = 0x1 | 0x2 | 0x40 | 0x200


def limit(limits: Mapping[str, int]) -> None:
    """Set resource limits, as far as the system knows them.

    Args:
        limits: ``cpu_s``, ``memory_bytes``.
    """
    wanted = {
        "RLIMIT_CPU": limits["cpu_s"],
        "RLIMIT_AS": limits["memory_bytes"],
        "RLIMIT_FSIZE": 0,
        "RLIMIT_NOFILE": 32,
        "RLIMIT_NPROC": 0,
        "RLIMIT_CORE": 0,
    }
    for name, value in wanted.items():
        with contextlib.suppress(AttributeError, ValueError, OSError):
            resource.setrlimit(getattr(resource, name), (value, value))


def watch() -> None:
    """Refuse, within Python, processes, signals, sockets and changes to files.

    The second line of defence, and the only one where there is no system call filter.
    """
    sys.addaudithook(_refuse)


def _refuse(event: str, args: tuple[object, ...]) -> None:
    if event.startswith(_FORBIDDEN_EVENTS):
        raise PermissionError(f"{event} is not allowed here")
    if event == "open" and len(args) == 3:
        flags = args[2]
        if isinstance(flags, int) and flags & _WRITE_FLAGS:
            raise PermissionError("files cannot be written here")
