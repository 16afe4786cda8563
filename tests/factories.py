"""Builds realistic study folders for tests: simulated runs, and runs recorded on an H200.

A simulated run is a closed loop of requests with known mean TTFT and TPOT; everything that a
measuring job leaves behind is written in the same formats. Nothing here is a measurement.
"""

from __future__ import annotations

import gzip
import heapq
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scripts.lib.base.files import content_hash, write_json
from scripts.lib.checkpoints.manifest import File, Manifest, Scheme, Shape
from scripts.lib.engine.startup import Failure, LogFacts, Startup
from scripts.lib.load.raw_records import note_records
from scripts.lib.load.results import REQUEST_FIELDS, Client, Latency, LoadResult, Point, ServerView
from scripts.lib.plan.models import Estimate, Evidence, ExpectedPath, Plan, Verdict
from scripts.lib.quality.results import ItemResult, QualityResult
from scripts.lib.study.models import Study
from scripts.lib.study.specs import dump
from scripts.lib.telemetry.host import Cpu, Gpu, Host

REFERENCE = Path(__file__).resolve().parents[2] / "shared" / "reference"
H200_LEVELS = (1, 10, 100, 300)
Record = dict[str, Any]


def reference(name: str) -> Path:
    """Return a path under ../shared/reference, or skip the test where there is none."""
    path = REFERENCE / name
    if not path.exists():
        pytest.skip(f"reference data not here: {path}")
    return path


def h200_records(variant: str, concurrency: int, start_s: float = 10.0, point: int = 0):
    """Return one recorded H200 point as request records (``bf16``, ``fp8`` or ``gptq``)."""
    raw = json.loads(reference(f"h200/{variant}/{variant}.{concurrency}.json").read_text())
    first = min(raw["start_times"])
    records = []
    for index, sent in enumerate(raw["start_times"]):
        sent_s = start_s + sent - first
        first_token_s = sent_s + raw["ttfts"][index]
        records.append(
            record(
                point=point,
                index=index,
                sent_s=sent_s,
                first_token_s=first_token_s,
                last_token_s=first_token_s + sum(raw["itls"][index]),
                input_tokens=raw["input_lens"][index],
                output_tokens=raw["output_lens"][index],
                chunks=len(raw["itls"][index]) + 1,
            )
        )
    return records


def record(**values: Any) -> Record:
    """Return one request record; what is not given is that of a completed request."""
    values.setdefault("intended_s", values.get("sent_s"))
    values.setdefault("chunks", values.get("output_tokens"))
    defaults = {"ok": True, "status": 200, "finish_reason": "length", "error": None}
    return {name: values.get(name, defaults.get(name)) for name in REQUEST_FIELDS}


def simulate_records(
    rng: np.random.Generator,
    concurrency: int,
    requests: int,
    ttft_ms: float,
    tpot_ms: float,
    *,
    start_s: float = 10.0,
    point: int = 0,
    failed: int = 0,
    spread: float = 0.05,
    output_tokens: float = 100,
) -> list[Record]:
    """Return a closed loop's records: log-normal TTFT and TPOT around the given means."""
    lengths = np.random.default_rng(requests)  # the same prompts in every repetition
    free = [start_s] * concurrency
    heapq.heapify(free)
    records = []
    for index in range(requests):
        sent_s = heapq.heappop(free)
        tokens = max(2, int(lengths.gamma(4, output_tokens / 4)))
        ttft_s = ttft_ms / 1000 * rng.lognormal(0, spread)
        decode_s = tpot_ms / 1000 * rng.lognormal(0, spread) * (tokens - 1)
        bad = index < failed
        last_s = sent_s + ttft_s + (0 if bad else decode_s)
        heapq.heappush(free, last_s)
        records.append(
            record(
                point=point,
                index=index,
                sent_s=sent_s,
                first_token_s=None if bad else sent_s + ttft_s,
                last_token_s=None if bad else last_s,
                input_tokens=max(1, int(lengths.gamma(2, 60))),
                output_tokens=0 if bad else tokens,
                ok=not bad,
                status=500 if bad else 200,
                finish_reason=None if bad else "stop",
                error="HTTP 500: CUDA out of memory" if bad else None,
            )
        )
    return records


