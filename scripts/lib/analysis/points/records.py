"""Reads the raw records of a study's runs, checked on the way in."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import ValidationError

from scripts.lib.analysis.points.wholeness import (
    RecordError,
    check_counts,
    check_files,
)
from scripts.lib.base.again import measure_again
from scripts.lib.base.files import read_json
from scripts.lib.base.model_files import first_problem
from scripts.lib.engine.startup import Failure, Startup
from scripts.lib.load.results import LoadResult
from scripts.lib.telemetry.series import GPU_COLUMNS, METRIC_COLUMNS

NUMBERS = (
    "point",
    "index",
    "intended_s",
    "sent_s",
    "first_token_s",
    "last_token_s",
    "input_tokens",
    "output_tokens",
    "chunks",
)
"""The numeric request fields the tables need; error texts stay in the file."""

CHUNK = 20_000
"""Lines decoded at a time: one call of the JSON decoder each, and little memory."""


@dataclass(frozen=True)
class Run:
    """One workload against one server: everything that lies in one session's folder."""

    folder: Path
    variant: str
    workload: str
    session: int
    load: LoadResult
    requests: pd.DataFrame | None
    metrics: pd.DataFrame | None
    gpu: pd.DataFrame | None
    startup: Startup | None

    @property
    def source(self) -> str:
        """The path of load.json inside the study's folder."""
        return f"runs/{self.variant}/{self.workload}/{self.folder.name}/load.json"

    @property
    def failure(self) -> Failure | None:
        """Why the server did not start, or died; None if it served to the end."""
        return self.load.failure


def find_runs(
    study_folder: Path,
    wanted: Callable[[str, str, int], bool] = lambda _v, _w, _session: True,
    scrubbed: Collection[str] = (),
) -> Iterator[Run]:
    """Yield the runs of a study one by one, in the order of variant, workload and session.

    One run is in memory at a time, so a study may be larger than the machine.

    Args:
        study_folder: ``results/<study>``.
        wanted: Whether to read the run of a variant, a workload and a session.
        scrubbed: Files, below ``study_folder``, that an archive holds without machine paths: they
            may differ from what was measured.

    Raises:
        RecordError: if a file holds what no run of ours writes.
    """
    for path in sorted(study_folder.glob("runs/*/*/session*/load.json"), key=_order):
        variant, workload, session = _order(path)
        if wanted(variant, workload, session):
            yield load_run(path.parent, scrubbed)


def _order(path: Path) -> tuple[str, str, int]:
    variant, workload, session = path.parts[-4:-1]
    return variant, workload, _session_number(session)


def _session_number(name: str) -> int:
    digits = name.removeprefix("session")
    if not digits.isdigit():
        raise RecordError(f'{name}: a session folder is named "session" and a number')
    return int(digits)


def load_run(folder: Path, scrubbed: Collection[str] = ()) -> Run:
    """Read one session's folder ``runs/<variant>/<workload>/session<k>``.

    Raises:
        RecordError: if load.json is missing, or any file is malformed or not as it was measured.
    """
    load = _read_load(folder / "load.json")
    check_files(folder, load, scrubbed)
    path = folder / "requests.jsonl.gz"
    requests = read_requests(path, len(load.points)) if path.is_file() else None
    check_counts(path, load, requests)
    return Run(
        folder=folder,
        variant=folder.parts[-3],
        workload=folder.parts[-2],
        session=_session_number(folder.name),
        load=load,
        requests=requests,
        metrics=_read_series(folder / "metrics.csv.gz", METRIC_COLUMNS),
        gpu=_read_series(folder / "gpu.csv.gz", GPU_COLUMNS),
        startup=_read_startup(folder / "startup.json"),
    )


def _read_load(path: Path) -> LoadResult:
    try:
        raw = read_json(path)
        if isinstance(raw, dict) and raw.get("failure") is not None:
            raw = {"points": [], "model": "", "origin_unix_s": None, **raw}
        return LoadResult.model_validate(raw)
    except (OSError, ValueError) as error:
        raise RecordError(f"{path}: {_problem(error)}") from None


