"""From stored tensors to the model's weights: what is quantized, at how many bits.

Each storage format leaves its own traces beside a layer's name (``qweight`` and ``qzeros``,
``weight_packed``, ``weight_scale``, ``_blocks`` ...); shapes then give the logical size.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

from scripts.lib.checkpoints.manifest import Scheme
from scripts.lib.checkpoints.names import SchemeByName
from scripts.lib.checkpoints.tensors import DTYPE_BITS, Tensor

BNB_STATE = ("absmax", "quant_map", "nested_absmax", "nested_quant_map", "quant_state")
"""The suffixes that bitsandbytes adds behind ``.weight``."""

MAIN_SUFFIXES = {"weight", "qweight", "weight_packed", "_blocks", "_scales", "codes"}

HELPER = re.compile(
    r"(^|_)(q?scales?(_inv|_2)?|q?zeros|zero_point|g_idx|weight_shape|codebooks|SCB|"
    r"weight_format|inv_freq)$"
)
"""Tensors that belong to a weight's storage or to the run: no parameters of the model."""

NO_PARAMETERS = {"I64", "U64", "BOOL"}
"""Dtypes of positions, shapes and masks."""

LINEAR = re.compile(
    r"(^|\.)(\w*_proj|c_attn|c_fc|fc\d?|fc_in|fc_out|w[123]|wq|wk|wv|wo|dense\w*|"
    r"query_key_value|qkv|Wqkv|out_proj|linear\w*)$"
)
"""Names of linear layers of decoder blocks: used only to say which layers lack quantization."""

PACK_BITS = 32


@dataclass(frozen=True)
class Layer:
    """One weight of the model as it is stored."""

    name: str  # the module, or the whole tensor name of a parameter without a module
    parameters: int
    dtype: str
    shape: tuple[int, ...]
    kind: Literal["plain", "packed-int", "int8", "fp8", "fp4", "nf4", "codebook"] = "plain"
    bits: float | None = None  # None: the tensors do not tell
    group_size: int | None = None

    @property
    def quantized(self) -> bool:
        """Whether the weight is stored in fewer bits than it was trained in."""
        return self.kind != "plain"

    @property
    def linear(self) -> bool:
        """Whether its name and shape are those of a decoder's linear layer."""
        return len(self.shape) >= 2 and bool(LINEAR.search(self.name))


def layers_of(tensors: list[Tensor], scheme: Scheme, *, tied: bool = False) -> list[Layer]:
    """Group ``tensors`` by module and return the model's weights, in order of their names.

    Args:
        tensors: As their headers say.
        scheme: Of the configuration: it gives the bits where the shapes do not.
        tied: The output embedding is the input embedding: a stored copy is not counted.
    """
    modules: dict[str, dict[str, Tensor]] = defaultdict(dict)
    for tensor in tensors:
        module, suffix = _split(tensor.name)
        modules[module][suffix] = tensor
    if tied and len(modules) > 1:
        modules.pop("lm_head", None)
    by_name = SchemeByName(scheme)
    found: list[Layer] = []
    for module in sorted(modules):
        found.extend(_layers_of_module(module, modules[module], by_name.of(module)))
    return found


def _split(name: str) -> tuple[str, str]:
    """Split a tensor's name into module and suffix, e.g. ``a.b`` and ``qweight``."""
    for state in BNB_STATE:
        head, found, _ = name.partition(f".weight.{state}")
        if found:
            return head, state
    for ending in ("_blocks", "_scales"):
        if name.endswith(ending):
            return name.removesuffix(ending), ending
    module, _, suffix = name.rpartition(".")
    return module, suffix


def _layers_of_module(module: str, parts: dict[str, Tensor], scheme: Scheme) -> list[Layer]:
    """Return the module's weight, then its other parameters (bias)."""
    found = []
    main = _main_weight(module, parts, scheme)
    if main:
        found.append(main)
    for suffix, tensor in sorted(parts.items()):
        if suffix in MAIN_SUFFIXES or suffix in BNB_STATE or HELPER.search(suffix):
            continue
        if tensor.dtype not in NO_PARAMETERS:
            name = f"{module}.{suffix}" if module else suffix
            found.append(_by_dtype(name, tensor, parts.get(f"{suffix}_scale")))
    return found


