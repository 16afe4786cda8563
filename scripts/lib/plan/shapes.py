"""Counts parameters and layer widths from a model's shape, without its weights."""

from __future__ import annotations

from dataclasses import dataclass

from scripts.lib.checkpoints.manifest import Shape

DENSE = {"llama", "mistral", "qwen2", "qwen3"}
QKV_BIAS = {"qwen2"}
QK_NORM = {"qwen3"}
NEEDED = (
    "hidden_size",
    "intermediate_size",
    "layers",
    "attention_heads",
    "kv_heads",
    "head_dim",
    "vocab_size",
)


@dataclass(frozen=True)
class Layer:
    """One linear layer as the engine runs it: Q, K and V fused, gate and up fused.

    ``inputs`` and ``outputs`` are the widths on one GPU of the tensor-parallel group.
    """

    name: str
    inputs: int
    outputs: int


@dataclass(frozen=True)
class Counts:
    """Parameters by what becomes of them when a model is quantized."""

    linear: int
    """Attention and MLP projections: what quantization covers."""
    embedding: int
    head: int
    """The output layer; 0 where it is the embedding."""
    other: int
    """Norms and biases."""
    columns: int
    """Output rows of all projections together: per-channel scales."""

    @property
    def total(self) -> int:
        """All parameters."""
        return self.linear + self.embedding + self.head + self.other


def why_not_countable(shape: Shape) -> str | None:
    """Return why the parameters cannot be counted from the shape alone; None: they can."""
    if shape.model_type not in DENSE:
        return f"no rule for parameters of the architecture {shape.model_type or 'unknown'}"
    if shape.experts:
        return "the shape of its experts is not known from the configuration alone"
    missing = [name for name in NEEDED if getattr(shape, name) is None]
    if missing:
        return f"config.json does not say {' and '.join(missing)}"
    return None


def count(shape: Shape) -> Counts | None:
    """Count a dense decoder's parameters; None where ``why_not_countable`` says why.

    Per layer: Q, K, V, O and gate, up, down projections and two norms; Qwen2 has biases on Q, K
    and V, Qwen3 has norms on Q and K (the architectures' definitions in transformers).
    """
    layers = linear_layers(shape)
    if layers is None:
        return None
    model_type = shape.model_type
    hidden, depth, vocab, head_dim = known(shape, "hidden_size", "layers", "vocab_size", "head_dim")
    fused = {layer.name: layer for layer in layers}
    bias = fused["qkv"].outputs if model_type in QKV_BIAS else 0
    norms = 2 * hidden + (2 * head_dim if model_type in QK_NORM else 0)
    return Counts(
        linear=depth * sum(layer.inputs * layer.outputs for layer in layers),
        embedding=vocab * hidden,
        head=0 if shape.tie_word_embeddings else vocab * hidden,
        other=depth * (norms + bias) + hidden,
        columns=depth * sum(layer.outputs for layer in layers),
    )


def linear_layers(shape: Shape, tensor_parallel: int = 1) -> list[Layer] | None:
    """Return the linear layers of one decoder layer, with widths per GPU; None: not countable.

    Columns of QKV and gate-up are split over the GPUs, and rows of O and down; a KV head is
    repeated where there are fewer of them than GPUs (vLLM's QKVParallelLinear).
    """
    if why_not_countable(shape):
        return None
    hidden, inner = known(shape, "hidden_size", "intermediate_size")
    heads, kv_heads, size = known(shape, "attention_heads", "kv_heads", "head_dim")
    tp = tensor_parallel
    kv = max(1, kv_heads // tp)
    return [
        Layer("qkv", hidden, (heads // tp + 2 * kv) * size),
        Layer("o", heads * size // tp, hidden),
        Layer("gate_up", hidden, 2 * inner // tp),
        Layer("down", inner // tp, hidden),
    ]


def known(shape: Shape, *names: str) -> list[int]:
    """Return fields of a shape of which the caller has made sure that they are known."""
    values = [getattr(shape, name) for name in names]
    assert all(isinstance(value, int) for value in values), names
    return values
