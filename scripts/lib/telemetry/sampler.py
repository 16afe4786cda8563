"""Samples the engine's ``/metrics`` and the GPUs once a second while a load runs."""

from __future__ import annotations

import csv
import gzip
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

import httpx
import pynvml

from scripts.lib.telemetry.metrics_text import Scrape, parse_metrics
from scripts.lib.telemetry.series import GPU_COLUMNS, METRIC_COLUMNS

Row = Sequence[object]


class Sampler:
    """Writes a row per second and source, and a last one, on ``origin``'s ``time.monotonic``.

    Use it as a context manager. A value that a source does not give is an empty cell.
    """

    def __init__(self, url: str, folder: Path, *, origin: float, gpus: Sequence[int]) -> None:
        self._url = url
        self._origin = origin
        self._gpus = list(gpus)
        self._folder = folder
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self._kv_usage: list[tuple[float, float]] = []

    def kv_usage_peak(self, start_s: float, end_s: float) -> float | None:
        """Return the highest KV-cache usage sampled between two times of the session, 0 to 1.

        The same samples as in ``metrics.csv.gz``. None: none was taken, or none has it.
        """
        inside = [usage for t_s, usage in self._kv_usage if start_s <= t_s <= end_s]
        return max(inside, default=None)

    def __enter__(self) -> Sampler:
        self._start(self._folder / "metrics.csv.gz", METRIC_COLUMNS, self._metrics_rows)
        if self._gpus:
            pynvml.nvmlInit()
            self._start(self._folder / "gpu.csv.gz", GPU_COLUMNS, self._gpu_rows)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._gpus:
            pynvml.nvmlShutdown()

    def _start(
        self, path: Path, columns: Sequence[str], rows: Callable[[float], list[Row]]
    ) -> None:
        thread = threading.Thread(target=self._sample, args=(path, columns, rows), daemon=True)
        thread.start()
        self._threads.append(thread)

    def _sample(
        self, path: Path, columns: Sequence[str], rows: Callable[[float], list[Row]]
    ) -> None:
        with gzip.open(path, "wt", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            due = time.monotonic()
            while not self._stop.is_set():
                writer.writerows(rows(round(time.monotonic() - self._origin, 4)))
                due = max(due + 1, time.monotonic())
                self._stop.wait(due - time.monotonic())
            # Counters grow until the last load point ends: its window needs a sample behind it.
            writer.writerows(rows(round(time.monotonic() - self._origin, 4)))

    def _metrics_rows(self, t_s: float) -> list[Row]:
        scrape = scrape_metrics(self._url)
        if scrape is None:
            return []
        if scrape.kv_cache_usage is not None:
            self._kv_usage.append((t_s, scrape.kv_cache_usage))
        queue = scrape.histograms.queue_time
        return [
            (
                t_s,
                scrape.running,
                scrape.waiting,
                scrape.kv_cache_usage,
                scrape.preemptions,
                scrape.prompt_tokens,
                scrape.generation_tokens,
                scrape.prefix_cache_queries,
                scrape.prefix_cache_hits,
                queue.sum_s if queue else None,
                queue.count if queue else None,
                scrape.spec_decode_accepted_tokens,
                scrape.spec_decode_draft_tokens,
            )
        ]

    def _gpu_rows(self, t_s: float) -> list[Row]:
        return [(t_s, gpu, *_gpu_values(gpu)) for gpu in self._gpus]


def scrape_metrics(url: str) -> Scrape | None:
    """Read ``/metrics`` of the server at ``url``; None if it gives none that can be read."""
    try:
        answer = httpx.get(f"{url}/metrics", timeout=5, trust_env=False)
        return parse_metrics(answer.text) if answer.is_success else None
    except (httpx.HTTPError, ValueError):
        return None


def _gpu_values(gpu: int) -> list[object]:
    handle = pynvml.nvmlDeviceGetHandleByIndex(gpu)
    return [
        _value(lambda: pynvml.nvmlDeviceGetMemoryInfo(handle).used // 2**20),
        _value(lambda: pynvml.nvmlDeviceGetUtilizationRates(handle).gpu),
        _value(lambda: pynvml.nvmlDeviceGetPowerUsage(handle) / 1000),
        _value(lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
        _value(lambda: hex(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle))),
        _value(lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000),
    ]


def _value(read: Callable[[], object]) -> object:
    """Return what NVML says, or None where this GPU does not say it."""
    try:
        return read()
    except (pynvml.NVMLError, AttributeError):
        return None
