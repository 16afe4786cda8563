"""Checkpoints of random weights: a configuration and a tokenizer, for speed and memory only.

The engine makes the weights (``--load-format dummy``). But engines read from the safetensors
headers which layers are quantized, and serve a quantized configuration unquantized, without
a word, where there are none: so a quantized dummy gets a file with true headers and a hole
in place of the data.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from scripts.lib.checkpoints.agreement import should_be_quantized
from scripts.lib.checkpoints.errors import CheckpointError
from scripts.lib.checkpoints.layers import Layer
from scripts.lib.checkpoints.manifest import Scheme, Shape
from scripts.lib.checkpoints.names import SchemeByName
from scripts.lib.checkpoints.scheme import read_scheme
from scripts.lib.checkpoints.shape import read_config, shape_from_config, text_config
from scripts.lib.checkpoints.storage import Linear, Parts, stored_as
from scripts.lib.checkpoints.tensors import (
    DTYPE_BITS,
    SAFETENSORS_DTYPES,
    Tensor,
    read_tensors_of,
)

KEPT = ("*.json", "*.jinja", "*.txt", "*.model", "*.py")
DENSE = {"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}
"""Architectures whose tensors are named alike; only biases and norms of q and k differ."""

SIZES = ("hidden_size", "intermediate_size", "attention_heads", "layers", "vocab_size")


def make_dummy(config: Path, result: Path) -> None:
    """Copy configuration and tokenizer into ``result``; quantized ones get sparse weights.

    Where ``config`` holds safetensors files, whole or sparse, their headers are taken;
    else they follow from the architecture and the quantization.

    Raises:
        CheckpointError: No config.json, or a quantized model without a rule for its tensors.
    """
    scheme = read_scheme(config)
    for pattern in KEPT:
        for file in sorted(config.glob(pattern)):
            if not file.name.endswith(".index.json"):
                shutil.copyfile(file, result / file.name)
    if scheme.method is None:
        return
    tensors = {t.name: (t.dtype, list(t.shape)) for t in read_tensors_of(config)}
    write_sparse(
        result / "model.safetensors", tensors or _tensors_of(read_config(config), scheme, config)
    )


def write_sparse(path: Path, tensors: Parts) -> None:
    """Write a safetensors file with these dtypes and shapes, whose data takes no room on disk."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name in sorted(tensors):
        dtype, shape = tensors[name]
        begin, end = end, end + Tensor(name, dtype, tuple(shape), 0).elements * _bytes(dtype)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)


def _bytes(dtype: str) -> int:
    return DTYPE_BITS[dtype] // 8


def _tensors_of(config: dict[str, Any], scheme: Scheme, folder: Path) -> Parts:
    """Return all tensors of a dense decoder under ``scheme``."""
    shape = shape_from_config(config)
    dtype = SAFETENSORS_DTYPES.get(shape.dtype or "", "BF16")
    if shape.architecture not in DENSE:
        raise _no_rule(folder, f"the tensor names of {shape.architecture}")
    missing = [name for name in SIZES if not getattr(shape, name)]
    if missing:
        raise CheckpointError(f"{folder / 'config.json'} does not say {', '.join(missing)}")
    found: Parts = dict(_plain_tensors(config, shape, dtype))
    by_name = SchemeByName(scheme)
    for linear in _linear_layers(shape):
        layer = Layer(linear.name, 0, dtype, (linear.outputs, linear.inputs))
        parts: Parts | None = {"weight": (dtype, [linear.outputs, linear.inputs])}
        if should_be_quantized(layer, by_name):
            parts = stored_as(linear, scheme, dtype)
        if parts is None:
            raise _no_rule(folder, f"the tensors of {scheme.method} ({scheme.words})")
        found |= {f"{linear.name}.{suffix}": part for suffix, part in parts.items()}
    return found


def _no_rule(folder: Path, what: str) -> CheckpointError:
    return CheckpointError(
        f"{folder}: there is no rule for {what}, which engines read to know what is quantized; "
        "put the model's safetensors files there (their headers are enough)"
    )


def _linear_layers(shape: Shape) -> list[Linear]:
    hidden, inner = shape.hidden_size or 0, shape.intermediate_size or 0
    head = shape.head_dim or 0
    queries, keys = (shape.attention_heads or 0) * head, (shape.kv_heads or 0) * head
    sizes = {
        "self_attn.q_proj": (queries, hidden),
        "self_attn.k_proj": (keys, hidden),
        "self_attn.v_proj": (keys, hidden),
        "self_attn.o_proj": (hidden, queries),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }
    return [
        Linear(f"model.layers.{block}.{name}", *size)
        for block in range(shape.layers or 0)
        for name, size in sizes.items()
    ]


def _plain_tensors(config: dict[str, Any], shape: Shape, dtype: str) -> Parts:
    """Return the tensors that are never quantized: embeddings, norms, biases."""
    hidden, head = shape.hidden_size or 0, shape.head_dim or 0
    embedding = [shape.vocab_size or 0, hidden]
    sizes = {"model.embed_tokens.weight": embedding, "model.norm.weight": [hidden]}
    if not shape.tie_word_embeddings:
        sizes["lm_head.weight"] = embedding
    qwen2 = shape.architecture == "Qwen2ForCausalLM"
    biased = qwen2 or text_config(config).get("attention_bias") is True
    for block in range(shape.layers or 0):
        prefix = f"model.layers.{block}"
        sizes[f"{prefix}.input_layernorm.weight"] = [hidden]
        sizes[f"{prefix}.post_attention_layernorm.weight"] = [hidden]
        if biased:
            heads = {"q": shape.attention_heads, "k": shape.kv_heads, "v": shape.kv_heads}
            for name, count in heads.items():
                sizes[f"{prefix}.self_attn.{name}_proj.bias"] = [(count or 0) * head]
        if biased and not qwen2:
            sizes[f"{prefix}.self_attn.o_proj.bias"] = [hidden]
        if shape.architecture == "Qwen3ForCausalLM":
            sizes[f"{prefix}.self_attn.q_norm.weight"] = [head]
            sizes[f"{prefix}.self_attn.k_norm.weight"] = [head]
    return {name: (dtype, size) for name, size in sizes.items()}