def latency(samples: Sequence[float]) -> Latency:
    """Return the distribution of samples in ms."""
    if not len(samples):
        return Latency(mean=None, p50=None, p90=None, p95=None, p99=None, n=0)
    p50, p90, p95, p99 = (float(x) for x in np.quantile(samples, [0.5, 0.9, 0.95, 0.99]))
    return Latency(mean=float(np.mean(samples)), p50=p50, p90=p90, p95=p95, p99=p99, n=len(samples))


UNKNOWN = Latency(mean=None, p50=None, p90=None, p95=None, p99=None, n=0)


def make_point(records: Sequence[Record], **values: Any) -> Point:
    """Return the point that these records make up; ``values`` replace what is computed."""
    done = [r for r in records if r["ok"]]
    start = min(r["sent_s"] for r in records)
    end = max((r["last_token_s"] for r in done), default=start + 1)
    duration = end - start
    ttft = [1000 * (r["first_token_s"] - r["sent_s"]) for r in done]
    e2el = [1000 * (r["last_token_s"] - r["sent_s"]) for r in done]
    tpot = [
        1000 * (r["last_token_s"] - r["first_token_s"]) / (r["output_tokens"] - 1)
        for r in done
        if r["output_tokens"] > 1
    ]
    tokens_in, tokens_out = (sum(r[k] for r in done) for k in ("input_tokens", "output_tokens"))
    failed = len(records) - len(done)
    point: dict[str, Any] = {
        "workload_point": 0,
        "repetition": 1,
        "sent": len(records),
        "completed": len(done),
        "failed": failed,
        "start_s": start,
        "end_s": end,
        "duration_s": duration,
        "achieved_rate": len(done) / duration,
        "input_tokens": tokens_in,
        "output_tokens": tokens_out,
        "output_throughput_tok_s": tokens_out / duration,
        "total_throughput_tok_s": (tokens_in + tokens_out) / duration,
        "request_throughput": len(done) / duration,
        "ttft_ms": latency(ttft),
        "tpot_ms": latency(tpot),
        "itl_ms": UNKNOWN,
        "e2el_ms": latency(e2el),
        "client": Client(processes=1, cpu_share=0.1, send_lag_p99_ms=0.4),
        "server": ServerView(
            ttft_mean_ms=float(np.mean(ttft)) if ttft else None,
            tpot_mean_ms=float(np.mean(tpot)) if tpot else None,
            queue_mean_ms=1.0,
            preemptions=0.0,
        ),
        "errors": {"HTTP 500: CUDA out of memory": failed} if failed else {},
        "valid": not failed,
        "invalid_reasons": [f"{failed} of {len(records)} requests failed"] if failed else [],
    }
    return Point.model_validate({**point, **values})


def write_run(
    study_folder: Path,
    variant: str,
    workload: str,
    points: Sequence[tuple[Point, Sequence[Record]]],
    *,
    session: int = 1,
    failure: Failure | None = None,
    with_requests: bool = True,
    series: bool = True,
    gpus: int = 0,
    facts: LogFacts | None = None,
) -> Path:
    """Write one session's folder as ``measure_load`` does; return load.json's path."""
    folder = study_folder / "runs" / variant / workload / f"session{session}"
    folder.mkdir(parents=True, exist_ok=True)
    load = LoadResult(
        points=[point for point, _ in points],
        model=variant,
        origin_unix_s=1_790_000_000.0 if with_requests else None,
        dataset={"file": "data/chat.json", "conversations": 64},
        warmup={"requests": 8, "failed": 0},
        variant=variant,
        workload=workload,
        session=session,
        failure=failure,
    )
    if with_requests:
        rows = [{**r, "point": i} for i, (_, records) in enumerate(points) for r in records]
        write_requests(folder / "requests.jsonl.gz", rows)
    if series and points:
        write_series(folder, [p for p, _ in points], gpus)
    write_json(folder / "load.json", note_records(load, folder))
    write_json(folder / "startup.json", make_startup(variant, failure, facts))
    log = f"INFO serving {variant}\n" if failure is None else f"ERROR {failure.line}\n"
    (folder / "server.log").write_text(log)
    return folder / "load.json"


