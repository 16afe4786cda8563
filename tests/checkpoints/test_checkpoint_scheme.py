"""Quantization settings, as the libraries write them, to a scheme and to words."""

import pytest

from scripts.lib.checkpoints.scheme import read_scheme, scheme_from_config


def compressed(weights, activations=None, format="pack-quantized", **more):
    group = {"targets": ["Linear"], "weights": weights, "input_activations": activations}
    return {
        "quant_method": "compressed-tensors",
        "format": format,
        "config_groups": {"group_0": group},
        "ignore": ["lm_head"],
        **more,
    }


INT4 = {
    "num_bits": 4,
    "type": "int",
    "strategy": "group",
    "group_size": 128,
    "symmetric": True,
    "dynamic": False,
    "actorder": None,
}
INT8 = {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": True, "dynamic": False}
FP8 = {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True, "dynamic": False}
FP4 = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}
TOKEN_INT8 = {**INT8, "strategy": "token", "dynamic": True}
TOKEN_FP8 = {**FP8, "strategy": "token", "dynamic": True}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True, "desc_act": False}
BNB4 = {
    "quant_method": "bitsandbytes",
    "_load_in_4bit": True,
    "load_in_4bit": True,
    "load_in_8bit": False,
    "bnb_4bit_quant_type": "nf4",
    "bnb_4bit_use_double_quant": True,
}
BNB8 = {"quant_method": "bitsandbytes", "load_in_8bit": True, "load_in_4bit": False}
AQLM = {
    "quant_method": "aqlm",
    "in_group_size": 8,
    "out_group_size": 1,
    "num_codebooks": 1,
    "nbits_per_codebook": 16,
    "linear_weights_not_to_quantize": ["model.embed_tokens.weight", "lm_head.weight"],
}
AUTO_ROUND = {
    "quant_method": "auto-round",
    "packing_format": "auto_round:auto_gptq",
    "bits": 4,
    "group_size": 128,
    "sym": True,
    "data_type": "int",
    "extra_config": {"model.layers.0.mlp.gate": {"bits": 16, "data_type": "float"}},
}
MXFP4 = {
    "quant_method": "mxfp4",
    "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"],
}

SCHEMES = [
    (GPTQ, "w4a16"),
    ({**GPTQ, "bits": 8}, "w8a16-int8"),
    ({**GPTQ, "bits": 3}, "w3a16"),
    ({**GPTQ, "bits": 2}, "w2a16"),
    ({**GPTQ, "checkpoint_format": "gptq_v2"}, "w4a16"),
    ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}, "w4a16"),
    ({"w_bit": 4, "q_group_size": 128, "zero_point": True, "version": "GEMM"}, "w4a16"),
    (compressed(INT4), "w4a16"),
    (compressed({**INT4, "num_bits": 8}), "w8a16-int8"),
    (compressed(INT8, TOKEN_INT8, "int-quantized"), "w8a8-int8"),
    (compressed(FP8, TOKEN_FP8, "float-quantized"), "w8a8-fp8"),
    (compressed(FP8, None, "naive-quantized"), "w8a16-fp8"),
    (compressed(FP4, {**FP4, "dynamic": "local"}, "nvfp4-pack-quantized"), "w4a4-nvfp4"),
    (compressed(FP4, None, "nvfp4-pack-quantized"), "w4a16-nvfp4"),
    (compressed({**FP4, "strategy": "group", "group_size": 32}), "w4a16-mxfp4"),
    (compressed(INT4, TOKEN_FP8), "unknown"),
    ({"quant_method": "fp8", "activation_scheme": "dynamic"}, "w8a8-fp8"),
    ({"quant_method": "fp8", "activation_scheme": "static"}, "w8a8-fp8"),
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "w8a8-fp8"),
    ({"quant_method": "fbgemm_fp8"}, "w8a8-fp8"),
    (BNB4, "w4a16"),
    (BNB8, "w8a8-int8"),
    (MXFP4, "w4a16-mxfp4"),
    ({"quant_method": "modelopt", "quant_algo": "FP8"}, "w8a8-fp8"),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "w4a4-nvfp4"),
    ({"quant_method": "modelopt", "quant_algo": "W4A16_NVFP4"}, "w4a16-nvfp4"),
    ({"quant_method": "modelopt", "quant_algo": "W4A8_MXFP4_FP8"}, "unknown"),
    (AUTO_ROUND, "w4a16"),
    ({**AUTO_ROUND, "quant_method": "inc"}, "w4a16"),
    ({**AUTO_ROUND, "data_type": "mx_fp"}, "unknown"),
    (AQLM, "w2a16"),
    ({"quant_method": "quip"}, "unknown"),
    ({"quant_method": "gptq"}, "unknown"),
]


