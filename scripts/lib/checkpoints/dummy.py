"""Checkpoints of random weights: a configuration and a tokenizer, for speed and memory only."""

from __future__ import annotations

import shutil
from pathlib import Path

from scripts.lib.checkpoints.errors import CheckpointError
from scripts.lib.checkpoints.scheme import read_scheme

KEPT = (
    "*.json",
    "*.jinja",
    "*.txt",
    "*.model",
    "*.py",
)


def make_dummy(config: Path, result: Path) -> None:
    """Copy the configuration and the tokenizer of a model; its weights, if any, stay behind.

    Raises:
        CheckpointError: The folder has no config.json, or describes a quantized model without
            the tensors' names, shapes and dtypes.
    """
    scheme = read_scheme(config)
    if scheme.method is not None:
        raise CheckpointError(
            f"{config / 'config.json'} describes a quantized model ({scheme.words}), and engines "
            "read from the tensors which layers are quantized"
        )
    for pattern in KEPT:
        for file in sorted(config.glob(pattern)):
            if not file.name.endswith(".index.json"):
                shutil.copyfile(file, result / file.name)
