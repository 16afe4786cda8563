"""Import files made of the reference data, for the tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from tests.factories import H200_LEVELS, reference


def write(path: Path, content: dict[str, Any]) -> Path:
    """Write an import file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
    return path


GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True, "desc_act": False}
FP8_DYNAMIC = {
    "quant_method": "compressed-tensors",
    "format": "float-quantized",
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {
                "num_bits": 8,
                "type": "float",
                "strategy": "channel",
                "dynamic": False,
                "symmetric": True,
            },
            "input_activations": {
                "num_bits": 8,
                "type": "float",
                "strategy": "token",
                "dynamic": True,
                "symmetric": True,
            },
        }
    },
    "ignore": ["lm_head"],
}
QWEN_7B = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "vocab_size": 152064,
    "max_position_embeddings": 32768,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


def quantized(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of a quantized Qwen2.5-7B."""
    return {"config": {**QWEN_7B, "quantization_config": settings}}


def l40s(folder: Path, **changes: Any) -> Path:
    """Write the published three-way comparison as an import file: only what was measured."""
    raw = json.loads(reference("l40s_blog.json").read_text())
    host, measured = raw["host"], raw["measured"]
    checkpoints = {
        "bf16": {"repo": "Qwen/Qwen2.5-7B-Instruct", "config": QWEN_7B},
        "fp8-dynamic": {"repo": "RedHatAI/Qwen2.5-7B-Instruct-FP8-dynamic"}
        | quantized(FP8_DYNAMIC),
        "gptq-int4": {"repo": "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4"} | quantized(GPTQ),
    }
    questions: dict[str, dict[str, Any]] = {}
    for name, answers in measured["answers"].items():
        given = {v: answers[v] for v in checkpoints}
        questions[name] = {"expected": answers["expected"], "answers": given}
    for name, shares in measured["similarity_to_baseline_pct"].items():
        own = questions.setdefault(name, {})
        own["similarity_to_baseline"] = {v: pct / 100 for v, pct in shares.items()}
    tables = {
        name: {float(level): values for level, values in measured[name].items()}
        for name in ("total_throughput_tok_s", "mean_tpot_ms", "ttft_p99_ms", "duration_s")
    }
    seconds = measured["load_seconds"]
    loading = {name: seconds.get(name, seconds.get(f"{name} first")) for name in checkpoints}
    content = {
        "study": "l40s-published",
        "source": raw["source"],
        "hours": host["hours"],
        "baseline": raw["baseline"],
        "engine_versions": {"vllm": "0.8.5.post1", "transformers": "4.51.3"},
        "host": {
            "gpu": host["gpu"],
            "memory_mib": host["memory_mib"],
            "driver": host["driver"],
            "compute_capability": host["compute_capability"],
        },
        "workload": {"name": "sharegpt", "dataset": "ShareGPT_V3_unfiltered_cleaned_split.json"},
        "variants": {
            name: {
                "checkpoint": checkpoint,
                "startup": {k: v for k, v in measured["startup"][name].items() if v is not None}
                | {"model_load_s": loading[name]},
            }
            for name, checkpoint in checkpoints.items()
        },
        "requests": {1.0: 10, 10.0: 10, 100.0: 100, 300.0: 300},
        "tables": tables,
        "questions": questions,
        "price": {"usd_per_hour": host["usd_per_hour"]},
    }
    return write(folder / "l40s.yaml", {**content, **changes})


def load_model(folder: Path) -> Path:
    """Write the teaching load model as an import file."""
    raw = json.loads(reference("load_model.json").read_text())
    content = {
        "study": "load-model",
        "source": raw["source"],
        "baseline": "model",
        "workload": {"dataset": "none: a formula"},
        "variants": {"model": {"points": raw["rows"]}},
        "slo": {**raw["slo"], "success_rate": None},
    }
    return write(folder / "load_model.yaml", content)


def h200(folder: Path, **changes: Any) -> Path:
    """Write our hand-made H200 run as an import file; paths point to the reference."""
    root = reference("h200").resolve()
    checkpoints = {
        "bf16": {"config": QWEN_7B},
        "fp8": quantized(FP8_DYNAMIC),
        "gptq": quantized(GPTQ),
    }
    content = {
        "study": "h200-by-hand",
        "source": "shell loop on one H200",
        "baseline": "bf16",
        "host": {"gpu": "NVIDIA H200", "memory_mib": 143771, "compute_capability": "9.0"},
        "workload": {"name": "sharegpt", "dataset": "ShareGPT conversations", "seed": 42},
        "variants": {
            name: {
                "checkpoint": {**checkpoint, "dummy_weights": True},
                "log": f"{root}/{name}/server.log",
                "metrics": f"{root}/{name}/metrics.prom",
                "points": [{"file": f"{root}/{name}/{name}.{c}.json"} for c in H200_LEVELS],
            }
            for name, checkpoint in checkpoints.items()
        },
        "slo": {"tpot_p95_ms": 50, "ttft_p95_ms": 2000},
        "price": {"usd_per_hour": 4.0},
    }
    return write(folder / "h200.yaml", {**content, **changes})
