"""The parts of ``config.json`` that memory and speed follow from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scripts.lib.base.files import read_json
from scripts.lib.checkpoints.errors import CheckpointError
from scripts.lib.checkpoints.manifest import Shape

NAMES = {
    "hidden_size": ("hidden_size", "n_embd", "d_model", "dim"),
    "intermediate_size": ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"),
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "attention_heads": ("num_attention_heads", "n_head", "n_heads"),
    "kv_heads": ("num_key_value_heads", "n_head_kv", "num_kv_heads", "multi_query_group_num"),
    "head_dim": ("head_dim", "kv_channels"),
    "vocab_size": ("vocab_size", "padded_vocab_size"),
    "max_position_embeddings": ("max_position_embeddings", "n_positions", "max_seq_len"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
    "experts_per_token": ("num_experts_per_tok", "moe_topk", "moe_k", "top_k_experts"),
    "moe_intermediate_size": ("moe_intermediate_size",),
    "kv_lora_rank": ("kv_lora_rank",),
    "qk_rope_head_dim": ("qk_rope_head_dim",),
}
"""Each of our names with the names it has in the configurations of different architectures."""

TEXT_CONFIGS = ("text_config", "llm_config", "language_config")


def read_config(folder: Path) -> dict[str, Any]:
    """Read ``config.json``.

    Raises:
        CheckpointError: It is missing or not a JSON object.
    """
    path = folder / "config.json"
    if not path.is_file():
        raise CheckpointError(f"{path} is missing: give the folder that holds the checkpoint")
    try:
        config = read_json(path)
    except ValueError as error:
        raise CheckpointError(f"{path} is not valid JSON ({error}); fetch it again") from None
    if not isinstance(config, dict):
        raise CheckpointError(f"{path} holds no JSON object; fetch it again")
    return config


def text_config(config: dict[str, Any]) -> dict[str, Any]:
    """Return the language model's part of the configuration of a multimodal model."""
    for name in TEXT_CONFIGS:
        if isinstance(config.get(name), dict):
            return {**config, **config[name]}
    return config


def read_shape(folder: Path) -> Shape:
    """Read the shape of the checkpoint in ``folder`` from its ``config.json``."""
    return shape_from_config(read_config(folder))


def shape_from_config(config: dict[str, Any]) -> Shape:
    """Return the shape that a ``config.json`` describes; what it does not say is None.

    Where the number of KV heads or the head size is left out, the definition of the
    architectures applies: as many as attention heads; hidden size / attention heads.
    """
    text = text_config(config)
    values = {ours: _first(text, theirs) for ours, theirs in NAMES.items()}
    if values["kv_heads"] is None:
        values["kv_heads"] = 1 if text.get("multi_query") else values["attention_heads"]
    if values["head_dim"] is None and values["hidden_size"] and values["attention_heads"]:
        values["head_dim"] = values["hidden_size"] // values["attention_heads"]
    architectures = config.get("architectures") or [None]
    tied = text.get("tie_word_embeddings")
    return Shape(
        **values,
        architecture=architectures[0],
        model_type=config.get("model_type"),
        tie_word_embeddings=tied if isinstance(tied, bool) else None,
        dtype=_dtype(config) or _dtype(text),
        **_sliding_window(text, values["layers"]),
    )


def _first(config: dict[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None


def _dtype(config: dict[str, Any]) -> str | None:
    value = config.get("dtype", config.get("torch_dtype"))
    return value.removeprefix("torch.") if isinstance(value, str) else None


def _sliding_window(config: dict[str, Any], layers: int | None) -> dict[str, int | None]:
    """Return the attention window and in how many layers it applies, if it is in use."""
    window = config.get("sliding_window")
    if not isinstance(window, int) or config.get("use_sliding_window") is False:
        return {"sliding_window": None, "sliding_layers": None}
    kinds = config.get("layer_types")
    if isinstance(kinds, list):
        count: int | None = sum(kind == "sliding_attention" for kind in kinds)
    else:
        pattern = config.get("sliding_window_pattern")
        every = isinstance(pattern, int) and pattern > 1 and layers is not None
        count = layers - layers // pattern if every and layers and pattern else layers
    used = window if count != 0 else None
    return {"sliding_window": used, "sliding_layers": count or None}
