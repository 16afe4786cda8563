"""Takes out of a text what belongs to a machine or a person: paths, names, secrets."""

from __future__ import annotations

import getpass
import re
import socket
import tempfile
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from scripts.lib.base.secrets import KNOWN_SECRETS

_WORDLESS = r"(?!<secret|None\b|null\b|true\b|false\b|\d+(?:\.\d+)?\b)"
_NAMED = (
    # Authorization headers, passwords in addresses, then name=value of names that hold secrets.
    r"(?i)(\b(?:bearer|basic)\s+)(?!<secret)([A-Za-z0-9._~+/=-]{16,})",
    r"(?i)(://[^/\s:@\"'<>]*:)(?!<secret)([^@/\s\"'<>]+)(?=@)",
    r"(?i)(--(?:api-key|hf-token|password)\s+)" + _WORDLESS + r"([^\s\"',;<>]{4,})",
    r"(?i)((?:api[_-]?key|secret[_-]?(?:access[_-]?)?key|access[_-]?token|auth[_-]?token|"
    r"hf[_-]token|hugging_?face_?hub_?token|password|passwd|client[_-]?secret|session[_-]?token)"
    r"(?:\\?[\"'])?\s*[=:]\s*\[?\\?[\"']?)" + _WORDLESS + r"([^\s\"',;}\]\\<>(]{6,})",
    r"(\b[A-Z][A-Z0-9_]*(?:_TOKEN|_SECRET|_API_KEY|_ACCESS_KEY|_PASSWORD|_CREDENTIALS)"
    r"(?:\\?[\"'])?\s*[=:]\s*\\?[\"']?)" + _WORDLESS + r"([^\s\"',;}\]\\<>(]{4,})",
)
COMMON_HOME = "/root"
"""A home that tells nobody apart: in prompts and answers it stays."""

_COMMON = frozenset(
    ["admin", "app", "build", "bench", "centos", "chat", "compute", "debian", "default", "docker"]
    + ["ec2-user", "engine", "guest", "host", "jovyan", "linux", "local", "localhost", "main"]
    + ["master", "model", "models", "node", "nobody", "root", "runner", "server", "test", "ubuntu"]
    + ["user", "vllm", "vscode", "worker", "www-data"]
)
"""Names that tell nobody apart and occur in ordinary text."""


@dataclass(frozen=True)
class Machine:
    """What a text must not say about the machine and its user."""

    projects: tuple[str, ...]
    homes: tuple[str, ...]
    temporary: tuple[str, ...]
    hosts: tuple[str, ...]
    user: str | None

    @classmethod
    def here(cls, project: Path) -> Machine:
        """Return what identifies this machine."""
        projects = dict.fromkeys([str(project.resolve()), str(project.absolute())])
        temporary = dict.fromkeys([tempfile.gettempdir(), "/tmp", "/var/tmp"])  # noqa: S108
        homes = (str(Path.home()),)
        return cls(tuple(projects), homes, tuple(temporary), _hosts(), _user())

    @classmethod
    def any(cls) -> Machine:
        """Return what is the same on most machines: enough to compare two scrubbed texts."""
        return cls((), (COMMON_HOME,), ("/tmp", "/var/tmp"), (), None)  # noqa: S108


class Scrubber:
    """Replaces machine paths, names and secrets by what they are, and finds any that are left."""

    def __init__(self, machine: Machine, own_names: Iterable[str] = ()) -> None:
        """Prepare the patterns, the longest path first.

        ``own_names``: the study's own names, which stay even where the host has the same one.
        """
        paths = [(project, "<project>") for project in machine.projects]
        paths += [(home, "<home>") for home in machine.homes if home != COMMON_HOME]
        common = [(home, "<home>") for home in machine.homes if home == COMMON_HOME]
        common += [(path, "<tmp>") for path in machine.temporary]
        self._specific = _path_patterns(paths)
        self._common = _path_patterns(common)
        self._names = _name_patterns(machine, _COMMON | set(own_names))
        self._named = [re.compile(pattern) for pattern in _NAMED]

    def scrub(self, text: str, raw: bool = False) -> str:
        """Return ``text`` without what it must not say.

        ``raw``: prompts and answers, in which ``/tmp`` or ``password: ...`` are a model's words
        and belong to the record: only what identifies this machine, and tokens of known form.
        """
        for kind, pattern in KNOWN_SECRETS:
            text = pattern.sub(f"<secret:{kind}>", text)
        if not raw:
            for pattern in self._named:
                text = pattern.sub(r"\1<secret>", text)
        for pattern, word in [*self._specific, *([] if raw else self._common), *self._names]:
            text = pattern.sub(word, text)
        return text

    def left(self, text: str, raw: bool = False) -> list[str]:
        """Return what a text still says that it must not: empty for a scrubbed one."""
        found = [kind for kind, pattern in KNOWN_SECRETS if pattern.search(text)]
        if not raw:
            found += ["a named secret" for pattern in self._named if pattern.search(text)]
        patterns = [*self._specific, *([] if raw else self._common), *self._names]
        return found + [match[0] for pattern, _ in patterns if (match := pattern.search(text))]


def _path_patterns(paths: Iterable[tuple[str, str]]) -> list[tuple[re.Pattern[str], str]]:
    """Return patterns for whole paths, also as JSON or URLs write them; the root is none."""
    known = {path.rstrip("/"): word for path, word in paths if len(path.strip("/")) > 1}
    return [
        (re.compile(rf"(?<![\w.-]){re.escape(path)}(?![\w.-])"), known[path])
        for path in sorted(known, key=len, reverse=True)
    ]


def _name_patterns(machine: Machine, kept: Collection[str]) -> list[tuple[re.Pattern[str], str]]:
    named = [(host, "<host>") for host in machine.hosts]
    named += [(machine.user, "<user>")] if machine.user else []
    return [
        (re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", re.IGNORECASE), word)
        for name, word in sorted(named, key=lambda pair: len(pair[0]), reverse=True)
        if len(name) >= 4 and name.lower() not in kept
    ]


def _hosts() -> tuple[str, ...]:
    name = socket.gethostname()
    return tuple(dict.fromkeys([name, name.split(".")[0]]))


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no such user in a container's passwd
        return None
