"""Small hand-made materials for the tests of diagnosis, decision and rollback."""

from __future__ import annotations

from typing import Any

from scripts.lib.analysis.material import Material
from scripts.lib.analysis.summary import (
    AxisQuality,
    Comparison,
    FailureRow,
    LedgerRow,
    PointRow,
    QualityView,
    Value,
)
from scripts.lib.engine.startup import Failure, LogFacts, Startup
from scripts.lib.plan.models import Verdict
from scripts.lib.study.models import Study
from scripts.lib.telemetry.host import Cpu, Gpu, Host

NOT_MEASURED = Value(missing="not measured")


def make_study(variants: dict[str, dict[str, Any]] | None = None, **keys: Any) -> Study:
    """Return a study whose baseline is bf16, with one closed-loop workload ``chat``."""
    variants = variants or {"bf16": {}, "int8": {}, "int4": {}}
    raw: dict[str, Any] = {
        "study": "small",
        "baseline": "bf16",
        "engine": {"python": "python3"},
        "checkpoints": {name: {"path": f"models/{name}"} for name in variants},
        "variants": {name: {"checkpoint": name, **spec} for name, spec in variants.items()},
        "workloads": {"chat": {"dataset": {"sharegpt": "chat.json"}, "concurrency": [1, 4, 8]}},
        "slo": {"ttft_p95_ms": 500, "tpot_p95_ms": 50, "kv_usage_max": 0.9},
        "quality": {"non_inferiority_margin": 0.05},
    }
    return Study.model_validate({**raw, **keys})


def row(variant: str, level: float, *, passed: bool | None = True, **values: Any) -> PointRow:
    """Return a load point; keywords that name no field are metrics."""
    fields = {name: values.pop(name) for name in list(values) if name in PointRow.model_fields}
    metrics = {k: v if isinstance(v, Value) else Value(value=v) for k, v in values.items()}
    missed = [] if passed is not False else ["tpot_p95_ms: 80 ms is above the limit 50 ms"]
    return PointRow.model_validate(
        {
            "variant": variant,
            "stamp": "",
            "workload": "chat",
            "kind": "concurrency",
            "level": level,
            "runs": 3,
            "sent": 30 * int(level),
            "completed": 30 * int(level),
            "valid": True,
            "invalid_reasons": [],
            "warnings": [],
            "metrics": metrics,
            "slo_pass": passed,
            "slo_failed": missed,
            "sources": [f"runs/{variant}/chat/session1/load.json"],
            **fields,
        }
    )


def sweep(variant: str, speed: float, levels: tuple[int, ...] = (1, 4, 8), **values: Any):
    """Return rows of rising throughput that all keep the SLO."""
    return [
        row(variant, level, output_throughput_tok_s=speed * level, **values) for level in levels
    ]


def quality(variant: str, outcome: str, *, items: int = 48, lost: int = 0, gained: int = 0):
    """Return the quality of one variant."""
    axis = AxisQuality(
        axis="fact",
        items=items,
        passed=items - lost,
        baseline_passed=items - gained,
        baseline_wrong_too=0,
        lost=[f"fact-{i}" for i in range(lost)],
        gained=[f"fact-g{i}" for i in range(gained)],
        similarity_to_baseline=1.0,
        identical_to_baseline=items - lost,
    )
    return QualityView.model_validate(
        {
            "variant": variant,
            "stamp": "",
            "not_applicable": None,
            "axes": [axis],
            **dict.fromkeys(
                ("task_success", "format_accuracy", "tool_success", "similarity"), NOT_MEASURED
            ),
            "lost": lost,
            "gained": gained,
            "p_value": None,
            "difference_low": None,
            "difference_high": None,
            "outcome": outcome,
            "words": f"{lost} lost and {gained} gained of {items}",
            "examples": [],
            "source": f"quality/{variant}/quality.json",
        }
    )


def verdict(variant: str, kind: str = "as expected", real: str = "w8a8-int8") -> Verdict:
    """Return a kernel verdict."""
    return Verdict.model_validate(
        {
            "variant": variant,
            "verdict": kind,
            "promised_scheme": "w8a8-int8",
            "real_scheme": real,
            "kernels": ["SomeKernel"],
            "summary": f"{variant} ran {real}",
        }
    )


def comparison(variant: str, level: float, outcome: str, ratio: float, **values: Any) -> Comparison:
    """Return a comparison of throughput with the baseline."""
    raw = {
        "workload": "chat",
        "level": level,
        "metric": "output_throughput_tok_s",
        "variant": variant,
        "ratio": ratio,
        "low": None,
        "high": None,
        "p_adjusted": None,
        "outcome": outcome,
        "why": "",
    }
    return Comparison.model_validate({**raw, **values})


def ledger(variant: str, *, weights: float | None = None, kv: float | None = None) -> LedgerRow:
    """Return a start-up row."""
    names = [n for n in LedgerRow.model_fields if n not in ("variant", "source")]
    values: dict[str, Any] = dict.fromkeys(names, NOT_MEASURED)
    if weights is not None:
        values["weights_gib"] = Value(value=weights)
    if kv is not None:
        values["kv_cache_tokens"] = Value(value=kv)
    return LedgerRow(variant=variant, source=f"runs/{variant}/startup.json", **values)


def failure(variant: str, kind: str = "oom", stage: str = "start") -> FailureRow:
    """Return a server that did not start."""
    return FailureRow.model_validate(
        {
            "variant": variant,
            "stage": stage,
            "failure": Failure(kind=kind, line="CUDA out of memory", hint="use less memory"),
            "source": f"runs/{variant}/chat/session1/server.log",
        }
    )


def startup(variant: str, version: str = "0.32.0") -> Startup:
    """Return a start that went well."""
    return Startup(
        variant=variant,
        command=["python", "-m", "vllm.entrypoints.openai.api_server", "--model", variant],
        environment={},
        started_at="2026-11-30T07:00:00Z",
        ready_s=30.0,
        ready=True,
        facts=LogFacts(vllm_version=version, ready=True),
    )


def host(gpu: bool = True) -> Host:
    """Return a machine."""
    card = Gpu(index=0, name="NVIDIA L40S", memory_mib=46068, compute_capability="8.9")
    return Host(
        gpus=[card] if gpu else [],
        cpu=Cpu(model="a CPU", physical_cores=2, logical_cores=2, usable_cores=2),
        memory_gib=24,
        os="Linux",
        python="3.11",
    )


def make_material(study: Study | None = None, **fields: Any) -> Material:
    """Return a material in which all variants start, pass their kernel gate and their probes."""
    study = study or make_study()
    speeds = {name: 10 * (1 + 0.5 * i) for i, name in enumerate(study.variants)}
    defaults: dict[str, Any] = {
        "host": host(),
        "verdicts": {name: verdict(name) for name in study.variants},
        "startups": {name: startup(name) for name in study.variants},
        "points": [r for name, speed in speeds.items() for r in sweep(name, speed)],
        "quality": [
            quality(name, "baseline" if name == study.baseline else "non-inferior")
            for name in study.variants
        ],
    }
    return Material(study=study, **{**defaults, **fields})
