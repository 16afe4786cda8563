"""Checks across the keys of a study file, on its raw content.

They run on the raw mapping, not on the models, so that a wrong name is reported together
with a wrong type elsewhere: all problems at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scripts.lib.study.models import Study
from scripts.lib.study.raw import engines, section, sources
from scripts.lib.study.refusals import find_refusals
from scripts.lib.study.sentences import show, suggest
from scripts.lib.study.slo import PERCENTILE_FLOORS

DEEPEST = 20
"""No key of a study lies deeper; an anchor that holds itself would never end."""
REPEATS_TO_COMPARE = 3
"""Runs of a load point, over all sessions, that a comparison of variants needs."""
LARGEST_WORKLOAD_NUMBER = 10_000_000
"""More requests, tokens or seconds than any load test has."""


def find_errors(raw: Mapping[str, Any], project: Path) -> list[str]:
    """Return a sentence for each contradiction in ``raw``; paths count from ``project``."""
    return [
        *_unfit_values(raw),
        *_unknown_names(raw),
        *_quantization_cycles(raw),
        *_load_points(raw),
        *_missing_files(raw, project),
        *find_refusals(raw, project),
    ]


def find_warnings(study: Study) -> list[str]:
    """Return what is allowed but will weaken the report's answer."""
    return [
        *_percentiles_without_samples(study),
        *_comparisons_without_repeats(study),
        *_names_alike(study),
    ]


def _unfit_values(raw: Mapping[str, Any]) -> Iterator[str]:
    """Find what YAML allows and no setting can be, also in sections of free form."""
    for path, value in _leaves(raw, ()):
        where = ".".join(str(part) for part in path)
        if isinstance(value, float) and not math.isfinite(value):
            yield f"{where} is {value}; give a finite number"
        elif isinstance(value, str) and "\0" in value:
            yield f"{where} holds a NUL character; take it out"
        elif value is not None and not isinstance(value, str | int | float):
            fault = f"which YAML reads as a {type(value).__name__}; put it in quotes"
            yield f"{where} is {show(value)}, {fault}"
        elif (
            path[0] == "workloads"
            and path[-1] != "seed"
            and isinstance(value, int | float)
            and value > LARGEST_WORKLOAD_NUMBER
        ):
            yield f"{where} is {value}; no load test is so large: at most {LARGEST_WORKLOAD_NUMBER}"


def _leaves(value: object, path: tuple[object, ...]) -> Iterator[tuple[tuple[object, ...], object]]:
    if isinstance(value, Mapping | list) and len(path) <= DEEPEST:
        items = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, inner in items:
            yield from _leaves(inner, (*path, key))
    elif not isinstance(value, Mapping | list):
        yield path, value


def _unknown_names(raw: Mapping[str, Any]) -> Iterator[str]:
    variants, checkpoints = section(raw, "variants"), section(raw, "checkpoints")
    baseline = raw.get("baseline")
    if isinstance(baseline, str) and variants and baseline not in variants:
        fix = suggest(baseline, list(variants), kind="variants")
        yield f"baseline is {show(baseline)}, which is no variant of this study; {fix}"
    for name, variant in variants.items():
        wanted = variant.get("checkpoint")
        if isinstance(wanted, str) and wanted not in checkpoints:
            fix = suggest(wanted, list(checkpoints), kind="checkpoints")
            yield f"variants.{name}.checkpoint is {show(wanted)}, which is not defined; {fix}"
    for name, source in _quantized(raw).items():
        if source not in checkpoints:
            fix = suggest(source, list(checkpoints), kind="checkpoints")
            yield f"checkpoints.{name}.quantize.from is {show(source)}, which is not defined; {fix}"


def _quantized(raw: Mapping[str, Any]) -> dict[str, str]:
    """Return checkpoint -> the checkpoint it is quantized from."""
    found = {name: quantize.get("from") for name, quantize in sources(raw, "quantize").items()}
    return {name: source for name, source in found.items() if isinstance(source, str)}


def _quantization_cycles(raw: Mapping[str, Any]) -> Iterator[str]:
    source = _quantized(raw)
    for name in source:
        seen, here = {name}, source.get(name)
        while here is not None and here not in seen:
            seen.add(here)
            here = source.get(here)
        if here == name:
            yield (
                f"checkpoints.{name}.quantize.from leads back to {name} itself; "
                "quantize from a checkpoint that exists already"
            )


def _load_points(raw: Mapping[str, Any]) -> Iterator[str]:
    for name, workload in section(raw, "workloads").items():
        where = f"workloads.{name}"
        for key in ("concurrency", "rate"):
            levels = workload.get(key)
            if isinstance(levels, list):
                yield from _duplicates(f"{where}.{key}", levels)
        yield from _load_shape(where, workload)


def _duplicates(where: str, levels: list[Any]) -> Iterator[str]:
    counts = Counter(level for level in levels if isinstance(level, int | float))
    for level, count in counts.items():
        if count > 1:
            yield (
                f"{where} holds {level} {count} times; give each load point once and repeat it "
                "with repetitions"
            )


