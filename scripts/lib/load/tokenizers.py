"""The model's own tokenizer, from its ``tokenizer.json``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

from scripts.lib.load.samples import DatasetError


def load_tokenizer(path: Path) -> Tokenizer:
    """Load a tokenizer; ``path`` is ``tokenizer.json`` or the folder that holds it.

    Raises:
        DatasetError: It is missing or broken.
    """
    file = path / "tokenizer.json" if path.is_dir() else path
    if not file.is_file():
        raise DatasetError(
            f"{file}: no such file; give the folder of the checkpoint, or its tokenizer.json"
        )
    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as problem:  # the library raises plain Exception
        raise DatasetError(f"{file}: not a tokenizer.json ({problem})") from problem
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def count_tokens(tokenizer: Tokenizer, texts: Sequence[str]) -> list[int]:
    """Return each text's tokens, special ones included, as the engine counts a prompt."""
    return [len(encoding.ids) for encoding in tokenizer.encode_batch(list(texts))]
