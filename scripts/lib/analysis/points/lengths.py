"""How long prompts and answers really were."""

from __future__ import annotations

import gzip
import re
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from scripts.lib.analysis.points.records import read_requests
from scripts.lib.analysis.points.wholeness import RecordError
from scripts.lib.analysis.statistics import Floats
from scripts.lib.base.counts import total
from scripts.lib.load.lengths import spread
from scripts.lib.load.results import LoadResult

RECORD = re.compile(
    rb'"input_tokens": (\d+), "output_tokens": (\d+), "chunks": \d+, "ok": (true|false)[,}]'
)
CHUNK_BYTES = 8 * 2**20


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
    try:
        found = [_two_columns(path) for path in paths]
    except (RecordError, OSError, EOFError):
        return {}
    if not sum(len(inputs) for inputs, _ in found):
        return {}
    inputs, outputs = (np.concatenate(columns) for columns in zip(*found, strict=True))
    return {"input": spread(inputs), "output": spread(outputs)}


def _two_columns(path: Path) -> tuple[Floats, Floats]:
    """Return input and output tokens of the completed requests.

    The two fields are picked out of the text, which is ten times as fast as parsing it; a file
    whose lines are not all written as ours are is parsed.
    """
    inputs, outputs = array("d"), array("d")
    with gzip.open(path, "rb") as file:
        while lines := file.readlines(CHUNK_BYTES):
            found = RECORD.findall(b"".join(lines))
            if len(found) != len(lines):
                return _parsed_columns(path)
            inputs.extend(float(a) for a, _, ok in found if ok == b"true")
            outputs.extend(float(b) for _, b, ok in found if ok == b"true")
    return np.array(inputs, dtype=np.float64), np.array(outputs, dtype=np.float64)


def _parsed_columns(path: Path) -> tuple[Floats, Floats]:
    table = read_requests(path)
    done = table[table["ok"]]
    return done["input_tokens"].to_numpy(float), done["output_tokens"].to_numpy(float)


def _means(results: Sequence[LoadResult]) -> dict[str, dict[str, float]]:
    points = [point for load in results for point in load.points if point.completed != 0]
    completed = total(point.completed for point in points)
    tokens = {
        "input": total(point.input_tokens for point in points),
        "output": total(point.output_tokens for point in points),
    }
    return {
        name: {"mean": count / completed}
        for name, count in tokens.items()
        if completed and count is not None
    }
