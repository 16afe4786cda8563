"""What the rules expect, case by case; a case without a rule is unknown."""

from __future__ import annotations

import pytest
from plan_cases import qwen_study, scheme, smol_study

from scripts.lib.checkpoints.manifest import Shape
from scripts.lib.plan.facts import facts_of
from scripts.lib.plan.gpus import Device
from scripts.lib.plan.rules import Case, expected_path
from scripts.lib.plan.shapes import Layer, linear_layers

QWEN = facts_of(qwen_study(), "bf16").shape
SMOL = facts_of(smol_study(), "smollm2").shape

BF16 = scheme("bf16")
FP8 = scheme("w8a8-fp8", method="compressed-tensors", strategy="channel")
FP8_TENSOR = scheme("w8a8-fp8", method="compressed-tensors", strategy="tensor")
FP8_WEIGHTS = scheme("w8a16-fp8", method="compressed-tensors", strategy="channel")
INT8 = scheme("w8a8-int8", method="compressed-tensors", strategy="channel")
GPTQ = scheme(
    "w4a16", method="gptq", weight_bits=4, group_size=128, symmetric=True, act_order=False
)
GPTQ_ACT = GPTQ.model_copy(update={"act_order": True})
GPTQ_64 = GPTQ.model_copy(update={"group_size": 64, "method": "compressed-tensors"})
AWQ = scheme("w4a16", method="awq", weight_bits=4, group_size=128, symmetric=False)
INT8_CHANNEL = scheme(
    "w8a16-int8", method="gptq", weight_bits=8, strategy="channel", symmetric=True, act_order=False
)
NVFP4 = scheme("w4a4-nvfp4", method="compressed-tensors", group_size=16)
MXFP4 = scheme("w4a16-mxfp4", method="mxfp4", group_size=32)
BNB = scheme("w4a16", method="bitsandbytes", weight_bits=4)


def gpu(capability: str) -> Device:
    return Device(kind="cuda", name="a GPU", capability=capability)


def cpu(*flags: str) -> Device:
    return Device(kind="cpu", name="a CPU", cpu_flags=list(flags))