def write_requests(path: Path, rows: Sequence[Record]) -> None:
    """Write ``requests.jsonl.gz``."""
    with gzip.open(path, "wt", encoding="utf-8", compresslevel=1) as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def write_series(folder: Path, points: Sequence[Point], gpus: int) -> None:
    """Write metrics.csv.gz and, with ``gpus``, gpu.csv.gz: one sample every half second."""
    t = np.arange(0, max(p.end_s for p in points) + 1, 0.5)
    running = np.zeros(len(t))
    for point in points:
        inside = (t >= point.start_s) & (t <= point.end_s)
        running[inside] = point.concurrency or 4
    tokens = np.cumsum(running * 5.0)
    pd.DataFrame(
        {
            "t_s": t,
            "running": running,
            "waiting": np.zeros(len(t)),
            "kv_cache_usage": np.minimum(1.0, running / 100),
            "preemptions": np.zeros(len(t)),
            "prompt_tokens": tokens,
            "generation_tokens": tokens,
            "prefix_cache_queries": tokens,
            "prefix_cache_hits": tokens * 0.25,
            "queue_time_sum_s": tokens * 1e-5,
            "queue_time_count": tokens / 100,
            "spec_decode_accepted": np.nan,
            "spec_decode_draft": np.nan,
        }
    ).to_csv(folder / "metrics.csv.gz", index=False)
    if not gpus:
        return
    power = 100.0 + running
    frames = [
        pd.DataFrame(
            {
                "t_s": t,
                "gpu": gpu,
                "memory_mib": 40_000.0,
                "utilization": np.where(running > 0, 95.0, 0.0),
                "power_w": power,
                "sm_clock_mhz": 1800.0,
                "throttle_reasons": "0x0",
                "energy_j": np.cumsum(power * 0.5),
            }
        )
        for gpu in range(gpus)
    ]
    pd.concat(frames).sort_values(["t_s", "gpu"]).to_csv(folder / "gpu.csv.gz", index=False)


def make_startup(
    variant: str, failure: Failure | None = None, facts: LogFacts | None = None
) -> Startup:
    """Return how a server started, or failed to."""
    ready = failure is None
    if facts is None:
        facts = LogFacts(
            vllm_version="0.32.0",
            kernels=["CPUInt8ScaledMMLinearKernel"] if "int8" in variant else [],
            scheme="w8a8-int8" if "int8" in variant else "bf16",
            weights_gib=0.14 if "int8" in variant else 0.25,
            kv_cache_tokens=90_000 if ready else None,
            max_concurrency=43.9 if ready else None,
            max_concurrency_tokens=2048 if ready else None,
            ready=ready,
            failure=failure,
            model_load_s=1.5,
        )
    return Startup(
        variant=variant,
        command=["python", "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1"],
        environment={"VLLM_CPU_KVCACHE_SPACE": "2"},
        started_at="2026-11-30T07:00:00Z",
        ready_s=31.0 if ready else None,
        ready=ready,
        exit_code=None if ready else 1,
        facts=facts,
        failure=failure,
    )


OOM = Failure(
    kind="oom",
    line="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    hint="Lower gpu_memory_utilization or max_model_len, or use more GPUs.",
)


@dataclass(frozen=True)
class Speed:
    """How fast a simulated variant is, at concurrency 1 and as it grows."""

    ttft_ms: float = 100.0
    tpot_ms: float = 20.0
    growth: float = 0.05
    """Relative growth of both per additional request in flight."""

    def at(self, level: float) -> tuple[float, float]:
        """Return mean (TTFT, TPOT) in ms at a concurrency."""
        factor = 1 + self.growth * (level - 1)
        return self.ttft_ms * factor, self.tpot_ms * factor