@pytest.mark.parametrize(("settings", "expected"), SCHEMES)
def test_scheme_of_settings(settings, expected):
    scheme = scheme_from_config({"quantization_config": settings})
    assert scheme.scheme == expected
    assert scheme.method is not None


WORDS = [
    (
        GPTQ,
        "4-bit integer weights in groups of 128, symmetric, no act order; activations 16-bit",
    ),
    (
        {**GPTQ, "desc_act": True, "sym": False, "group_size": -1},
        "4-bit integer weights with one scale per channel, with zero points, act order; "
        "activations 16-bit",
    ),
    (
        compressed(INT8, TOKEN_INT8, "int-quantized"),
        "8-bit integer weights with one scale per channel, symmetric; activations 8-bit integer, "
        "with one scale per token, scaled as they come (dynamic)",
    ),
    (
        {"quant_method": "fp8", "weight_block_size": [128, 128]},
        "8-bit floating-point weights in blocks of 128 x 128; activations 8-bit floating-point, "
        "in groups of 128, scaled as they come (dynamic)",
    ),
    (
        {"quant_method": "fp8", "activation_scheme": "static"},
        "8-bit floating-point weights with one scale per tensor; activations 8-bit "
        "floating-point, with one scale per tensor, with fixed scales (static)",
    ),
    (
        BNB4,
        "4-bit floating-point weights in groups of 64, NF4, scales quantized again; "
        "activations 16-bit",
    ),
    (AQLM, "2-bit codebook weights in groups of 8, AQLM 1x16; activations 16-bit"),
    (MXFP4, "4-bit floating-point (MXFP4) weights in groups of 32; activations 16-bit"),
    ({"quant_method": "quip"}, "quantized by quip, for which there is no rule here"),
    (
        {"quant_method": "gptq"},
        "quantized by gptq, with settings that cannot be read (bits is missing)",
    ),
]


@pytest.mark.parametrize(("settings", "expected"), WORDS)
def test_words(settings, expected):
    assert scheme_from_config({"quantization_config": settings}).words == expected


def test_data_of_gptq_with_act_order():
    settings = {**GPTQ, "desc_act": True, "sym": False, "checkpoint_format": "gptq_v2"}
    scheme = scheme_from_config({"quantization_config": settings})
    assert scheme.method == "gptq"
    assert scheme.format == "gptq_v2"
    assert (scheme.weight_bits, scheme.group_size) == (4, 128)
    assert scheme.act_order is True
    assert scheme.symmetric is False
    assert scheme.activation_bits == 16


def test_awq_zero_point_is_the_opposite_of_symmetric():
    settings = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}
    scheme = scheme_from_config({"quantization_config": settings})
    assert scheme.symmetric is False
    assert scheme.act_order is None


@pytest.mark.parametrize(
    ("order", "expected"), [("group", True), ("weight", False), ("static", False), (None, False)]
)
def test_act_order_that_only_calibration_used_is_none_at_run_time(order, expected):
    settings = compressed({**INT4, "actorder": order})
    assert scheme_from_config({"quantization_config": settings}).act_order is expected


def test_kv_cache_scheme():
    kv = {"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": False}
    settings = compressed(FP8, TOKEN_FP8, "float-quantized", kv_cache_scheme=kv)
    scheme = scheme_from_config({"quantization_config": settings})
    assert scheme.kv_cache_scheme == "fp8, one scale per tensor, static"
    assert scheme.words.endswith("; KV cache fp8, one scale per tensor, static")


def test_sparse_weights_are_said():
    sparsity = {"format": "sparse-24-bitmask", "sparsity_structure": "2:4"}
    settings = compressed(FP8, TOKEN_FP8, "float-quantized", sparsity_config=sparsity)
    assert "sparse (2:4)" in scheme_from_config({"quantization_config": settings}).words


