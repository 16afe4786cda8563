"""Fingerprints that tell whether two checkpoints have the same tokenizer and chat template."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from scripts.lib.base.files import canonical_json, read_json

PARTS = ("tokenizer.model", "vocab.json", "merges.txt", "added_tokens.json", "tekken.json")
DIGITS = 16


def tokenizer_fingerprint(folder: Path) -> str | None:
    """Return 16 hex digits that are equal for tokenizers that work alike; None without one.

    Of ``tokenizer.json``, what only says how it was last used (truncation, padding) and how it
    was written (merges as strings or pairs, keys left at their default) does not count.
    """
    path = folder / "tokenizer.json"
    if path.is_file():
        content = read_json(path)
        if isinstance(content, dict):
            return _digest(canonical_json(_plain_tokenizer(content)).encode())
    parts = [folder / name for name in PARTS if (folder / name).is_file()]
    if not parts:
        return None
    return _digest(b"\0".join(part.read_bytes() for part in parts))


def chat_template_fingerprint(folder: Path) -> str | None:
    """Return 16 hex digits of the chat template wherever it is kept; None without one."""
    template = chat_template(folder)
    if template is None:
        return None
    text = template if isinstance(template, str) else canonical_json(template)
    return _digest(text.rstrip("\n").encode())


def chat_template(folder: Path) -> Any:  # noqa: ANN401 - a text, or named texts
    """Return the chat template: of its own file, else of ``tokenizer_config.json``."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    for name in ("chat_template.json", "tokenizer_config.json"):
        path = folder / name
        content = read_json(path) if path.is_file() else None
        if isinstance(content, dict) and content.get("chat_template"):
            return content["chat_template"]
    return None


def _plain_tokenizer(content: dict[str, Any]) -> dict[str, Any]:
    content = {k: v for k, v in content.items() if k not in ("truncation", "padding")}
    model = content.get("model")
    if isinstance(model, dict) and isinstance(model.get("merges"), list):
        merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
        content["model"] = {**model, "merges": merges}
    plain: dict[str, Any] = _without_defaults(content)
    return plain


def _without_defaults(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return {k: _without_defaults(v) for k, v in value.items() if v not in (None, False)}
    if isinstance(value, list):
        return [_without_defaults(item) for item in value]
    return value


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:DIGITS]
