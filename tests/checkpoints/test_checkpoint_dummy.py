"""Dummy checkpoints: configuration, tokenizer, and true headers where the model is quantized."""

import json

import pytest

from scripts.lib.checkpoints.build import build_manifest
from scripts.lib.checkpoints.dummy import make_dummy
from scripts.lib.checkpoints.errors import CheckpointError
from scripts.lib.checkpoints.scheme import read_disagreements, read_tensors
from scripts.lib.checkpoints.tensors import read_tensors_of
from tests.checkpoints import tiny
from tests.checkpoints.test_checkpoint_scheme import (
    AUTO_ROUND,
    FP4,
    FP8,
    GPTQ,
    INT4,
    INT8,
    TOKEN_FP8,
    TOKEN_INT8,
    compressed,
)

AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}
NVFP4 = compressed(FP4, {**FP4, "dynamic": "local"}, "nvfp4-pack-quantized")
QUANTIZED = {
    "gptq": (GPTQ, tiny.gptq_parts),
    "awq": (AWQ, tiny.awq_parts),
    "int4": (compressed(INT4), tiny.packed_parts),
    "int8": (
        compressed(INT8, TOKEN_INT8, "int-quantized"),
        lambda rows, columns: tiny.eight_bit_parts(rows, columns, "I8"),
    ),
    "fp8": (compressed(FP8, TOKEN_FP8, "float-quantized"), tiny.eight_bit_parts),
    "nvfp4": (NVFP4, tiny.nvfp4_parts),
    "block": ({"quant_method": "fp8", "weight_block_size": [128, 128]}, tiny.block_parts),
    "modelopt": ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, tiny.modelopt_nvfp4_parts),
}


def made(folder, tmp_path):
    result = tmp_path / "made"
    result.mkdir()
    make_dummy(folder, result)
    return result


@pytest.mark.parametrize("case", QUANTIZED)
def test_headers_are_those_of_the_quantized_model(make_folder, tmp_path, case):
    settings, parts = QUANTIZED[case]
    result = made(make_folder({"quantization_config": settings}), tmp_path)
    found = {t.name: (t.dtype, list(t.shape)) for t in read_tensors_of(result)}
    assert found == tiny.quantized(parts)
    assert read_disagreements(result) == []
    assert read_tensors(result).quantized_parameters == tiny.LINEAR_PARAMETERS


def test_an_unquantized_model_needs_no_tensors(make_folder, tmp_path):
    folder = make_folder(tensors=tiny.plain(), files={"tokenizer.json": {}, "other.json": {}})
    result = made(folder, tmp_path)
    assert sorted(p.name for p in result.iterdir()) == [
        "config.json",
        "other.json",
        "tokenizer.json",
    ]
    manifest = build_manifest("d", result, {}, dummy_weights=True)
    assert (manifest.dummy_weights, manifest.tensors, manifest.ideal_bytes) == (True, None, None)


def test_headers_beside_the_configuration_are_taken(make_folder, tmp_path):
    folder = make_folder(
        {"quantization_config": AUTO_ROUND, "architectures": ["SomethingNewForCausalLM"]},
        tiny.quantized(tiny.gptq_parts),
        shards=2,
    )
    result = made(folder, tmp_path)
    assert {t.name for t in read_tensors_of(result)} == set(tiny.quantized(tiny.gptq_parts))
    assert not (result / "model.safetensors.index.json").exists()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"architectures": ["DbrxForCausalLM"]}, "no rule for the tensor names of DbrxForCausalLM"),
        ({"quantization_config": AUTO_ROUND}, "no rule for the tensors of auto-round"),
        ({"hidden_size": None}, "config.json does not say hidden_size"),
    ],
)
def test_no_rule_is_said_with_the_way_out(make_folder, tmp_path, config, message):
    folder = make_folder({"quantization_config": GPTQ, **config})
    with pytest.raises(CheckpointError, match=message):
        made(folder, tmp_path)


def test_the_published_gptq_model_has_its_published_size(make_folder, tmp_path):
    """Qwen2.5-7B in GPTQ 4-bit, groups of 128: 5.2 GiB of weights as vLLM printed them."""
    config = {
        "architectures": ["Qwen2ForCausalLM"],
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "num_hidden_layers": 28,
        "vocab_size": 152064,
        "torch_dtype": "float16",
        "quantization_config": GPTQ,
    }
    summary = read_tensors(made(make_folder(config), tmp_path))
    assert summary.parameters == 7_615_616_512
    assert summary.total_bytes / 2**30 == pytest.approx(5.2, abs=0.05)


def test_biases_and_norms_of_other_architectures(make_folder, tmp_path):
    qwen3 = {"architectures": ["Qwen3ForCausalLM"], "quantization_config": GPTQ}
    names = {t.name for t in read_tensors_of(made(make_folder(qwen3), tmp_path))}
    assert "model.layers.0.self_attn.q_norm.weight" in names
    assert json.loads((tmp_path / "made/config.json").read_text())["model_type"] == "llama"
