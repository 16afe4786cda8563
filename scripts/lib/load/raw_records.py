"""Writes the raw records of a session: ``requests.jsonl.gz`` and ``itl.npz``."""

from __future__ import annotations

import gzip
import json
from array import array
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np

from scripts.lib.base.files import sha256_of
from scripts.lib.load.points import Sent, input_tokens_of
from scripts.lib.load.results import RECORD_FILES, LoadResult


def note_records(result: LoadResult, folder: Path) -> LoadResult:
    """Return the result with the SHA-256 of each raw record in ``folder``, now that all are there.

    Whoever reads them later can tell a record that is missing, cut off or edited.
    """
    paths = [folder / name for name in RECORD_FILES if (folder / name).is_file()]
    return result.model_copy(update={"records": {path.name: sha256_of(path) for path in paths}})


def clear_records(folder: Path) -> None:
    """Remove ``load.json`` and the raw records of a former run: none may pass for the new one's."""
    for name in ("load.json", *RECORD_FILES):
        (folder / name).unlink(missing_ok=True)


class RawRecords:
    """Appends points as they are measured; use as a context manager.

    ``requests.jsonl.gz``: one line a request with the keys of ``REQUEST_FIELDS``. ``itl.npz``:
    ``times_s`` (all token events of all requests, session clock) and ``offsets`` (where each
    line's events begin; one more than there are lines).
    """

    def __init__(self, folder: Path, origin_s: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._origin_s = origin_s
        self._file = gzip.open(  # noqa: SIM115 - closed by __exit__
            folder / "requests.jsonl.gz", "wt", encoding="utf-8", compresslevel=5
        )
        self._times = array("d")
        self._offsets = array("q", [0])

    def __enter__(self) -> RawRecords:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
        times = np.frombuffer(self._times, dtype=np.float64) if self._times else np.empty(0)
        np.savez_compressed(
            self._folder / "itl.npz",
            times_s=np.round(times - self._origin_s, 6),
            offsets=np.array(self._offsets, dtype=np.int64),
        )

    def add(self, point: int, sent: Sequence[Sent]) -> None:
        """Append the requests of the point with this index in load.json."""
        for item in sent:
            self._file.write(json.dumps(self._line(point, item)) + "\n")
            self._times.extend(item.answer.token_times)
            self._offsets.append(len(self._times))

    def _line(self, point: int, item: Sent) -> dict[str, object]:
        answer = item.answer
        times = answer.token_times
        return {
            "point": point,
            "index": answer.index,
            "intended_s": self._clock(answer.intended_s),
            "sent_s": self._clock(answer.sent_s),
            "first_token_s": self._clock(times[0]) if times else None,
            "last_token_s": self._clock(times[-1]) if times else None,
            "input_tokens": input_tokens_of(item),
            "output_tokens": answer.output_tokens,
            "chunks": len(times),
            "ok": answer.ok,
            "status": answer.status,
            "finish_reason": answer.finish_reason,
            "error": answer.error,
        }

    def _clock(self, monotonic_s: float) -> float:
        return round(monotonic_s - self._origin_s, 6)
