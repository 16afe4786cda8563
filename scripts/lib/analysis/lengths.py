"""How long prompts and answers really were."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from scripts.lib.analysis.records import RecordError, read_requests
from scripts.lib.load.results import LoadResult


def realised_lengths(
    folder: Path, loads: dict[tuple[str, str], list[LoadResult]]
) -> dict[tuple[str, str], dict[str, dict[str, float]]]:
    """Return token counts of the completed requests of each variant and workload.

    Args:
        folder: ``results/<study>``.
        loads: The load results, for what holds no per-request records.

    Returns:
        (variant, workload) -> ``input`` and ``output``, each min, p50, mean, p95, max as far as
        known: without records only the mean.
    """
    found = {}
    for key, results in loads.items():
        variant, workload = key
        paths = sorted(folder.glob(f"runs/{variant}/{workload}/session*/requests.jsonl.gz"))
        both = _from_records(paths)
        found[key] = both if both else _means(results)
    return found


def _from_records(paths: Sequence[Path]) -> dict[str, dict[str, float]]:
    inputs, outputs = [], []
    for path in paths:
        try:
            table = read_requests(path)
        except RecordError:
            return {}
        done = table[table["ok"]]
        inputs.append(done["input_tokens"].to_numpy(float))
        outputs.append(done["output_tokens"].to_numpy(float))
    if not inputs or not sum(map(len, inputs)):
        return {}
    return {
        name: spread(np.concatenate(values))
        for name, values in (("input", inputs), ("output", outputs))
    }


def spread(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> dict[str, float]:
    """Return min, p50, mean, p95 and max of token counts, unknown ones left out."""
    known = values[~np.isnan(values)]
    if not len(known):
        return {}
    return {
        "min": float(known.min()),
        "p50": float(np.quantile(known, 0.5)),
        "mean": float(known.mean()),
        "p95": float(np.quantile(known, 0.95)),
        "max": float(known.max()),
    }


def _means(results: Sequence[LoadResult]) -> dict[str, dict[str, float]]:
    points = [point for load in results for point in load.points if point.completed]
    completed = sum(point.completed for point in points)
    totals = {
        "input": sum(point.input_tokens for point in points),
        "output": sum(point.output_tokens for point in points),
    }
    return {n: {"mean": total / completed} for n, total in totals.items() if completed and total}
