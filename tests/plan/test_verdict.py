"""Verdicts: the trap that really happened, fallbacks, indirect evidence, and what stays unknown."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_cases import (
    A10G,
    H200,
    L40S,
    REFERENCE,
    load,
    machine,
    manifest,
    qwen_study,
    scheme,
    smol_study,
    startup,
)

from scripts.lib.base.files import write_json
from scripts.lib.checkpoints.manifest import Manifest, Shape
from scripts.lib.engine.log_reader import read_log
from scripts.lib.engine.startup import Degradation, Failure, LogFacts
from scripts.lib.plan.judge_study import judge_variant
from scripts.lib.plan.models import ExpectedPath, Verdict
from scripts.lib.plan.verdict import judge, worst
from scripts.lib.study.specs import dump

PROJECT = Path(__file__).parents[2]
FIXTURES = PROJECT / "tests" / "fixtures" / "logs"
needs_reference = pytest.mark.skipif(
    not REFERENCE.is_dir(), reason="the reference data are not beside this checkout"
)

PARAMETERS, LINEAR = 7_615_616_512, 6_525_288_448
BF16 = manifest(
    scheme("bf16", weight_bits=16), total=2 * PARAMETERS, parameters=PARAMETERS, quantized=0
)
FP8 = manifest(
    scheme("w8a8-fp8", method="compressed-tensors", strategy="channel", weight_bits=8),
    total=2 * PARAMETERS - LINEAR,
    parameters=PARAMETERS,
    quantized=LINEAR,
)
GPTQ = manifest(
    scheme("w4a16", method="gptq", group_size=128, weight_bits=4, act_order=False, symmetric=True),
    total=2 * PARAMETERS - LINEAR * 3 // 2 + LINEAR // 50,
    parameters=PARAMETERS,
    quantized=LINEAR,
)
NATIVE_FP8 = ExpectedPath(
    kind="native", scheme="w8a8-fp8", kernel_families=["cutlass", "torch"], why="Units are there."
)
WEIGHT_ONLY = ExpectedPath(
    kind="degraded", scheme="w8a16-fp8", kernel_families=["marlin"], why="No FP8 units."
)
MARLIN = ExpectedPath(
    kind="native", scheme="w4a16", kernel_families=["marlin"], why="Marlin takes it."
)
NO_RULE = ExpectedPath(kind="unknown", scheme="unknown", why="No rule.")


def facts(**fields) -> LogFacts:
    return LogFacts(
        **({"vllm_version": "0.25.1", "dtype": "torch.bfloat16", "ready": True} | fields)
    )


def h200(folder: str, variant: str, of) -> Verdict:
    read = {f: read_log(REFERENCE / "h200" / f / "server.log") for f in (folder, "bf16")}
    starts = [startup(read[folder], variant)], [startup(read["bf16"], "bf16")]
    return judge_variant(qwen_study(), variant, H200, of, *starts)


@needs_reference
def test_the_trap_on_the_h200_is_not_what_the_checkpoint_says():
    verdict = h200("gptq", "gptq-int4", GPTQ)
    assert verdict.verdict == "not what the checkpoint says"
    assert (verdict.promised_scheme, verdict.real_scheme) == ("w4a16", "bf16")
    weights = next(piece for piece in verdict.evidence if piece.level == "weights")
    assert weights.supports is False
    assert "14.29" in weights.line
    assert any("quantization=auto_gptq" in (piece.line or "") for piece in verdict.evidence)
    assert "baseline loaded 14.29 GiB" in weights.says


@needs_reference
def test_the_trap_is_seen_without_any_tensor_in_the_checkpoint_too():
    empty = GPTQ.model_copy(update={"tensors": None, "dummy_weights": True})
    shape = qwen_shape()
    verdict = h200("gptq", "gptq-int4", empty.model_copy(update={"shape": shape}))
    assert verdict.verdict == "not what the checkpoint says"


@needs_reference
def test_the_trap_is_seen_when_the_checkpoints_tensors_are_the_unquantized_ones():
    ideal = 2 * PARAMETERS - LINEAR * 3 // 2
    broken = manifest(
        GPTQ.scheme, total=2 * PARAMETERS, parameters=PARAMETERS, quantized=0, ideal=ideal
    )
    assert h200("gptq", "gptq-int4", broken).verdict == "not what the checkpoint says"


@needs_reference
@pytest.mark.parametrize(
    ("folder", "variant", "of", "real"),
    [("bf16", "bf16", BF16, "bf16"), ("fp8", "fp8-dynamic", FP8, "w8a8-fp8")],
)
def test_the_others_on_the_h200_are_as_expected(folder, variant, of, real):
    verdict = h200(folder, variant, of)
    assert (verdict.verdict, verdict.real_scheme) == ("as expected", real)
    assert all(piece.supports is not False for piece in verdict.evidence)


def qwen_shape():
    from scripts.lib.plan.facts import facts_of

    return facts_of(qwen_study(), "bf16").shape


@needs_reference
def test_the_published_studys_three_are_as_expected():
    printed = json.loads((REFERENCE / "l40s_blog.json").read_text())["measured"]["startup"]
    more = {
        "bf16": {"scheme": "bf16"},
        "fp8-dynamic": {},
        "gptq-int4": {
            "kernels": ["MarlinLinearKernel"],
            "kernel_family": ["marlin"],
            "scheme": "w4a16",
        },
    }
    verdicts = {}
    for variant, of in (("bf16", BF16), ("fp8-dynamic", FP8), ("gptq-int4", GPTQ)):
        row = printed[variant]
        read = facts(
            vllm_version="0.8.5.post1",
            quantization=row["quantization"],
            weights_gib=row["weights_gib"],
            **more[variant],
        )
        verdicts[variant] = judge_variant(
            qwen_study(), variant, L40S, of, [startup(read, variant)], []
        )
    assert {verdict.verdict for verdict in verdicts.values()} == {"as expected"}
    assert verdicts["fp8-dynamic"].real_scheme == "w8a8-fp8"
    assert "indirect evidence" in verdicts["fp8-dynamic"].summary
    assert "indirect" not in verdicts["gptq-int4"].summary


@pytest.mark.skipif(not FIXTURES.is_dir(), reason="no logs of our own servers yet")
@pytest.mark.parametrize(
    ("log", "variant", "verdict", "real"),
    [
        ("bf16", "bf16", "as expected", "bf16"),
        ("int8", "int8-w8a8", "as expected", "w8a8-int8"),
        ("int4", "int4-w4a16", "as expected", "w4a16"),
        ("fp8", "fp8-dynamic", "degraded", "w8a8-fp8"),
    ],
)
def test_the_default_studys_four_on_a_cpu(log, variant, verdict, real):
    read = read_log(FIXTURES / f"cpu_032_{log}.log")
    found = judge_variant(smol_study(), variant, machine(), None, [startup(read, variant)], [])
    assert (found.verdict, found.real_scheme) == (verdict, real), found.summary
    assert found.evidence[0].supports is True


@pytest.mark.skipif(not FIXTURES.is_dir(), reason="no logs of our own servers yet")
def test_planned_cpu_cache_is_what_the_server_printed():
    from scripts.lib.plan.plan import plan_variant

    read = read_log(FIXTURES / "cpu_032_bf16.log")
    engine = {"environment": "envs/vllm-cpu.txt", "env": {"VLLM_CPU_KVCACHE_SPACE": 2}}
    plan = plan_variant(smol_study(engine=engine), "bf16", machine(), version=read.vllm_version)
    assert plan.kv_cache_tokens.value == read.kv_cache_tokens


WARNING = "Your GPU does not have native support for FP8 computation"


def test_fp8_served_weight_only_is_degraded_and_stamped_w8a16():
    read = facts(
        scheme="w8a16-fp8",
        kernel_family=["marlin"],
        weights_gib=8.2,
        quantization="compressed-tensors",
        degraded=True,
        degradations=[Degradation(kind="fp8-weight-only", line=WARNING)],
    )
    verdict = judge_variant(qwen_study(), "fp8-dynamic", A10G, FP8, [startup(read)], [])
    assert (verdict.verdict, verdict.real_scheme) == ("degraded", "w8a16-fp8")
    assert verdict.evidence[0].supports is True
    assert any(piece.line == WARNING for piece in verdict.evidence)


def test_the_kernel_that_was_selected_is_believed_before_the_cards_capability():
    marlin = facts(
        scheme="w8a16-fp8", kernels=["MarlinFP8ScaledMMLinearKernel"], kernel_family=["marlin"]
    )
    assert judge("v", NATIVE_FP8, FP8, marlin).real_scheme == "w8a16-fp8"
    cutlass = facts(
        scheme="w8a8-fp8", kernels=["CutlassFP8ScaledMMLinearKernel"], kernel_family=["cutlass"]
    )
    verdict = judge("v", WEIGHT_ONLY, FP8, cutlass)
    assert (verdict.verdict, verdict.evidence[0].supports) == ("as expected", False)


def test_a_forced_slow_kernel_is_degraded():
    line = "Detected that the model can run with gptq_marlin, however ... so forcing gptq."
    read = facts(
        scheme="w4a16",
        kernel_family=["exllama"],
        quantization="gptq",
        weights_gib=5.2,
        degradations=[Degradation(kind="forced-unoptimized-method", line=line)],
    )
    verdict = judge("v", MARLIN, GPTQ, read)
    assert (verdict.verdict, verdict.real_scheme) == ("degraded", "w4a16")
    silent = read.model_copy(update={"degradations": []})
    assert judge("v", MARLIN, GPTQ, silent).verdict == "degraded"


def test_another_fast_kernel_than_the_table_names_is_no_degradation_but_said():
    read = facts(scheme="w4a16", kernels=["MacheteLinearKernel"], kernel_family=["machete"])
    verdict = judge("v", MARLIN, GPTQ, read)
    assert (verdict.verdict, verdict.evidence[0].supports) == ("as expected", False)


def test_weight_only_kernels_do_not_print_their_bits():
    eight = manifest(
        scheme("w8a16-int8", method="gptq", weight_bits=8), total=9, parameters=7, quantized=6
    )
    read = facts(scheme="w4a16", kernels=["MarlinLinearKernel"], kernel_family=["marlin"])
    verdict = judge("v", MARLIN, eight, read)
    assert (verdict.verdict, verdict.real_scheme) == ("as expected", "w8a16-int8")


def test_a_log_that_names_no_quantization_for_a_quantized_checkpoint():
    read = facts(scheme="bf16", weights_gib=None)
    verdict = judge("v", MARLIN, GPTQ, read)
    assert (verdict.verdict, verdict.real_scheme) == ("not what the checkpoint says", "bf16")


def test_a_quantization_name_alone_proves_nothing():
    read = facts(quantization="auto_gptq")
    verdict = judge("v", MARLIN, GPTQ, read)
    assert (verdict.verdict, verdict.real_scheme) == ("unknown", "unknown")
    # Not even with weights of the right size: this version prints kernels for it.
    sized = judge("v", MARLIN, GPTQ, facts(quantization="auto_gptq", weights_gib=5.2))
    assert sized.verdict == "unknown"


def test_silence_of_a_version_that_prints_kernels_is_not_taken_for_consent():
    read = facts(quantization="compressed-tensors", weights_gib=8.2)
    assert judge("v", NATIVE_FP8, FP8, read).verdict == "unknown"
    old = facts(quantization="compressed-tensors", weights_gib=8.2, vllm_version="0.8.5")
    assert judge("v", NATIVE_FP8, FP8, old).verdict == "as expected"
    assert judge("v", WEIGHT_ONLY, FP8, old).verdict == "unknown"
    assert judge("v", NO_RULE, FP8, old).verdict == "unknown"
    unversioned = old.model_copy(update={"vllm_version": None})
    assert judge("v", NATIVE_FP8, FP8, unversioned).verdict == "unknown"


def test_a_reader_that_infers_native_fp8_from_silence_still_needs_the_table():
    read = facts(
        quantization="compressed-tensors", scheme="w8a8-fp8", weights_gib=8.2, vllm_version="0.8.5"
    )
    assert judge("v", NATIVE_FP8, FP8, read).verdict == "as expected"
    assert judge("v", WEIGHT_ONLY, FP8, read).verdict == "unknown"


def test_without_a_log_everything_is_unknown():
    verdict = judge("v", NATIVE_FP8, FP8, None)
    assert (verdict.verdict, verdict.real_scheme) == ("unknown", "unknown")
    assert "no log" in verdict.summary
    attached = judge_variant(
        qwen_study(), "fp8-dynamic", L40S, FP8, [startup(LogFacts(ready=True))], []
    )
    assert attached.verdict == "unknown"
    assert judge_variant(qwen_study(), "bf16", L40S, BF16, [], []).verdict == "unknown"


def test_a_server_that_did_not_start_is_unknown_with_its_cause():
    read = facts(
        ready=False, scheme="bf16", failure=Failure(kind="oom", line="CUDA out of memory", hint="")
    )
    verdict = judge("v", NO_RULE, BF16, read)
    assert verdict.verdict == "unknown"
    assert "oom" in verdict.summary


def test_bf16_on_an_old_gpu_is_degraded_to_fp16():
    line = "Casting torch.bfloat16 to torch.float16."
    read = facts(
        scheme="fp16",
        dtype="torch.float16",
        degradations=[Degradation(kind="dtype-fallback", line=line)],
    )
    assert judge("v", NO_RULE, BF16, read).verdict == "degraded"
    silent = read.model_copy(update={"degradations": []})
    assert judge("v", NO_RULE, BF16, silent).verdict == "not what the checkpoint says"


def test_attention_and_moe_tuning_are_reported_but_do_not_degrade_the_weights_path():
    read = facts(
        scheme="bf16",
        degradations=[
            Degradation(kind="attention-fallback", line="Cannot use FlashAttention-2"),
            Degradation(kind="untuned-moe", line="Using default MoE config"),
        ],
    )
    verdict = judge("v", NO_RULE, BF16, read)
    assert verdict.verdict == "as expected"
    assert sum(piece.line is not None and piece.supports is None for piece in verdict.evidence) == 2


def test_a_variant_served_in_another_dtype_promises_that_dtype():
    study = qwen_study(variants={"bf16": {"checkpoint": "bf16", "dtype": "float16"}})
    read = facts(scheme="fp16", dtype="torch.float16", weights_gib=14.25)
    verdict = judge_variant(study, "bf16", L40S, BF16, [startup(read)], [])
    assert (verdict.verdict, verdict.promised_scheme) == ("as expected", "fp16")


def test_speed_is_a_hint_and_never_decides():
    read = facts(scheme="w4a16", kernels=["MarlinLinearKernel"], kernel_family=["marlin"])
    same = judge("v", MARLIN, GPTQ, read, speed_ratio=1.01)
    assert same.verdict == "as expected"
    hint = next(piece for piece in same.evidence if piece.level == "speed")
    assert (hint.supports, "hint" in hint.says) == (False, True)
    faster = judge("v", MARLIN, GPTQ, read, speed_ratio=0.5)
    assert next(piece for piece in faster.evidence if piece.level == "speed").supports is None
    assert (
        judge("v", MARLIN, GPTQ, facts(quantization="gptq"), speed_ratio=1.0).verdict == "unknown"
    )


def test_small_models_are_not_told_apart_by_size():
    small = manifest(
        scheme("w4a16", method="gptq"), total=150_000_000, parameters=134_515_008, quantized=1
    )
    read = facts(quantization="gptq", weights_gib=0.26)
    weights = [p for p in judge("v", MARLIN, small, read).evidence if p.level == "weights"]
    assert weights[0].supports is None
    assert judge("v", MARLIN, small, read).verdict == "unknown"


def test_tensor_parallel_weights_are_compared_per_gpu():
    read = facts(scheme="unknown", quantization="auto_gptq", weights_gib=7.15)
    assert judge("v", MARLIN, GPTQ, read, gpus=2).verdict == "not what the checkpoint says"
    assert judge("v", MARLIN, GPTQ, read, gpus=1).verdict == "unknown"


def test_the_worst_start_counts():
    good = judge("v", NATIVE_FP8, BF16, facts(scheme="bf16"))
    bad = judge("v", MARLIN, GPTQ, facts(weights_gib=14.29))
    both = worst([good, bad, good])
    assert both.verdict == "not what the checkpoint says"
    assert "3 starts did not all say the same" in both.summary
    assert worst([good, good]) == good


def test_a_planned_gpu_does_not_judge_what_ran_elsewhere():
    study = qwen_study(host={"gpu": "A10G"})
    read = facts(
        scheme="w8a8-fp8", kernels=["CutlassFP8ScaledMMLinearKernel"], kernel_family=["cutlass"]
    )
    verdict = judge_variant(study, "fp8-dynamic", L40S, FP8, [startup(read)], [])
    assert verdict.evidence[0].supports is True


SCHEMES = st.sampled_from(["bf16", "fp16", "w8a8-fp8", "w8a16-fp8", "w4a16", "mixed", "unknown"])


@given(
    SCHEMES,
    SCHEMES,
    st.sampled_from([NATIVE_FP8, WEIGHT_ONLY, MARLIN, NO_RULE]),
    st.one_of(st.none(), st.floats(0.01, 200)),
    st.booleans(),
)
def test_no_verdict_claims_more_than_its_evidence(promised, real, expected, weights, named):
    read = facts(
        scheme=real,
        weights_gib=weights,
        quantization="gptq" if named else None,
        kernels=["MarlinLinearKernel"] if named and real != "unknown" else [],
        kernel_family=["marlin"] if named and real != "unknown" else [],
    )
    of = GPTQ.model_copy(update={"scheme": scheme(promised, method="gptq")})
    verdict = judge("v", expected, of, read)
    assert (verdict.real_scheme == "unknown") == (verdict.verdict == "unknown")
    if verdict.verdict == "as expected":
        assert verdict.real_scheme == promised != "unknown"
    if promised == "unknown":
        assert verdict.verdict in ("unknown", "not what the checkpoint says")


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scripts.judge_kernels", *map(str, arguments)]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)


def test_command_line(tmp_path):
    files = {name: tmp_path / f"{name}.json" for name in ("study", "host", "ckpt", "start", "out")}
    write_json(files["study"], dump(qwen_study()))
    write_json(files["host"], H200)
    write_json(files["ckpt"], GPTQ)
    write_json(files["start"], startup(facts(quantization="auto_gptq", weights_gib=14.29)))
    base = ["--study", files["study"], "--host", files["host"], "--manifest", files["ckpt"]]
    base += ["--startup", files["start"], tmp_path / "absent.json", "--output", files["out"]]
    (tmp_path / "baseline").mkdir()
    write_json(tmp_path / "baseline" / "startup.json", startup(facts(weights_gib=14.29)))
    write_json(tmp_path / "load.json", load({1: 5.0}))
    write_json(tmp_path / "baseline" / "load.json", load({1: 5.0}))
    base += ["--baseline-startup", tmp_path / "baseline" / "startup.json"]
    done = run(*base, "--variant", "gptq-int4")
    assert done.returncode == 0
    written = Verdict.model_validate_json(files["out"].read_text())
    assert written.verdict == "not what the checkpoint says"
    assert [piece.level for piece in written.evidence] == ["table", "log", "weights", "speed"]
    wrong = run(*base, "--variant", "nope")
    assert wrong.returncode == 2
    assert 'no variant "nope"' in wrong.stderr


def test_a_baseline_of_another_model_says_nothing_about_size_and_speed():
    read = facts(quantization="auto_gptq", weights_gib=5.29, kernels=["MacheteLinearKernel"])
    starts = [startup(read)], [startup(facts(weights_gib=0.26))]
    small = BF16.model_copy(update={"shape": Shape(hidden_size=576, layers=30)})
    large = GPTQ.model_copy(update={"shape": Shape(hidden_size=3584, layers=28)})

    def levels(baseline: Manifest) -> dict[str, str]:
        verdict = judge_variant(
            qwen_study(),
            "gptq-int4",
            H200,
            large,
            *starts,
            speed_ratio=1.0,
            baseline_manifest=baseline,
        )
        return {piece.level: piece.says for piece in verdict.evidence}

    other = levels(small)
    assert "speed" not in other
    assert "baseline" not in other["weights"]
    same = levels(BF16.model_copy(update={"shape": large.shape}))
    assert "1.00 times the baseline's" in same["speed"]
    assert "the baseline loaded 0.26 GiB" in same["weights"]


def test_a_quantized_baseline_is_not_held_against_itself():
    """As fast as itself is no hint that it ran unquantized numbers."""
    starts = [startup(facts(quantization="gptq", weights_gib=5.29))]
    study = qwen_study(baseline="gptq-int4")
    verdict = judge_variant(study, "gptq-int4", H200, GPTQ, starts, starts, speed_ratio=1.0)
    assert "speed" not in {piece.level for piece in verdict.evidence}


def test_a_cache_in_another_dtype_than_asked_for_is_not_what_was_promised():
    line = "... kv_cache_dtype=auto, device_config=cuda ..."
    read = facts(scheme="bf16", evidence={"kv_cache_dtype": line})
    study = qwen_study(variants={"bf16": {"checkpoint": "bf16", "kv_cache_dtype": "fp8"}})
    verdict = judge_variant(study, "bf16", L40S, BF16, [startup(read)], [])
    assert verdict.verdict == "not what the checkpoint says"
    assert "KV cache in fp8" in verdict.summary
    kept = read.model_copy(update={"kv_cache_dtype": "fp8_e4m3"})
    assert judge_variant(study, "bf16", L40S, BF16, [startup(kept)], []).verdict == "as expected"
    silent = facts(scheme="bf16")
    assert judge_variant(study, "bf16", L40S, BF16, [startup(silent)], []).verdict == "as expected"


def test_a_start_that_failed_does_not_hide_the_ones_that_ran():
    failed = facts(ready=False, failure=Failure(kind="oom", line="CUDA out of memory", hint=""))
    starts = [startup(failed), startup(facts(scheme="bf16"))]
    assert judge_variant(qwen_study(), "bf16", L40S, BF16, starts, []).verdict == "as expected"
    only = judge_variant(qwen_study(), "bf16", L40S, BF16, starts[:1], [])
    assert (only.verdict, "oom" in only.summary) == ("unknown", True)


@pytest.mark.skipif(not FIXTURES.is_dir(), reason="no logs of our own servers yet")
def test_the_same_log_line_on_a_cpu_with_amx_is_judged_by_the_rules():
    read = read_log(FIXTURES / "cpu_032_int4.log")
    host = machine()
    amx = host.model_copy(update={"cpu": host.cpu.model_copy(update={"flags": ["amx_tile"]})})
    found = judge_variant(smol_study(), "int4-w4a16", amx, None, [startup(read)], [])
    assert (found.verdict, found.real_scheme) == ("degraded", "w4a8-int8")


def test_a_draft_model_beside_it_makes_the_size_of_the_weights_say_nothing():
    variants = {
        "gptq-int4": {"checkpoint": "gptq-int4", "speculative_config": {"model": "a-7b-draft"}},
        "bf16": {"checkpoint": "bf16"},
    }
    read = facts(
        scheme="w4a16",
        kernels=["MarlinLinearKernel"],
        kernel_family=["marlin"],
        weights_gib=14.4,
        quantization="auto_gptq",
    )
    study = qwen_study(variants=variants)
    verdict = judge_variant(study, "gptq-int4", L40S, GPTQ, [startup(read)], [])
    assert verdict.verdict == "as expected"
    assert not any(piece.level == "weights" for piece in verdict.evidence)


def test_a_32_bit_checkpoint_is_served_in_16_bits_by_default():
    wide = manifest(
        scheme("fp32", weight_bits=32), total=4 * PARAMETERS, parameters=PARAMETERS, quantized=0
    )
    wide = wide.model_copy(update={"shape": qwen_shape().model_copy(update={"dtype": "float32"})})
    read = facts(scheme="bf16", weights_gib=14.25)
    verdict = judge_variant(qwen_study(), "bf16", L40S, wide, [startup(read)], [])
    assert (verdict.verdict, verdict.promised_scheme) == ("as expected", "bf16")
    assert next(p for p in verdict.evidence if p.level == "weights").supports is True
