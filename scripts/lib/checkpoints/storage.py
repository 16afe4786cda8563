"""Which tensors a quantized layer is stored as: names, dtypes and shapes, per method.

The layouts are those of the libraries that write them (GPTQModel, AutoAWQ, compressed-tensors,
ModelOpt); compressed-tensors' were compared with checkpoints that llm-compressor wrote.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from scripts.lib.checkpoints.manifest import Scheme

Parts = dict[str, tuple[str, list[int]]]
"""Suffix → dtype and shape."""

WORD_BITS = 32
NVFP4_GROUP = 16


@dataclass(frozen=True)
class Linear:
    """One linear layer: y = W x, W of ``outputs`` x ``inputs``."""

    name: str
    outputs: int
    inputs: int


def stored_as(layer: Linear, scheme: Scheme, dtype: str) -> Parts | None:
    """Return the tensors of one layer under ``scheme``; None: no rule for this method.

    Args:
        layer: Its name and size.
        scheme: Of the whole checkpoint, not mixed.
        dtype: Of unquantized weights, e.g. ``BF16``: scales of compressed-tensors have it too.
    """
    if scheme.groups:
        return None
    rule = RULES.get((scheme.method, scheme.weight_bits if scheme.method != "gptq" else None))
    return rule(layer, scheme, dtype) if rule else None


def _gptq(layer: Linear, scheme: Scheme, _dtype: str) -> Parts:
    bits, groups = scheme.weight_bits or 4, _groups(layer, scheme)
    return {
        "qweight": ("I32", [layer.inputs * bits // WORD_BITS, layer.outputs]),
        "qzeros": ("I32", [groups, layer.outputs * bits // WORD_BITS]),
        "scales": ("F16", [groups, layer.outputs]),
        "g_idx": ("I32", [layer.inputs]),
    }


def _awq(layer: Linear, scheme: Scheme, _dtype: str) -> Parts:
    bits, groups = scheme.weight_bits or 4, _groups(layer, scheme)
    return {
        "qweight": ("I32", [layer.inputs, layer.outputs * bits // WORD_BITS]),
        "qzeros": ("I32", [groups, layer.outputs * bits // WORD_BITS]),
        "scales": ("F16", [groups, layer.outputs]),
    }


def _groups(layer: Linear, scheme: Scheme) -> int:
    return math.ceil(layer.inputs / scheme.group_size) if scheme.group_size else 1


def _packed(layer: Linear, scheme: Scheme, dtype: str) -> Parts:
    bits, groups = scheme.weight_bits or 4, _groups(layer, scheme)
    parts: Parts = {
        "weight_packed": ("I32", [layer.outputs, math.ceil(layer.inputs * bits / WORD_BITS)]),
        "weight_scale": (dtype, [layer.outputs, groups]),
        "weight_shape": ("I64", [2]),
    }
    if scheme.symmetric is False:
        rows = math.ceil(layer.outputs * bits / WORD_BITS)
        parts["weight_zero_point"] = ("I32", [rows, groups])
    if scheme.act_order:
        parts["weight_g_idx"] = ("I32", [layer.inputs])
    return parts


def _eight_bits(layer: Linear, scheme: Scheme, dtype: str) -> Parts:
    """compressed-tensors: plain 8-bit weights, or integers packed when activations stay 16-bit."""
    if scheme.format == "pack-quantized":
        return _packed(layer, scheme, dtype)
    stored = "I8" if scheme.weight_type == "int" else "F8_E4M3"
    scales = [layer.outputs, 1]
    if scheme.strategy == "tensor":
        scales = [1]
    elif scheme.block_shape:
        rows, columns = scheme.block_shape
        scales = [math.ceil(layer.outputs / rows), math.ceil(layer.inputs / columns)]
    parts: Parts = {
        "weight": (stored, [layer.outputs, layer.inputs]),
        "weight_scale": (dtype, scales),
    }
    if scheme.activation_dynamic is False:
        parts["input_scale"] = (dtype, [1])
    return parts


def _four_bits(layer: Linear, scheme: Scheme, dtype: str) -> Parts:
    if scheme.weight_type == "int":
        return _packed(layer, scheme, dtype)
    group = scheme.group_size or NVFP4_GROUP
    parts: Parts = {
        "weight_packed": ("U8", [layer.outputs, layer.inputs // 2]),
        "weight_scale": ("F8_E4M3", [layer.outputs, layer.inputs // group]),
    }
    if group != NVFP4_GROUP:  # MXFP4: scales are exponents, and there is no second level
        return {**parts, "weight_scale": ("U8", parts["weight_scale"][1])}
    parts["weight_global_scale"] = ("F32", [1])
    if scheme.activation_bits == 4:
        parts["input_global_scale"] = ("F32", [1])
    return parts


def _fp8(layer: Linear, scheme: Scheme, _dtype: str) -> Parts:
    parts: Parts = {"weight": ("F8_E4M3", [layer.outputs, layer.inputs])}
    if scheme.block_shape:
        rows, columns = scheme.block_shape
        shape = [math.ceil(layer.outputs / rows), math.ceil(layer.inputs / columns)]
        return {**parts, "weight_scale_inv": ("F32", shape)}
    parts["weight_scale"] = ("F32", [])
    if scheme.activation_dynamic is False:
        parts["input_scale"] = ("F32", [])
    return parts


def _modelopt_fp8(layer: Linear, scheme: Scheme, _dtype: str) -> Parts:
    parts: Parts = {
        "weight": ("F8_E4M3", [layer.outputs, layer.inputs]),
        "weight_scale": ("F32", [layer.outputs] if scheme.strategy == "channel" else []),
    }
    if scheme.activation_dynamic is False:
        parts["input_scale"] = ("F32", [])
    return parts


def _modelopt_nvfp4(layer: Linear, scheme: Scheme, _dtype: str) -> Parts:
    columns = layer.inputs // (scheme.group_size or NVFP4_GROUP)
    parts: Parts = {
        "weight": ("U8", [layer.outputs, layer.inputs // 2]),
        "weight_scale": ("F8_E4M3", [layer.outputs, columns]),
        "weight_scale_2": ("F32", []),
    }
    if scheme.activation_bits == 4:
        parts["input_scale"] = ("F32", [])
    return parts


RULES: dict[tuple[str | None, int | None], Callable[[Linear, Scheme, str], Parts]] = {
    ("gptq", None): _gptq,
    ("awq", 4): _awq,
    ("compressed-tensors", 8): _eight_bits,
    ("compressed-tensors", 4): _four_bits,
    ("fp8", 8): _fp8,
    ("modelopt", 8): _modelopt_fp8,
    ("modelopt", 4): _modelopt_nvfp4,
}