def _main_weight(module: str, parts: dict[str, Tensor], scheme: Scheme) -> Layer | None:
    if "qweight" in parts:
        return _gptq_or_awq(module, parts, scheme)
    if "weight_packed" in parts:
        return _packed(module, parts, scheme)
    if "_blocks" in parts:
        tensor = parts["_blocks"]
        size = tensor.elements * 2
        return Layer(module, size, tensor.dtype, tensor.shape, "fp4", 4, group_size=32)
    if "codes" in parts:
        return _codes(module, parts["codes"], scheme)
    if "weight" in parts:
        if "absmax" in parts:
            tensor = parts["weight"]
            return Layer(module, tensor.elements * 2, tensor.dtype, tensor.shape, "nf4", 4)
        return _by_dtype(module, parts["weight"], parts.get("weight_scale"))
    return None


def _gptq_or_awq(module: str, parts: dict[str, Tensor], scheme: Scheme) -> Layer:
    """GPTQ packs int32 along the rows, AWQ along the columns; the zero points give the bits.

    ``qzeros`` has out x bits / 32 columns where ``scales`` has out.
    """
    tensor, zeros, scales = parts["qweight"], parts.get("qzeros"), parts.get("scales")
    bits: float | None = scheme.weight_bits
    if zeros and scales and scales.shape[-1]:
        bits = zeros.shape[-1] * PACK_BITS / scales.shape[-1]
    size = round(tensor.elements * PACK_BITS / (bits or 4))
    group = None
    if scales and scales.elements:
        outputs = scales.shape[-1]
        group = round(size / outputs / max(1, scales.elements // outputs))
    return Layer(module, size, tensor.dtype, tensor.shape, "packed-int", bits, group)


def _packed(module: str, parts: dict[str, Tensor], scheme: Scheme) -> Layer:
    """compressed-tensors: int32 words of integers, or bytes of two 4-bit floats."""
    tensor, scale = parts["weight_packed"], parts.get("weight_scale")
    columns = scale.shape[-1] if scale and len(scale.shape) > 1 else None
    if tensor.dtype != "I32":
        size = tensor.elements * 2
        group = round(tensor.shape[-1] * 2 / columns) if columns else None
        return Layer(module, size, tensor.dtype, tensor.shape, "fp4", 4, group)
    bits: float = scheme.weight_bits or 4
    if columns and columns > 1 and scheme.group_size:
        bits = tensor.shape[-1] * PACK_BITS / (columns * scheme.group_size)
    size = round(tensor.elements * PACK_BITS / bits)
    return Layer(module, size, tensor.dtype, tensor.shape, "packed-int", bits)


def _codes(module: str, tensor: Tensor, scheme: Scheme) -> Layer:
    """AQLM: [out / out_group, in / in_group, codebooks] codes, one for in_group weights."""
    size = tensor.elements * (scheme.group_size or 8)
    if len(tensor.shape) == 3:
        size //= tensor.shape[-1]
    return Layer(module, size, tensor.dtype, tensor.shape, "codebook", scheme.weight_bits)


def _by_dtype(name: str, tensor: Tensor, scale: Tensor | None) -> Layer:
    """Read a weight that keeps its usual name: its dtype says how it is stored.

    Bytes hold two 4-bit floats (ModelOpt's NVFP4), 32-bit words packed integers (MLX).
    """
    shape, size = tensor.shape, tensor.elements
    if tensor.dtype == "I8":
        return Layer(name, size, tensor.dtype, shape, "int8", 8)
    if tensor.dtype in ("F8_E4M3", "F8_E5M2"):
        return Layer(name, size, tensor.dtype, shape, "fp8", 8)
    if tensor.dtype in ("U8", "F4"):
        packed = 2 if tensor.dtype == "U8" else 1
        columns = scale.shape[-1] if scale and scale.shape else None
        group = round(shape[-1] * packed / columns) if columns else None
        return Layer(name, size * packed, tensor.dtype, shape, "fp4", 4, group)
    if tensor.dtype in ("I32", "U32"):
        return Layer(name, size, tensor.dtype, shape, "packed-int")
    return Layer(name, size, tensor.dtype, shape, "plain", DTYPE_BITS.get(tensor.dtype))
