"""Configuration and tensors that say different things: each is one sentence."""

import pytest

from scripts.lib.checkpoints.scheme import read_disagreements, read_scheme, read_tensors
from tests.checkpoints import tiny
from tests.checkpoints.test_checkpoint_scheme import (
    BNB4,
    FP8,
    GPTQ,
    INT4,
    INT8,
    TOKEN_FP8,
    TOKEN_INT8,
    compressed,
)


def only(folder):
    (sentence,) = read_disagreements(folder)
    return sentence


def test_config_says_gptq_and_every_layer_is_plain(make_folder):
    """What really happened: such a checkpoint is served unquantized without a warning."""
    folder = make_folder({"quantization_config": GPTQ}, tiny.plain())
    sentence = only(folder)
    assert sentence.startswith("config.json says gptq (4-bit integer weights in groups of 128")
    assert "none of the 14 linear layers is quantized: they are BF16" in sentence
    assert "model.layers.0.mlp.down_proj first" in sentence
    assert read_scheme(folder).scheme == "w4a16", "the scheme is what the configuration promises"
    ideal = (tiny.LINEAR_PARAMETERS * 4 + tiny.OTHER_PARAMETERS * 16) // 8
    assert read_tensors(folder).ideal_bytes == ideal, "the gap to the real size must show"


def test_quantized_tensors_without_a_configuration(make_folder):
    sentence = only(make_folder(tensors=tiny.quantized(tiny.gptq_parts)))
    assert "14 layers are stored as integers packed into words" in sentence
    assert "config.json has no quantization_config" in sentence


@pytest.mark.parametrize(
    ("settings", "parts", "message"),
    [
        (
            {**GPTQ, "bits": 8},
            tiny.gptq_parts,
            "config.json says 8 bits, but 14 layers are stored with 4 bits",
        ),
        (
            {**GPTQ, "group_size": 64},
            tiny.gptq_parts,
            "config.json says groups of 64, but 14 layers are stored with groups of 128",
        ),
        (
            compressed(FP8, TOKEN_FP8, "float-quantized"),
            lambda rows, columns: tiny.eight_bit_parts(rows, columns, "I8"),
            "config.json says 8-bit float weights, but 14 layers are stored with 8-bit integers",
        ),
        (
            compressed(INT8, TOKEN_INT8, "int-quantized"),
            tiny.eight_bit_parts,
            "config.json says 8-bit int weights, but 14 layers are stored with 8-bit floating",
        ),
        (BNB4, tiny.gptq_parts, "config.json says 4-bit float weights, but 14 layers"),
    ],
)
def test_another_storage_than_promised(make_folder, settings, parts, message):
    folder = make_folder({"quantization_config": settings}, tiny.quantized(parts))
    assert message in only(folder)


def test_one_layer_was_left_out(make_folder):
    tensors = tiny.quantized(tiny.packed_parts, only=lambda name: "layers.1.mlp.up" not in name)
    sentence = only(make_folder({"quantization_config": compressed(INT4)}, tensors))
    assert sentence.startswith("1 layer is not quantized although config.json does not leave")
    assert "model.layers.1.mlp.up_proj first, BF16" in sentence


@pytest.mark.parametrize(
    "pattern", ["model.layers.1.mlp.up_proj", "re:.*layers.1.mlp.up.*", "*layers.1.mlp*", "up_proj"]
)
def test_left_out_as_announced_is_no_disagreement(make_folder, pattern):
    name = "layers.1.mlp" if pattern.startswith("*") else "layers.1.mlp.up"
    if pattern == "up_proj":
        name = "mlp.up"
    tensors = tiny.quantized(tiny.packed_parts, only=lambda module: name not in module)
    settings = {**compressed(INT4), "ignore": ["lm_head", pattern]}
    assert read_disagreements(make_folder({"quantization_config": settings}, tensors)) == []


def test_ignored_yet_quantized(make_folder):
    settings = {**compressed(INT4), "ignore": ["lm_head", "re:.*layers.0.*"]}
    folder = make_folder({"quantization_config": settings}, tiny.quantized(tiny.packed_parts))
    assert "7 layers are stored quantized although config.json leaves them out" in only(folder)


def test_another_dtype(make_folder):
    sentence = only(make_folder(tensors=tiny.plain("F32")))
    assert "config.json says dtype bfloat16, but the unquantized weights are mostly F32" in sentence


def test_two_models_mixed_up(make_folder):
    folder = make_folder({"hidden_size": 512, "num_hidden_layers": 3}, tiny.plain())
    width, blocks = read_disagreements(folder)
    assert "hidden_size 512, but model.embed_tokens is 1000 x 256" in width
    assert "config.json says 3 layers, but the weights hold 2" in blocks


def test_a_settings_file_left_over(make_folder):
    other = {"bits": 4, "group_size": 64, "sym": True, "desc_act": False}
    folder = make_folder(
        {"quantization_config": GPTQ},
        tiny.quantized(tiny.gptq_parts),
        files={"quantize_config.json": other},
    )
    sentence = only(folder)
    assert "groups of 128" in sentence
    assert "but quantize_config.json says 4-bit integer weights in groups of 64" in sentence


def test_the_same_settings_twice_agree(make_folder):
    same = {key: value for key, value in GPTQ.items() if key != "quant_method"}
    folder = make_folder(
        {"quantization_config": GPTQ},
        tiny.quantized(tiny.gptq_parts),
        files={"quantize_config.json": same},
    )
    assert read_disagreements(folder) == []


def test_nothing_to_compare_without_tensors(make_folder):
    assert read_disagreements(make_folder({"quantization_config": GPTQ})) == []


def test_a_router_and_a_vision_tower_need_no_quantization(make_folder):
    tensors = tiny.quantized(tiny.packed_parts)
    tensors["model.layers.0.mlp.gate.weight"] = ("BF16", [8, tiny.HIDDEN])
    tensors["visual.blocks.0.attn.qkv.weight"] = ("BF16", [96, 32])
    folder = make_folder({"quantization_config": compressed(INT4)}, tensors)
    assert read_disagreements(folder) == []