@dataclass
class Recipe:
    """What a synthetic study holds. Every field may be changed before writing."""

    speeds: dict[str, Speed] = field(
        default_factory=lambda: {
            "bf16": Speed(),
            "int8-w8a8": Speed(ttft_ms=80, tpot_ms=14),
            "int4-w4a16": Speed(ttft_ms=150, tpot_ms=30),
        }
    )
    levels: list[int] = field(default_factory=lambda: [1, 4, 8])
    repetitions: int = 3
    sessions: int = 1
    requests_per_level: int = 10
    run_spread: float = 0.01
    """Relative spread of whole runs, on top of the requests' own."""
    failures: dict[str, Failure] = field(default_factory=dict)
    """Variants whose server does not start."""
    wrong: dict[str, set[str]] = field(default_factory=dict)
    """Variant -> ids of probe items it gets wrong (default: int4-w4a16 loses two)."""
    gpus: int = 0
    seed: int = 7
    study: dict[str, Any] = field(default_factory=dict)
    """Top-level keys of the study that replace the default ones."""


def make_study(recipe: Recipe | None = None) -> Study:
    """Return the study of a recipe; the first variant is the baseline."""
    recipe = recipe or Recipe()
    names = list(recipe.speeds)
    raw: dict[str, Any] = {
        "study": "synthetic",
        "title": "A synthetic study",
        "baseline": names[0],
        "engine": {"environment": "envs/vllm-cpu.txt"},
        "checkpoints": {name: {"path": f"models/{name}"} for name in names},
        "variants": {name: {"checkpoint": name} for name in names},
        "workloads": {
            "chat": {
                "dataset": {"sharegpt": "data/chat.json"},
                "concurrency": recipe.levels,
                "requests_per_point": [recipe.requests_per_level * c for c in recipe.levels],
                "repetitions": recipe.repetitions,
                "sessions": recipe.sessions,
            }
        },
        "slo": {"ttft_p95_ms": 150, "tpot_p95_ms": 30, "kv_usage_max": 0.9},
        "price": {"usd_per_hour": 1.861},
    }
    return Study.model_validate({**raw, **recipe.study})


def write_study(root: Path, recipe: Recipe | None = None) -> Path:
    """Write a whole synthetic study below ``root``; return ``root/results/synthetic``."""
    recipe = recipe or Recipe()
    study = make_study(recipe)
    folder = root / "results" / study.study
    write_json(folder / "study.json", dump(study))
    write_json(folder / "host.json", make_host(recipe.gpus))
    rng = np.random.default_rng(recipe.seed)
    for name in recipe.speeds:
        _write_variant(folder, name, recipe, rng)
    return folder


def _write_variant(folder: Path, name: str, recipe: Recipe, rng: np.random.Generator) -> None:
    write_json(folder / "checkpoints" / f"{name}.json", make_manifest(name))
    write_json(folder / "plan" / f"{name}.json", make_plan(name))
    write_json(folder / "kernels" / f"{name}.json", make_verdict(name))
    failure = recipe.failures.get(name)
    for session in range(1, recipe.sessions + 1):
        points = [] if failure else simulate_session(recipe, name, rng)
        write_run(folder, name, "chat", points, session=session, failure=failure, gpus=recipe.gpus)
    write_quality(folder, name, recipe)


def simulate_session(
    recipe: Recipe, variant: str, rng: np.random.Generator
) -> list[tuple[Point, list[Record]]]:
    """Return all points of one session, repetition by repetition."""
    clock, points = 5.0, []
    for repetition in range(1, recipe.repetitions + 1):
        for index, level in enumerate(recipe.levels):
            ttft, tpot = recipe.speeds[variant].at(level)
            factor = rng.lognormal(0, recipe.run_spread)
            records = simulate_records(
                rng,
                level,
                recipe.requests_per_level * level,
                ttft * factor,
                tpot * factor,
                start_s=clock,
                point=len(points),
            )
            point = make_point(
                records, workload_point=index, repetition=repetition, concurrency=level
            )
            points.append((point, records))
            clock = point.end_s + 1
    return points


AXES = ("arithmetic", "fact", "json", "code", "korean", "logic", "tool", "instruction")