def mixed_groups():
    settings = compressed(FP8, TOKEN_FP8, "mixed-precision")
    settings["config_groups"] = {
        "group_0": {
            "targets": [r"re:.*mlp\.down_proj$"],
            "weights": FP8,
            "input_activations": TOKEN_FP8,
            "format": "float-quantized",
        },
        "group_1": {
            "targets": ["Linear"],
            "weights": INT4,
            "input_activations": None,
            "format": "pack-quantized",
        },
    }
    return settings


def test_mixed_groups():
    scheme = scheme_from_config({"quantization_config": mixed_groups()})
    assert scheme.scheme == "mixed"
    assert [group.scheme for group in scheme.groups] == ["w8a8-fp8", "w4a16"]
    assert scheme.weight_bits is None
    assert "mlp\\.down_proj" in scheme.words
    assert "4-bit integer" in scheme.words


def test_equal_groups_are_one():
    settings = compressed(INT4)
    settings["config_groups"]["group_1"] = {
        "targets": ["re:.*experts.*"],
        "weights": INT4,
        "input_activations": None,
    }
    scheme = scheme_from_config({"quantization_config": settings})
    assert scheme.scheme == "w4a16"
    assert scheme.groups == []
    assert scheme.targets == ["Linear", "re:.*experts.*"]


def test_gptq_with_other_bits_for_some_layers():
    dynamic = {r"+:.*down_proj": {"bits": 8}, r"-:.*lm_head": {}}
    scheme = scheme_from_config({"quantization_config": {**GPTQ, "dynamic": dynamic}})
    assert scheme.scheme == "mixed"
    assert [group.weight_bits for group in scheme.groups] == [4, 8]
    assert scheme.ignored == ["re:.*lm_head"]


def test_auto_round_layers_of_16_bits_are_left_out():
    scheme = scheme_from_config({"quantization_config": AUTO_ROUND})
    assert scheme.ignored == ["model.layers.0.mlp.gate"]
    assert scheme.groups == []


def test_modelopt_nested_and_mixed():
    layers = {
        "model.layers.0.mlp.experts": {"quant_algo": "W4A16_NVFP4", "group_size": 16},
        "model.layers.0.self_attn.q_proj": {"quant_algo": "FP8"},
        "model.layers.0.mlp.gate": {"quant_algo": "UNQUANTIZED"},
    }
    inner = {
        "quant_algo": "MIXED_PRECISION",
        "kv_cache_quant_algo": "FP8",
        "exclude_modules": ["mtp*"],
        "quantized_layers": layers,
    }
    scheme = scheme_from_config({"quantization_config": {"quantization": inner}})
    assert scheme.scheme == "mixed"
    assert {group.scheme for group in scheme.groups} == {"w4a16-nvfp4", "w8a8-fp8"}
    assert scheme.ignored == ["mtp*", "model.layers.0.mlp.gate"]
    assert scheme.kv_cache_scheme == "fp8"


def test_modelopt_mixed_in_config_groups():
    settings = {**mixed_groups(), "quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}
    scheme = scheme_from_config({"quantization_config": settings})
    assert (scheme.scheme, scheme.method) == ("mixed", "modelopt")


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("bfloat16", "bf16"), ("torch.float16", "fp16"), ("float32", "fp32"), (None, "unknown")],
)
def test_unquantized(dtype, expected):
    scheme = scheme_from_config({"torch_dtype": dtype})
    assert scheme.scheme == expected
    assert scheme.method is None
    assert "not quantized" in scheme.words


def test_settings_of_a_nested_text_model_and_under_the_older_key():
    assert scheme_from_config({"text_config": {"quantization_config": GPTQ}}).scheme == "w4a16"
    assert scheme_from_config({"compression_config": compressed(INT4)}).scheme == "w4a16"
    assert scheme_from_config({"quantization_config": None, "dtype": "bfloat16"}).scheme == "bf16"


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("quantize_config.json", {"bits": 4, "group_size": 128, "desc_act": True}, "gptq"),
        ("quant_config.json", {"w_bit": 4, "q_group_size": 64, "zero_point": True}, "awq"),
        ("hf_quant_config.json", {"quantization": {"quant_algo": "FP8"}}, "modelopt"),
    ],
)
def test_settings_in_a_file_of_their_own(make_folder, file, content, expected):
    assert read_scheme(make_folder(files={file: content})).method == expected


def test_dtype_of_the_tensors_where_the_config_says_none(make_folder):
    folder = make_folder({"torch_dtype": None}, {"a.weight": ("F16", [4, 4])})
    assert read_scheme(folder).scheme == "fp16"
