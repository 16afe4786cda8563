"""What git says of the project."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(project: Path, *arguments: str) -> str | None:
    """Return git's answer; None without git, or where ``project`` is not a repository's root.

    Bytes that are no UTF-8 come as surrogates, so that a diff can be written as it was.
    """
    if not (project / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(project), *arguments], capture_output=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None