def probe_items(
    wrong: set[str] = frozenset(), *, per_axis: int = 5, skip: Mapping[str, str] | None = None
) -> list[ItemResult]:
    """Return graded items, ``per_axis`` of each axis; ``wrong`` names ids answered wrongly."""
    items = []
    for axis in AXES:
        for number in range(per_axis):
            name = f"{axis}-{number}"
            good = name not in wrong
            items.append(
                ItemResult(
                    id=name,
                    axis=axis,
                    task_success=good if axis not in ("tool", "instruction") else None,
                    format_ok=good if axis in ("json", "instruction") else None,
                    tool_success=good if axis == "tool" else None,
                    degenerate=False,
                    reason="as expected" if good else "another answer",
                    text=f"answer {number}" if good else f"wrong {number}",
                    finish_reason="stop",
                    output_tokens=12,
                    error=(skip or {}).get(name),
                )
            )
    return items


def write_quality(folder: Path, variant: str, recipe: Recipe) -> None:
    """Write ``quality/<variant>/quality.json``; the baseline errs in arithmetic-0."""
    failure = recipe.failures.get(variant)
    lost = recipe.wrong.get(variant, {"json-1", "tool-2"} if variant == "int4-w4a16" else set())
    result = QualityResult(
        variant=variant,
        items=[] if failure else probe_items({"arithmetic-0"} | lost),
        probe_files={"config/probes/all.jsonl": "0" * 64},
        settings={"temperature": 0, "seed": 42},
        not_applicable=f"the server did not start: {failure.kind}" if failure else None,
    )
    write_json(folder / "quality" / variant / "quality.json", result)
    write_json(folder / "quality" / variant / "startup.json", make_startup(variant, failure))


SCHEMES = {"int8-w8a8": "w8a8-int8", "int4-w4a16": "w4a16", "fp8-dynamic": "w8a8-fp8"}
BITS = {"w8a8-int8": 8, "w4a16": 4, "w8a8-fp8": 8, "bf16": 16}


def make_manifest(name: str) -> Manifest:
    """Return a small checkpoint's manifest."""
    scheme = SCHEMES.get(name, "bf16")
    bits = BITS[scheme]
    real = 134_515_008 * bits // 8
    return Manifest(
        name=name,
        source={"path": f"models/{name}"},
        folder=f"models/{name}",
        files=[File(path="model.safetensors", bytes=real, sha256="1" * 64)],
        scheme=Scheme(scheme=scheme, weight_bits=bits, words=f"{bits}-bit weights"),
        shape=Shape(architecture="LlamaForCausalLM", hidden_size=576, layers=30),
        tensors=None,
        ideal_bytes=real,
        real_bytes=real,
    )


def make_plan(name: str) -> Plan:
    """Return what is expected of a variant."""
    scheme = SCHEMES.get(name, "bf16")
    return Plan(
        variant=name,
        device="a test machine",
        expected=ExpectedPath(kind="native", scheme=scheme, why="the table says so"),
        ideal_weight_bytes=134_515_008 * BITS[scheme] // 8,
        real_weight_bytes=134_515_008 * BITS[scheme] // 8,
        kv_cache_tokens=Estimate(value=91_000, unit="tokens", how="2 GiB / bytes per token"),
        weights_gib=Estimate(value=0.25 * BITS[scheme] / 16, unit="GiB", how="headers"),
        compute_bound_from=Estimate(value=6, unit="concurrency", how="roofline"),
        fits=True,
    )


def make_verdict(name: str, verdict: str = "as expected") -> Verdict:
    """Return a kernel verdict."""
    scheme = SCHEMES.get(name, "bf16")
    return Verdict.model_validate(
        {
            "variant": name,
            "verdict": verdict,
            "promised_scheme": scheme,
            "real_scheme": scheme,
            "summary": f"{name} ran {verdict}",
            "evidence": [Evidence(level="log", says="Selected a kernel", supports=True)],
        }
    )


def make_host(gpus: int = 0) -> Host:
    """Return a machine with so many L40S."""
    return Host(
        gpus=[
            Gpu(index=i, name="NVIDIA L40S", memory_mib=46_068, compute_capability="8.9")
            for i in range(gpus)
        ],
        driver="595.91.07" if gpus else None,
        cpu=Cpu(model="a processor", physical_cores=2, logical_cores=2, usable_cores=2),
        memory_gib=24.0,
        os="Linux",
        python="3.11",
        no_gpu_reason=None if gpus else "no NVML library",
    )


def study_hash(study: Study) -> str:
    """Return the hash a study is known by."""
    return content_hash(study)