def _problem(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return f"{first_problem(error)}; run the measurement again, or import it again"
    return str(error)


def _read_startup(path: Path) -> Startup | None:
    if not path.is_file():
        return None
    try:
        return Startup.model_validate(read_json(path))
    except ValueError as error:
        raise RecordError(f"{path}: {_problem(error)}") from None


def read_requests(path: Path, points: int | None = None) -> pd.DataFrame:
    """Read ``requests.jsonl.gz``.

    Args:
        path: One JSON object a line, with the keys of ``REQUEST_FIELDS``.
        points: How many points load.json lists; None: not checked.

    Returns:
        One row a request: the columns of ``NUMBERS`` as float64 (``point`` as int32; NaN for
        null) and ``ok`` as bool.

    Raises:
        RecordError: naming the line.
    """
    parts: list[pd.DataFrame] = []
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            while lines := list(islice(file, CHUNK)):
                parts.append(_decode(lines, path, len(parts) * CHUNK))
    except (EOFError, gzip.BadGzipFile, UnicodeDecodeError) as error:
        again = measure_again(path.parent)
        raise RecordError(f"{path}: cut off or not gzip ({error}); {again}") from None
    table = pd.concat(parts, ignore_index=True) if parts else _columns([])
    _check_requests(table, path, points)
    return table


def _decode(lines: list[str], path: Path, before: int) -> pd.DataFrame:
    try:
        return _columns(json.loads("[" + ",".join(lines) + "]"))
    except (ValueError, KeyError, TypeError):
        for number, line in enumerate(lines, before + 1):
            try:
                _columns([json.loads(line)])
            except (ValueError, KeyError, TypeError) as error:
                raise RecordError(f"{path}: line {number}: not a request ({error!r})") from None
        raise


def _columns(rows: list[dict[str, Any]]) -> pd.DataFrame:
    data: dict[str, Any] = {
        name: np.array([row[name] for row in rows], dtype=np.float64) for name in NUMBERS
    }
    data["point"] = data["point"].astype(np.int32)
    data["ok"] = np.array([row["ok"] is True for row in rows], dtype=bool)
    return pd.DataFrame(data)


def _check_requests(table: pd.DataFrame, path: Path, points: int | None) -> None:
    """Refuse records that contradict themselves; times may not run backwards."""
    if points is not None and len(table) and not table["point"].between(0, points - 1).all():
        raise RecordError(f"{path}: a request names a point that load.json does not list")
    done = table[table["ok"]]
    for column in ("sent_s", "first_token_s", "last_token_s", "output_tokens"):
        if done[column].isna().any():
            raise RecordError(f"{path}: a completed request has no {column}")
    backwards = (done["first_token_s"] < done["sent_s"]) | (
        done["last_token_s"] < done["first_token_s"]
    )
    if backwards.any():
        row = done[backwards].iloc[0]
        raise RecordError(
            f"{path}: request {row['index']:.0f} of point {row['point']:.0f} ends before it "
            "begins; its clock cannot be trusted"
        )


def _read_series(path: Path, columns: tuple[str, ...]) -> pd.DataFrame | None:
    """Read a time series; a column this engine or GPU does not report is all NaN."""
    if not path.is_file():
        return None
    try:
        table = pd.read_csv(path)
    except (ValueError, OSError, EOFError) as error:
        raise RecordError(f"{path}: not a table ({error})") from None
    if "t_s" not in table.columns:
        raise RecordError(f"{path}: has no column t_s (seconds on the session's clock)")
    table = table.reindex(columns=list(columns))
    for column in columns:
        if column != "throttle_reasons":
            table[column] = pd.to_numeric(table[column], errors="coerce")
    return table.sort_values("t_s", kind="stable", ignore_index=True)
