"""Describe a checkpoint folder: its manifest."""

from __future__ import annotations

import os
from pathlib import Path

from scripts.lib.base.files import sha256_of
from scripts.lib.checkpoints.errors import CheckpointError
from scripts.lib.checkpoints.manifest import File, Manifest
from scripts.lib.checkpoints.scheme import read_disagreements, read_scheme, read_tensors
from scripts.lib.checkpoints.shape import read_shape
from scripts.lib.checkpoints.tensors import weight_files
from scripts.lib.checkpoints.tokenizer import chat_template_fingerprint, tokenizer_fingerprint

OTHER_WEIGHTS = ("*.bin", "*.pt", "*.pth", "*.gguf")


def build_manifest(
    name: str,
    folder: Path,
    source: dict[str, object],
    *,
    files: list[File] | None = None,
    dummy_weights: bool = False,
    needs_weights: bool = True,
    versions: dict[str, str] | None = None,
) -> Manifest:
    """Describe the checkpoint in ``folder``.

    Args:
        name: The checkpoint's name in the study.
        folder: Where it lies; the manifest names it relative to the current directory, the
            project root, where it lies below it.
        source: The spec it was made from, as data.
        files: Its files where their hashes are known already; else they are hashed now.
        dummy_weights: The engine is to make random weights.
        needs_weights: Refuse a folder without weights, unless the engine is to make them.
        versions: Of the tools that made it.

    Raises:
        CheckpointError: The folder is no checkpoint, or one of its files is damaged.
    """
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is not a folder: give the folder that holds config.json")
    tensors = read_tensors(folder)
    weights = weights_of(folder)
    if needs_weights and not (weights or dummy_weights):
        raise CheckpointError(
            f"{folder} holds no weights (*.safetensors, *.bin): give a folder with weights, or "
            "use a dummy source for random ones"
        )
    return Manifest(
        name=name,
        source=source,
        folder=shown(folder),
        files=list_files(folder) if files is None else files,
        scheme=read_scheme(folder),
        shape=read_shape(folder),
        tensors=tensors,
        ideal_bytes=tensors.ideal_bytes if tensors else None,
        real_bytes=sum(file.stat().st_size for file in weights) if weights else None,
        disagreements=read_disagreements(folder),
        tokenizer_fingerprint=tokenizer_fingerprint(folder),
        chat_template_fingerprint=chat_template_fingerprint(folder),
        dummy_weights=dummy_weights,
        versions=versions or {},
    )


def weights_of(folder: Path) -> list[Path]:
    """Return the weight files: safetensors, or else those of older formats."""
    found = weight_files(folder)
    for pattern in OTHER_WEIGHTS:
        found = found or sorted(folder.glob(pattern))
    return found


def list_files(folder: Path) -> list[File]:
    """Return path, size and SHA-256 of the checkpoint's files: those at its top, and weights."""
    paths = {path for path in folder.iterdir() if path.is_file() and path.name[0] != "."}
    paths |= set(weight_files(folder))
    return [
        File(
            path=path.relative_to(folder).as_posix(),
            bytes=path.stat().st_size,
            sha256=sha256_of(path),
        )
        for path in sorted(paths)
    ]


def shown(folder: Path) -> str:
    """Return the folder relative to the current directory if it lies below, else as given."""
    absolute = Path(os.path.abspath(folder))  # noqa: PTH100 - keeps symbolic links
    if absolute.is_relative_to(Path.cwd()):
        return absolute.relative_to(Path.cwd()).as_posix()
    return str(folder)
