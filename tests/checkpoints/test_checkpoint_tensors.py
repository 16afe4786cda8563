"""Parameters and bytes from safetensors headers, without reading the data."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.lib.checkpoints.dummy import write_sparse
from scripts.lib.checkpoints.errors import CheckpointError
from scripts.lib.checkpoints.scheme import read_disagreements, read_tensors
from scripts.lib.checkpoints.tensors import read_header
from tests.checkpoints import tiny
from tests.checkpoints.test_checkpoint_scheme import (
    AQLM,
    BNB4,
    FP4,
    FP8,
    GPTQ,
    INT4,
    INT8,
    TOKEN_FP8,
    TOKEN_INT8,
    compressed,
    mixed_groups,
)

LAYERS, OTHERS = tiny.LINEAR_PARAMETERS, tiny.OTHER_PARAMETERS
SYM3 = {**GPTQ, "bits": 3}


def eight(dtype):
    return tiny.quantized(lambda rows, columns: tiny.eight_bit_parts(rows, columns, dtype))


def three_bits():
    return tiny.quantized(lambda rows, columns: tiny.gptq_parts(rows, columns, bits=3))


STORED = {
    "gptq": (GPTQ, lambda: tiny.quantized(tiny.gptq_parts), 4),
    "gptq-3": (SYM3, three_bits, 3),
    "awq": (
        {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True},
        lambda: tiny.quantized(tiny.awq_parts),
        4,
    ),
    "int4-packed": (compressed(INT4), lambda: tiny.quantized(tiny.packed_parts), 4),
    "int8": (compressed(INT8, TOKEN_INT8, "int-quantized"), lambda: eight("I8"), 8),
    "fp8": (compressed(FP8, TOKEN_FP8, "float-quantized"), lambda: eight("F8_E4M3"), 8),
    "fp8-block": (
        {"quant_method": "fp8", "weight_block_size": [128, 128]},
        lambda: tiny.quantized(tiny.block_parts),
        8,
    ),
    "nvfp4": (
        compressed(FP4, {**FP4, "dynamic": "local"}, "nvfp4-pack-quantized"),
        lambda: tiny.quantized(tiny.nvfp4_parts),
        4,
    ),
    "modelopt-nvfp4": (
        {"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]},
        lambda: tiny.quantized(tiny.modelopt_nvfp4_parts),
        4,
    ),
    "nf4": (BNB4, lambda: tiny.quantized(tiny.nf4_parts), 4),
    "aqlm": (AQLM, lambda: tiny.quantized(tiny.aqlm_parts), 2),
}


@pytest.mark.parametrize("case", STORED)
def test_parameters_and_ideal_bytes(make_folder, case):
    settings, tensors, bits = STORED[case]
    folder = make_folder({"quantization_config": settings}, tensors())
    summary = read_tensors(folder)
    assert summary.parameters == tiny.PARAMETERS
    assert summary.quantized_parameters == LAYERS
    assert summary.ideal_bytes == (LAYERS * bits + OTHERS * 16) // 8
    assert summary.total_bytes > summary.ideal_bytes
    assert read_disagreements(folder) == []


def test_unquantized_model(make_folder):
    summary = read_tensors(make_folder(tensors=tiny.plain()))
    assert summary.parameters == tiny.PARAMETERS
    assert summary.quantized_parameters == 0
    assert summary.ideal_bytes == summary.total_bytes == 2 * tiny.PARAMETERS
    assert summary.bytes_by_dtype == {"BF16": 2 * tiny.PARAMETERS}


def test_a_model_of_32_bits(make_folder):
    summary = read_tensors(make_folder({"torch_dtype": "float32"}, tiny.plain("F32")))
    assert summary.ideal_bytes == 4 * tiny.PARAMETERS


def test_shards_count_once(make_folder):
    whole = read_tensors(make_folder(tensors=tiny.plain(), name="whole"))
    assert read_tensors(make_folder(tensors=tiny.plain(), shards=3, name="shards")) == whole


def test_a_second_copy_of_the_weights_is_not_counted(make_folder):
    folder = make_folder(tensors=tiny.plain())
    write_sparse(folder / "consolidated.safetensors", tiny.plain())
    assert read_tensors(folder).parameters == tiny.PARAMETERS


def test_a_tied_output_embedding_is_not_counted_twice(make_folder):
    folder = make_folder({"tie_word_embeddings": True}, tiny.plain())
    assert read_tensors(folder).parameters == tiny.PARAMETERS - tiny.VOCAB * tiny.HIDDEN


def test_mixed_bits(make_folder):
    down = tiny.LAYERS * tiny.HIDDEN * tiny.INNER
    tensors = tiny.quantized(tiny.packed_parts, only=lambda name: "down_proj" not in name)
    tensors |= {name: part for name, part in eight("F8_E4M3").items() if "down_proj" in name}
    folder = make_folder({"quantization_config": mixed_groups()}, tensors)
    summary = read_tensors(folder)
    assert summary.quantized_parameters == LAYERS
    expected = (LAYERS - down) * 4 + down * 8 + OTHERS * 16
    assert summary.ideal_bytes == expected // 8
    assert read_disagreements(folder) == []


def test_fused_experts_of_mxfp4(make_folder):
    tensors = {
        "model.layers.0.mlp.experts.gate_up_proj_blocks": ("U8", [4, 128, 2, 16]),
        "model.layers.0.mlp.experts.gate_up_proj_scales": ("U8", [4, 128, 2]),
        "model.layers.0.mlp.experts.gate_up_proj_bias": ("BF16", [4, 128]),
        "model.layers.0.mlp.router.weight": ("BF16", [4, 64]),
    }
    settings = {"quant_method": "mxfp4"}
    folder = make_folder({"quantization_config": settings, "num_hidden_layers": 1}, tensors)
    summary = read_tensors(folder)
    assert summary.quantized_parameters == 4 * 128 * 64
    assert summary.parameters == 4 * 128 * 64 + 4 * 128 + 4 * 64


def test_no_safetensors_is_none(make_folder):
    assert read_tensors(make_folder()) is None


def test_a_missing_shard_is_named(make_folder):
    folder = make_folder(tensors=tiny.plain(), shards=2)
    (folder / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(CheckpointError, match="1 of 2 files that are not there, model-00002-of"):
        read_tensors(folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a safetensors file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "Git LFS pointer"),
        ((5).to_bytes(8, "little") + b"{abc}", "its header makes no sense"),
        ((1 << 40).to_bytes(8, "little") + b"{}", "is not a safetensors file"),
        ((2).to_bytes(8, "little") + b"[]", "its header makes no sense"),
        ((9).to_bytes(8, "little") + b'{"a": 12}', "its header makes no sense"),
    ],
)
def test_a_broken_file_is_a_sentence(tmp_path, content, message):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        read_header(path)


def test_a_cut_file_says_how_much_is_missing(tmp_path):
    path = tmp_path / "model.safetensors"
    write_sparse(path, {"a": ("BF16", [100, 100])})
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 77)
    with pytest.raises(CheckpointError, match="ends 77 bytes too early"):
        read_header(path)


@given(cut=st.integers(min_value=0), noise=st.binary(max_size=40))
def test_damage_anywhere_is_an_error_of_ours(tmp_path_factory, cut, noise):
    path = tmp_path_factory.mktemp("damaged") / "model.safetensors"
    write_sparse(path, {"a.weight": ("BF16", [8, 8]), "b.weight": ("I32", [4])})
    whole = path.read_bytes()
    position = cut % len(whole)
    path.write_bytes(whole[:position] + noise + whole[position + len(noise) + 1 :])
    try:
        tensors = read_header(path)
    except CheckpointError:
        return
    assert all(tensor.elements >= 0 for tensor in tensors)


def test_the_data_takes_no_room(tmp_path):
    path = tmp_path / "model.safetensors"
    write_sparse(path, {"a": ("BF16", [1 << 15, 1 << 15])})
    assert path.stat().st_size > 2 << 30
    assert path.stat().st_blocks * 512 < 1 << 20
    assert json.loads(path.open("rb").read(200)[8:].split(b"}}")[0] + b"}}")["a"]["dtype"] == "BF16"
