"""Read from a checkpoint how its weights are stored and how its activations are meant to run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scripts.lib.base.files import read_json
from scripts.lib.checkpoints import words
from scripts.lib.checkpoints.agreement import (
    disagreements,
    promises_quantization,
    should_be_quantized,
)
from scripts.lib.checkpoints.layers import Layer, layers_of
from scripts.lib.checkpoints.manifest import Scheme, TensorSummary
from scripts.lib.checkpoints.methods import method_of, scheme_of_settings
from scripts.lib.checkpoints.names import SchemeByName
from scripts.lib.checkpoints.shape import TEXT_CONFIGS, read_config, read_shape, shape_from_config
from scripts.lib.checkpoints.tensors import SAFETENSORS_DTYPES, read_tensors_of

CONFIG_KEYS = ("quantization_config", "compression_config")
OTHER_FILES = ("quantize_config.json", "quant_config.json", "hf_quant_config.json")
TORCH_DTYPES = {stored: name for name, stored in SAFETENSORS_DTYPES.items()}


def read_scheme(folder: Path) -> Scheme:
    """Read the scheme that the configuration files in ``folder`` promise.

    Without any quantization there, the dtype of ``config.json`` counts, or else the tensors'.

    Raises:
        CheckpointError: config.json is missing or no JSON.
    """
    config = read_config(folder)
    settings = find_settings(config)
    if settings is None:
        settings = next((s for s in _other_settings(folder) if s), None)
    if settings is not None:
        return _scheme_of_settings(settings)
    dtype = shape_from_config(config).dtype or _main_dtype(folder)
    return words.unquantized(dtype)


def scheme_from_config(config: dict[str, Any]) -> Scheme:
    """Return the scheme that the content of a ``config.json`` promises; nothing is read."""
    settings = find_settings(config)
    if settings is None:
        return words.unquantized(shape_from_config(config).dtype)
    return _scheme_of_settings(settings)


def find_settings(config: dict[str, Any]) -> dict[str, Any] | None:
    """Return the quantization settings in a ``config.json``, also of a nested text model."""
    for part in (config, *(config.get(name) for name in TEXT_CONFIGS)):
        for key in CONFIG_KEYS:
            if isinstance(part, dict) and isinstance(part.get(key), dict) and part[key]:
                found: dict[str, Any] = part[key]
                return found
    return None


def read_tensors(folder: Path) -> TensorSummary | None:
    """Summarize the safetensors of ``folder`` from their headers; None where there are none."""
    tensors = read_tensors_of(folder)
    if not tensors:
        return None
    scheme = read_scheme(folder)
    layers = _layers(folder, scheme)
    by_dtype: dict[str, int] = {}
    for tensor in tensors:
        by_dtype[tensor.dtype] = by_dtype.get(tensor.dtype, 0) + tensor.bytes
    return TensorSummary(
        parameters=sum(layer.parameters for layer in layers),
        quantized_parameters=sum(layer.parameters for layer in layers if layer.quantized),
        ideal_bytes=_ideal_bytes(layers, scheme),
        bytes_by_dtype=dict(sorted(by_dtype.items())),
        total_bytes=sum(by_dtype.values()),
    )


def read_disagreements(folder: Path) -> list[str]:
    """Return one sentence for each thing on which configuration files and tensors disagree."""
    scheme = read_scheme(folder)
    found = _files_disagree(folder)
    return found + disagreements(scheme, read_shape(folder), _layers(folder, scheme))


def _layers(folder: Path, scheme: Scheme) -> list[Layer]:
    tied = read_shape(folder).tie_word_embeddings is True
    return layers_of(read_tensors_of(folder), scheme, tied=tied)


def _ideal_bytes(layers: list[Layer], scheme: Scheme) -> int:
    """Sum parameters x bits / 8: quantized layers at the scheme's bits, the rest at 16 (or 32).

    Where the configuration promises quantization and no tensor keeps it, the layers that it
    means count at the promised bits: the gap to the real size then shows.
    """
    rest = 32 if scheme.scheme == "fp32" else 16
    by_name = SchemeByName(scheme)
    broken = promises_quantization(scheme) and not any(layer.quantized for layer in layers)
    bits = 0.0
    for layer in layers:
        own: float | None = rest
        if layer.quantized or (broken and should_be_quantized(layer, by_name)):
            own = by_name.of(layer.name).weight_bits or layer.bits
        bits += layer.parameters * (own or rest)
    return round(bits / 8)


def _scheme_of_settings(settings: dict[str, Any]) -> Scheme:
    """Read settings; those that make no sense are an unknown scheme, whose words say why."""
    try:
        return scheme_of_settings(settings)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        method = method_of(settings)
        said = f"quantized by {method}, with settings that cannot be read ({error})"
        return words.unknown(method, said)


def _other_settings(folder: Path) -> list[dict[str, Any] | None]:
    """Read the files in which older tools keep the settings, in the order of OTHER_FILES."""
    found: list[dict[str, Any] | None] = []
    for name in OTHER_FILES:
        path = folder / name
        value = read_json(path) if path.is_file() else None
        found.append(value if isinstance(value, dict) else None)
    return found


def _files_disagree(folder: Path) -> list[str]:
    """Compare ``config.json`` with the settings in a file of their own, if both are there."""
    inside = find_settings(read_config(folder))
    found = []
    for name, outside in zip(OTHER_FILES, _other_settings(folder), strict=True):
        if inside is None or outside is None:
            continue
        mine = _scheme_of_settings(inside)
        other = _scheme_of_settings(outside)
        if mine.scheme != other.scheme or (mine.group_size or 0) != (other.group_size or 0):
            found.append(
                f"config.json says {mine.words}, but {name} says {other.words}: one of them is "
                "left over from another checkpoint"
            )
    return found


def _main_dtype(folder: Path) -> str | None:
    sizes: dict[str, int] = {}
    for tensor in read_tensors_of(folder):
        sizes[tensor.dtype] = sizes.get(tensor.dtype, 0) + tensor.bytes
    return TORCH_DTYPES.get(max(sizes, key=lambda dtype: sizes[dtype])) if sizes else None
