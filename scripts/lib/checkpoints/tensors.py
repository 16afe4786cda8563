"""Names, dtypes and shapes of a checkpoint's tensors, from the safetensors headers alone."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.lib.base.files import read_json
from scripts.lib.checkpoints.errors import CheckpointError

INDEX = "model.safetensors.index.json"
MAX_HEADER_BYTES = 100_000_000  # the format's own limit

SAFETENSORS_DTYPES = {"bfloat16": "BF16", "float16": "F16", "float32": "F32"}
"""The name in ``config.json`` -> the name in a safetensors header."""

DTYPE_BITS = {
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E8M0": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "I64": 64,
    "U64": 64,
    "F64": 64,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
}


@dataclass(frozen=True)
class Tensor:
    """One tensor as its header describes it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    end: int = 0  # of its data, counted from the end of the header

    @property
    def elements(self) -> int:
        """The number of stored elements (packed ones count once)."""
        return math.prod(self.shape)


def weight_files(folder: Path) -> list[Path]:
    """Return the safetensors files that hold the model, in order; none: an empty list.

    Some repositories also carry the same weights in a second layout (consolidated*.safetensors):
    the index, or else the files named ``model*``, decide, as in the engine.

    Raises:
        CheckpointError: The index names a file that is not there.
    """
    index = folder / INDEX
    if index.is_file():
        names = sorted(set(read_json(index).get("weight_map", {}).values()))
        missing = [name for name in names if not (folder / name).is_file()]
        if missing:
            raise CheckpointError(
                f"{index} names {len(missing)} of {len(names)} files that are not there, "
                f"{missing[0]} first; download or copy the checkpoint again"
            )
        return [folder / name for name in names]
    files = sorted(folder.glob("*.safetensors"))
    return [file for file in files if file.name.startswith("model")] or files


def read_tensors_of(folder: Path) -> list[Tensor]:
    """Return every tensor of the checkpoint, by name; an empty list without safetensors."""
    found: dict[str, Tensor] = {}
    for file in weight_files(folder):
        for tensor in read_header(file):
            found[tensor.name] = tensor
    return [found[name] for name in sorted(found)]


def read_header(file: Path) -> list[Tensor]:
    """Return the tensors of one safetensors file.

    Layout: 8 bytes little-endian length, that many bytes of JSON, then the data
    (https://huggingface.co/docs/safetensors). The data is not read, so a sparse file will do.

    Raises:
        CheckpointError: The file is not safetensors, or ends before its data does.
    """
    size = file.stat().st_size
    with file.open("rb") as stream:
        start = stream.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if not 0 < length <= min(MAX_HEADER_BYTES, size - 8):
            raise CheckpointError(
                f"{file} is not a safetensors file (its header cannot be {length} bytes long "
                f"in {size}); a file of a few lines may be a Git LFS pointer: fetch the weights"
            )
        text = stream.read(length)
    try:
        tensors = _tensors(json.loads(text))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise CheckpointError(
            f"{file} is not a safetensors file (its header makes no sense); fetch it again"
        ) from None
    end = 8 + length + max((tensor.end for tensor in tensors), default=0)
    if end > size:
        raise CheckpointError(
            f"{file} ends {end - size} bytes too early: the download or copy is not complete; "
            "fetch it again"
        )
    return tensors


def _tensors(header: dict[str, Any]) -> list[Tensor]:
    found = []
    for name, info in header.items():
        if name == "__metadata__":
            continue
        begin, end = map(int, info["data_offsets"])
        shape = tuple(map(int, info["shape"]))
        if not 0 <= begin <= end or any(size < 0 for size in shape):
            raise ValueError(name)
        found.append(Tensor(name, str(info["dtype"]), shape, end - begin, end))
    return found