CASES = [
    # scheme, device, version, more, kind, real scheme, a family
    (BF16, gpu("8.9"), None, {}, "native", "bf16", None),
    (BF16, gpu("7.5"), "0.10.0", {}, "degraded", "fp16", None),
    (BF16, gpu("7.5"), "0.8.5", {}, "unsupported", "bf16", None),
    (scheme("fp16"), gpu("7.0"), None, {}, "native", "fp16", None),
    (BF16, cpu(), None, {}, "native", "bf16", None),
    (FP8, gpu("8.9"), "0.8.5.post1", {}, "native", "w8a8-fp8", "cutlass"),
    (FP8, gpu("12.0"), "0.32.0", {}, "native", "w8a8-fp8", "cutlass"),
    (FP8, gpu("8.6"), "0.8.5.post1", {}, "degraded", "w8a16-fp8", "marlin"),
    (FP8, gpu("8.0"), "0.32.0", {}, "degraded", "w8a16-fp8", "marlin"),
    (FP8, gpu("7.5"), "0.8.5", {}, "unsupported", "w8a8-fp8", None),
    (FP8, gpu("7.5"), "0.14.0", {}, "degraded", "w8a16-fp8", "marlin"),
    (FP8, gpu("7.0"), "0.32.0", {}, "unsupported", "w8a8-fp8", None),
    (FP8, gpu("8.9"), "0.4.0", {}, "unknown", "unknown", None),
    (FP8_WEIGHTS, gpu("9.0"), None, {}, "native", "w8a16-fp8", "marlin"),
    (FP8, cpu("avx2"), "0.32.0", {}, "degraded", "w8a8-fp8", "torch"),
    (FP8_TENSOR, cpu("avx2", "amx_tile"), "0.32.0", {}, "degraded", "w8a16-fp8", "cpu"),
    (FP8, cpu("amx_tile", "amx_fp8"), "0.32.0", {}, "native", "w8a8-fp8", "cpu"),
    (FP8, cpu("avx2"), "0.10.0", {}, "unknown", "unknown", None),
    (INT8, gpu("8.6"), None, {}, "native", "w8a8-int8", "cutlass"),
    (INT8, gpu("10.0"), None, {}, "unsupported", "w8a8-int8", None),
    (INT8, gpu("7.0"), None, {}, "unsupported", "w8a8-int8", None),
    (INT8, cpu(), "0.32.0", {}, "native", "w8a8-int8", "cpu"),
    (GPTQ, gpu("8.9"), "0.8.5.post1", {}, "native", "w4a16", "marlin"),
    (GPTQ, gpu("9.0"), "0.25.1", {}, "native", "w4a16", "machete"),
    (GPTQ, gpu("9.0"), "0.6.1", {}, "native", "w4a16", "marlin"),
    (GPTQ_ACT, gpu("9.0"), "0.25.1", {}, "native", "w4a16", "machete"),
    (GPTQ_ACT, gpu("9.0"), "0.25.1", {"tensor_parallel": 2}, "native", "w4a16", "marlin"),
    (GPTQ, gpu("7.5"), "0.10.0", {}, "degraded", "w4a16", "exllama"),
    (GPTQ, gpu("7.5"), "0.19.0", {}, "native", "w4a16", "marlin"),
    (GPTQ, gpu("7.0"), "0.19.0", {}, "degraded", "w4a16", "exllama"),
    (GPTQ, gpu("8.9"), "0.8.5", {"forced": "gptq"}, "degraded", "w4a16", "exllama"),
    (GPTQ, gpu("8.9"), "0.25.1", {"forced": "gptq"}, "native", "w4a16", "marlin"),
    (AWQ, gpu("8.9"), "0.8.5", {}, "native", "w4a16", "marlin"),
    (AWQ, gpu("8.9"), "0.8.5", {"forced": "awq"}, "degraded", "w4a16", "triton"),
    (AWQ, gpu("7.0"), "0.32.0", {}, "unsupported", "w4a16", None),
    (AWQ, gpu("9.0"), "0.25.1", {}, "native", "w4a16", "machete"),
    (INT8_CHANNEL, gpu("8.6"), "0.8.5", {}, "native", "w8a16-int8", "allspark"),
    (INT8_CHANNEL, gpu("8.6"), "0.32.0", {}, "native", "w8a16-int8", "marlin"),
    (GPTQ_64, cpu(), "0.32.0", {}, "native", "w4a16", "cpu"),
    (AWQ, cpu(), "0.32.0", {}, "unknown", "unknown", None),
    (NVFP4, gpu("10.0"), None, {}, "native", "w4a4-nvfp4", "flashinfer"),
    (NVFP4, gpu("9.0"), "0.12.0", {}, "degraded", "w4a16-nvfp4", "marlin"),
    (NVFP4, gpu("7.5"), "0.13.0", {}, "unknown", "unknown", None),
    (MXFP4, gpu("8.0"), None, {}, "native", "w4a16-mxfp4", "marlin"),
    (MXFP4, gpu("7.5"), None, {}, "unsupported", "w4a16-mxfp4", None),
    (BNB, gpu("8.9"), "0.8.5", {}, "degraded", "w4a16", "bitsandbytes"),
    (scheme("mixed"), gpu("9.0"), None, {}, "unknown", "unknown", None),
    (scheme("unknown", method="quip"), gpu("9.0"), None, {}, "unknown", "unknown", None),
    (scheme("w4a16", method="new"), gpu("9.0"), None, {}, "unknown", "unknown", None),
    (GPTQ, Device(kind="none", name="no GPU found"), None, {}, "unknown", "unknown", None),
    (GPTQ, Device(kind="cuda", name="?"), None, {}, "unknown", "unknown", None),
]


