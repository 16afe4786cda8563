"""Reading and writing files so that a reader never sees half of one."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from pydantic import BaseModel


def canonical_json(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return ``value`` as JSON text that is equal for equal values."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def ordered_json(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return ``value`` as JSON text with its keys as they are: an order that means something."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def content_hash(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Return the first 12 hex digits of the SHA-256 of the value's canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()[:12]


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_text(path: Path, text: str) -> None:
    """Write ``text`` in one step: the file holds all of it or its former content."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write ``data`` in one step, as :func:`write_text` does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text_if_changed(path: Path, text: str) -> bool:
    """Write ``text`` unless the file holds it already, so that its date stays; say if written."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    write_text(path, text)
    return True


def write_json(path: Path, value: Any) -> None:  # noqa: ANN401 - any JSON value
    """Write ``value`` (a model or plain data) as canonical JSON, in one step."""
    write_text(path, canonical_json(value))


def read_json(path: Path) -> Any:  # noqa: ANN401 - any JSON value
    """Read a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))