def _load_shape(where: str, workload: dict[str, Any]) -> Iterator[str]:
    dataset = workload.get("dataset")
    is_trace = isinstance(dataset, dict) and bool(dataset.get("trace"))
    shapes = [key for key in ("concurrency", "rate", "ramp") if workload.get(key)]
    if is_trace and shapes:
        yield f"{where} replays a trace, which brings its own times; remove {' and '.join(shapes)}"
    if not is_trace and not shapes:
        yield f"{where} has no load points; give concurrency: [1, 8] or rate: [2.5], for instance"
    if len(shapes) > 1:
        yield f"{where} has {' and '.join(shapes)}; give one of them, or two workloads"
    requests, levels = (
        workload.get("requests_per_point"),
        workload.get(shapes[0]) if shapes else None,
    )
    if isinstance(requests, list) and isinstance(levels, list) and len(requests) != len(levels):
        yield (
            f"{where}.requests_per_point has {len(requests)} numbers for {len(levels)} load "
            "points; give one number, or one per point"
        )
    counts = requests if isinstance(requests, list) else [requests]
    for count in counts:
        if isinstance(count, int | float) and count < 1:
            yield f"{where}.requests_per_point is {count}; send at least 1 request"


def _missing_files(raw: Mapping[str, Any], project: Path) -> Iterator[str]:
    for where, name in _named_files(raw):
        if not _is_file(project / name):
            fix = "give its path from the project"
            yield f"{where} is {show(name)}, and there is no such file; {fix}"
    quality = raw.get("quality")
    patterns = quality.get("probes", []) if isinstance(quality, dict) else []
    for pattern in patterns if isinstance(patterns, list) else []:
        if isinstance(pattern, str) and not _matches(pattern, project):
            yield (
                f"quality.probes holds {show(pattern)}, which matches no file; give the path of a "
                "probe file, or a pattern such as config/probes/*.jsonl"
            )


def _named_files(raw: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for where, engine in engines(raw).items():
        if isinstance(engine.get("environment"), str):
            yield f"{where}.environment", engine["environment"]
    for name, workload in section(raw, "workloads").items():
        dataset = workload.get("dataset")
        for kind in ("sharegpt", "jsonl", "trace"):
            if isinstance(dataset, dict) and isinstance(dataset.get(kind), str):
                yield f"workloads.{name}.dataset.{kind}", dataset[kind]
    for name, quantize in sources(raw, "quantize").items():
        if isinstance(quantize.get("calibration"), str):
            yield f"checkpoints.{name}.quantize.calibration", quantize["calibration"]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name too long, for instance
        return False


def _matches(pattern: str, project: Path) -> bool:
    try:
        return bool(probe_files([pattern], project))
    except (OSError, ValueError):  # no pattern at all
        return False


def probe_files(patterns: list[str], project: Path) -> list[Path]:
    """Return the files that ``patterns`` match, sorted, each once, relative to ``project``."""
    found: set[Path] = set()
    for pattern in patterns:
        anchor = Path(pattern)
        if anchor.is_absolute():
            found.update(path for path in anchor.parent.glob(anchor.name) if path.is_file())
        else:
            found.update(p.relative_to(project) for p in project.glob(pattern) if p.is_file())
    return sorted(found)


def _comparisons_without_repeats(study: Study) -> Iterator[str]:
    for name, workload in study.workloads.items() if len(study.variants) > 1 else ():
        runs = workload.repetitions * workload.sessions
        if runs < REPEATS_TO_COMPARE:
            yield (
                f"workloads.{name} runs each load point {'once' if runs == 1 else 'twice'}: that "
                "cannot tell a difference between variants from noise, however large it is; give "
                f"repetitions: {REPEATS_TO_COMPARE} or more"
            )


def _percentiles_without_samples(study: Study) -> Iterator[str]:
    for name, workload in study.workloads.items():
        runs = workload.repetitions * workload.sessions
        counts = [workload.requests_at(index) for index in range(workload.points)]
        totals = [count * runs for count in counts if count is not None]
        short = {
            limit.key: PERCENTILE_FLOORS[limit.statistic]
            for limit in study.slo.latency_limits
            if limit.statistic in PERCENTILE_FLOORS
            and any(total < PERCENTILE_FLOORS[limit.statistic] for total in totals)
        }
        if short:
            needs = ", ".join(f"slo.{key} needs {floor}" for key, floor in short.items())
            yield (
                f"{needs} requests at a load point, and workloads.{name} sends {min(totals)} at "
                "its smallest: there the report gives an interval and cannot prove a pass; raise "
                "requests_per_point or repetitions, or judge another percentile"
            )


def _names_alike(study: Study) -> Iterator[str]:
    for kind in ("checkpoints", "variants", "workloads"):
        counts = Counter(name.lower() for name in getattr(study, kind))
        for name, count in counts.items():
            if count > 1:
                yield f'{kind}: {count} names differ from "{name}" only in case'
