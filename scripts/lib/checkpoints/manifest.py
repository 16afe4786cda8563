"""What a checkpoint is (``results/<study>/checkpoints/<name>.json``)."""

from __future__ import annotations

from pydantic import Field

from scripts.lib.base.schema import SCHEMA_VERSION, Strict


class Scheme(Strict):
    """How a checkpoint's weights are stored, and how its activations are meant to run."""

    scheme: str = Field(description="The contract's vocabulary: bf16, w8a8-fp8, w4a16, ...")
    method: str | None = Field(default=None, description="quant_method, e.g. gptq.")
    format: str | None = Field(default=None, description="compressed-tensors' format.")
    weight_bits: int | None = None
    weight_type: str | None = Field(default=None, description="int or float")
    strategy: str | None = Field(default=None, description="tensor, channel, group, block")
    group_size: int | None = None
    block_shape: list[int] | None = None
    symmetric: bool | None = None
    act_order: bool | None = None
    activation_bits: int | None = None
    activation_type: str | None = None
    activation_dynamic: bool | None = None
    activation_strategy: str | None = None
    kv_cache_scheme: str | None = None
    ignored: list[str] = []
    targets: list[str] = Field(default=[], description="Layer classes or patterns of a group.")
    groups: list[Scheme] = Field(default=[], description="More than one: a mixed checkpoint.")
    words: str = Field(description="For people: '4-bit integer weights in groups of 128, ...'.")


class Shape(Strict):
    """The parts of ``config.json`` that memory and speed follow from."""

    architecture: str | None = None
    model_type: str | None = None
    hidden_size: int | None = None
    intermediate_size: int | None = None
    layers: int | None = None
    attention_heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    vocab_size: int | None = None
    max_position_embeddings: int | None = None
    tie_word_embeddings: bool | None = None
    experts: int | None = None
    experts_per_token: int | None = None
    dtype: str | None = None
    sliding_window: int | None = None
    sliding_layers: int | None = Field(default=None, description="Layers that use the window.")
    moe_intermediate_size: int | None = None
    kv_lora_rank: int | None = Field(default=None, description="Latent attention (MLA).")
    qk_rope_head_dim: int | None = Field(default=None, description="Latent attention (MLA).")


class File(Strict):
    """One file of a checkpoint."""

    path: str
    bytes: int
    sha256: str


class TensorSummary(Strict):
    """What the safetensors headers say."""

    parameters: int = Field(description="Logical parameters (packed ones unpacked).")
    quantized_parameters: int
    ideal_bytes: int | None = Field(
        default=None, description="Parameters x bits / 8, each at its layer's bits."
    )
    bytes_by_dtype: dict[str, int]
    total_bytes: int


class Manifest(Strict):
    """One checkpoint on disk."""

    schema_version: int = SCHEMA_VERSION
    name: str
    source: dict[str, object] = Field(description="The spec it was made from.")
    folder: str = Field(description="Where it lies, relative to the project (or as given).")
    files: list[File]
    scheme: Scheme
    shape: Shape
    tensors: TensorSummary | None = Field(description="None: no safetensors here.")
    ideal_bytes: int | None = Field(description="Parameters x bits / 8 at the scheme's bits.")
    real_bytes: int | None = Field(description="Bytes of the weight files; None: not known.")
    disagreements: list[str] = Field(
        default=[], description="Where config.json and the tensors say different things."
    )
    tokenizer_fingerprint: str | None = None
    chat_template_fingerprint: str | None = None
    dummy_weights: bool = False
    versions: dict[str, str] = Field(default={}, description="Of the tools that made it.")
