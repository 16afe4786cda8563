"""Takes machine paths and secrets out of commands and environments before they are shown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from scripts.lib.base.secrets import KNOWN_SECRETS

MASK = "***"
_SECRET_PART = re.compile(r"(token|secret|key|password|passwd|credential|credentials)$", re.I)
_CREDENTIALS_IN_URL = re.compile(r"(?<=://)[^/@\s]+@")
_ABSOLUTE = re.compile(r"(?<![\w./<>~])(?:~|/[^\s\"',:;=/]+)(?:/[^\s\"',:;=/]+)+/?")
_SYSTEM = ("/v1/", "/metrics", "/dev/", "/proc/", "/sys/")


def is_secret_name(name: str) -> bool:
    """Return whether a variable or flag holds a secret, e.g. HF_TOKEN; MAX_TOKENS does not."""
    return any(_SECRET_PART.search(part) for part in re.split(r"[_\-.]", name) if part)


def clean_environment(environment: Mapping[str, str], project: Path) -> dict[str, str]:
    """Return variables with the secret ones masked and machine paths shortened."""
    return {
        name: MASK if is_secret_name(name) else clean_text(value, project)
        for name, value in sorted(environment.items())
    }


def clean_command(command: Sequence[str], project: Path) -> list[str]:
    """Return a command line with paths made relative to ``project`` and secrets masked."""
    cleaned: list[str] = []
    hide_next = False
    for word in command:
        name, equals, _ = word.partition("=")
        names_secret = is_secret_name(name) and (name.startswith("-") or name.isidentifier())
        if hide_next and not word.startswith("-"):
            cleaned.append(MASK)
        elif equals and names_secret:
            cleaned.append(f"{name}={MASK}")
        else:
            cleaned.append(clean_text(word, project))
        hide_next = word.startswith("-") and not equals and names_secret
    return cleaned


def clean_text(text: str, project: Path) -> str:
    """Return ``text`` with machine paths shortened, and what looks like a secret masked.

    Paths inside the project become relative to it; of others only the last part is kept.
    """
    for _, pattern in KNOWN_SECRETS:
        text = pattern.sub(MASK, text)
    text = _CREDENTIALS_IN_URL.sub(f"{MASK}@", text)
    root = str(project.resolve())
    text = re.sub(re.escape(root) + r"(?=$|[^\w.-])/?", "", text) if root != "/" else text
    return _ABSOLUTE.sub(_shortened, text)


def _shortened(match: re.Match[str]) -> str:
    path = match.group()
    if path.startswith(_SYSTEM):
        return path
    return f"<path>/{PurePosixPath(path).name}"