@pytest.mark.parametrize(("of", "device", "version", "more", "kind", "real", "family"), CASES)
def test_expected_path(of, device, version, more, kind, real, family):
    layers = linear_layers(QWEN, more.get("tensor_parallel", 1))
    path = expected_path(Case(of, device, version, layers, dtype="bf16", **more))
    assert (path.kind, path.scheme) == (kind, real), path.why
    if family:
        assert family in path.kernel_families
    assert path.why.endswith((".", "!"))
    assert (path.source is None) == (path.kind == "unknown")


def test_machete_needs_outputs_in_multiples_of_128_and_marlin_takes_over():
    # SmolLM2's fused QKV is 960 wide: not a multiple of 128, but of 64; its width of 576 is no
    # multiple of 128, so before padding Marlin could not take it either.
    layers = linear_layers(SMOL)
    assert {(layer.inputs, layer.outputs) for layer in layers} >= {(576, 960)}
    for version in ("0.25.1", "0.32.0"):
        new = expected_path(Case(GPTQ_64, gpu("9.0"), version, layers, "bf16"))
        assert (new.kind, "marlin" in new.kernel_families) == ("native", True)
    old = expected_path(Case(GPTQ_64, gpu("9.0"), "0.10.0", layers, "bf16"))
    assert old.kind == "unsupported"
    half = expected_path(Case(GPTQ_64, gpu("9.0"), "0.10.0", layers, "fp16"))
    assert (half.kind, "exllama" in half.kernel_families) == ("degraded", True)
    between = expected_path(Case(GPTQ_64, gpu("9.0"), "0.23.0", layers, "bf16"))
    assert between.kind == "unknown"


def test_without_widths_no_rule_about_widths_is_claimed():
    path = expected_path(Case(GPTQ, gpu("9.0"), "0.10.0", None, "bf16"))
    assert path.kind == "unknown"


def test_a_group_size_that_marlin_does_not_know_is_unknown():
    odd = GPTQ.model_copy(update={"group_size": 16})
    assert (
        expected_path(Case(odd, gpu("8.9"), "0.32.0", linear_layers(QWEN), "bf16")).kind
        == "unknown"
    )


def test_a_cpu_width_that_is_no_multiple_of_32_is_unsupported():
    layers = [Layer("qkv", 48, 100)]
    path = expected_path(Case(GPTQ_64, cpu(), "0.32.0", layers, "bf16"))
    assert path.kind == "unsupported"


def test_tensor_parallel_splits_columns_and_rows_and_repeats_kv_heads():
    layers = {layer.name: layer for layer in linear_layers(QWEN, 4) or []}
    assert (layers["qkv"].inputs, layers["qkv"].outputs) == (3584, (7 + 2) * 128)
    assert (layers["down"].inputs, layers["down"].outputs) == (18944 // 4, 3584)
    eight = {layer.name: layer for layer in linear_layers(QWEN, 7) or []}
    assert eight["qkv"].outputs == (4 + 2) * 128


def test_an_unknown_architecture_has_no_widths():
    assert linear_layers(Shape(model_type="deepseek_v3", hidden_size=7168)) is None
    assert linear_layers(Shape(model_type="qwen2", hidden_size=3584)) is None


def test_a_cpu_with_amx_rounds_activations_unless_told_not_to():
    layers = linear_layers(SMOL)
    amx = cpu("amx_tile", "amx_int8", "amx_bf16")
    path = expected_path(Case(GPTQ_64, amx, "0.32.0", layers, "bf16"))
    assert (path.kind, path.scheme) == ("degraded", "w4a8-int8")
    off = {"VLLM_CPU_INT4_W4A8": "0"}
    kept = expected_path(Case(GPTQ_64, amx, "0.32.0", layers, "bf16", environment=off))
    assert (kept.kind, kept.scheme) == ("native", "w4a16")
    half = expected_path(Case(GPTQ_64, amx, "0.32.0", layers, "fp16"))
    assert half.scheme == "w4a16"
