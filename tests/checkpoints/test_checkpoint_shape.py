"""The shape that config.json describes, under the names of different architectures."""

import pytest

from scripts.lib.checkpoints.errors import CheckpointError
from scripts.lib.checkpoints.shape import read_shape, shape_from_config

QWEN2 = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "max_position_embeddings": 32768,
    "sliding_window": 131072,
    "use_sliding_window": False,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


def test_qwen2():
    shape = shape_from_config(QWEN2)
    assert (shape.layers, shape.hidden_size, shape.head_dim) == (28, 3584, 128)
    assert (shape.attention_heads, shape.kv_heads) == (28, 4)
    assert shape.dtype == "bfloat16"
    assert shape.sliding_window is None, "the window is given but not in use"
    assert shape.experts is None


def test_gpt2_names_and_multi_head_attention():
    shape = shape_from_config({"n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024})
    assert (shape.hidden_size, shape.layers, shape.attention_heads) == (768, 12, 12)
    assert (shape.kv_heads, shape.head_dim) == (12, 64)
    assert shape.max_position_embeddings == 1024


def test_multi_query_attention():
    assert shape_from_config({"n_head": 71, "multi_query": True}).kv_heads == 1


def test_nested_text_model():
    config = {
        "architectures": ["Qwen2_5_VLForConditionalGeneration"],
        "text_config": {**QWEN2, "architectures": None, "dtype": "bfloat16"},
        "vision_config": {"hidden_size": 1280},
    }
    shape = shape_from_config(config)
    assert shape.hidden_size == 3584
    assert shape.architecture == "Qwen2_5_VLForConditionalGeneration"
    assert shape.dtype == "bfloat16"


def test_experts_and_latent_attention():
    config = {
        "n_routed_experts": 256,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 2048,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
    }
    shape = shape_from_config(config)
    assert (shape.experts, shape.experts_per_token) == (256, 8)
    assert (shape.kv_lora_rank, shape.qk_rope_head_dim) == (512, 64)
    assert shape.moe_intermediate_size == 2048


@pytest.mark.parametrize(
    ("config", "window", "layers"),
    [
        ({"sliding_window": 4096, "num_hidden_layers": 32}, 4096, 32),
        (
            {
                "sliding_window": 128,
                "layer_types": ["sliding_attention", "full_attention"] * 12,
                "num_hidden_layers": 24,
            },
            128,
            12,
        ),
        ({"sliding_window": 1024, "sliding_window_pattern": 6, "num_hidden_layers": 26}, 1024, 22),
        ({"sliding_window": None, "num_hidden_layers": 32}, None, None),
        ({"sliding_window": 4096, "layer_types": ["full_attention"] * 4}, None, None),
    ],
)
def test_sliding_window(config, window, layers):
    shape = shape_from_config(config)
    assert (shape.sliding_window, shape.sliding_layers) == (window, layers)


def test_what_is_not_said_is_unknown():
    shape = shape_from_config({})
    assert set(shape.model_dump().values()) == {None}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "config.json is missing: give the folder that holds the checkpoint"),
        ("{", "config.json is not valid JSON"),
        ("[]", "config.json holds no JSON object"),
    ],
)
def test_no_readable_config(tmp_path, text, message):
    if text is not None:
        (tmp_path / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=message):
        read_shape(tmp_path)
