"""Forbids system calls to this process for good (Linux on x86-64 and arm64).

The filter lets a program compute and read files. It refuses new processes and threads,
signals, sockets, and whatever would change the file system.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
import sys

# name: (x86-64, arm64); None where the architecture has no such call
_FORBIDDEN: dict[str, tuple[int | None, int | None]] = {
    "fork": (57, None),
    "vfork": (58, None),
    "clone": (56, 220),
    "clone3": (435, 435),
    "execve": (59, 221),
    "execveat": (322, 281),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    "pidfd_open": (434, 434),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "setpgid": (109, 154),
    "setsid": (112, 157),
    "setrlimit": (160, 164),
    "prlimit64": (302, 261),
    "prctl": (157, 167),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    "sendto": (44, 206),
    "sendmsg": (46, 211),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "reboot": (169, 142),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "io_uring_setup": (425, 425),
    "memfd_create": (319, 279),
    "creat": (85, None),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "rmdir": (84, None),
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "link": (86, None),
    "linkat": (265, 37),
    "symlink": (88, None),
    "symlinkat": (266, 36),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "truncate": (76, 45),
    "utime": (132, None),
    "utimes": (235, None),
    "utimensat": (280, 88),
}
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # AUDIT_ARCH_*
_OPEN, _OPENAT, _OPENAT2 = (2, None), (257, 56), (437, 437)
_WRITES = 0x1 | 0x2 | 0x40 | 0x200  # O_WRONLY, O_RDWR, O_CREAT, O_TRUNC
_X32 = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _PR_SET_PDEATHSIG, _FILTER = 38, 22, 1, 2


def _statement(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _refuse(number: int, error: int) -> bytes:
    return _statement(_EQUAL, number, 0, 1) + _statement(_RETURN, _REFUSE | error)


def _refuse_writing(number: int, argument: int) -> bytes:
    """Refuse call ``number`` (it opens a file) if its flags, an argument, ask to write."""
    return (
        _statement(_EQUAL, number, 0, 4)
        + _statement(_LOAD, _ARGUMENTS + 8 * argument)
        + _statement(_ANY_BIT, _WRITES, 0, 1)
        + _statement(_RETURN, _REFUSE | errno.EPERM)
        + _statement(_RETURN, _ALLOW)
    )


def program(machine: str) -> bytes | None:
    """Return the filter for a machine as ``struct sock_filter`` records; None: not known."""
    if machine not in _MACHINES:
        return None
    column, architecture = _MACHINES[machine]
    parts = [
        _statement(_LOAD, _ARCHITECTURE),
        _statement(_EQUAL, architecture, 1, 0),
        _statement(_RETURN, _REFUSE | errno.EPERM),
        _statement(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        parts += [_statement(_AT_LEAST, _X32, 0, 1), _statement(_RETURN, _REFUSE | errno.EPERM)]
    forbidden = [numbers[column] for numbers in _FORBIDDEN.values()]
    parts += [_refuse(number, errno.EPERM) for number in forbidden if number is not None]
    parts.append(_refuse(_OPENAT2[column], errno.ENOSYS))  # its flags are out of a filter's sight
    parts.append(_refuse_writing(_OPENAT[column], argument=2))
    if (number := _OPEN[column]) is not None:
        parts.append(_refuse_writing(number, argument=1))
    return b"".join([*parts, _statement(_RETURN, _ALLOW)])


def die_with_parent() -> None:
    """Have the kernel kill this process when the one that started it ends (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)


def forbid() -> bool:
    """Install the filter for this process and its threads; say whether that was possible."""
    code = program(platform.machine()) if sys.platform == "linux" else None
    if code is None:
        return False
    buffer = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(
        struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    )
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    return bool(prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(header), 0, 0) == 0)
