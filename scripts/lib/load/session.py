"""One workload against one server: warm-up, points, repetitions, boundary search."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tokenizers import Tokenizer

from scripts.lib.load import limits
from scripts.lib.load.bodies import base_url, body_of, target_of
from scripts.lib.load.datasets import describe, open_dataset
from scripts.lib.load.points import (
    FORMULAS,
    Level,
    Sent,
    build_point,
    in_words,
    to_requests,
)
from scripts.lib.load.processes import ClientProcesses, processes_needed, usable_cores
from scripts.lib.load.progress import Progress
from scripts.lib.load.raw_records import RawRecords
from scripts.lib.load.results import LoadResult, Point
from scripts.lib.load.samples import Sample, Samples
from scripts.lib.load.schedule import (
    default_warmup,
    expected_streams,
    most_requests,
    offsets_of,
    planned_levels,
    requests_of,
    rotated,
    warmup_concurrency,
)
from scripts.lib.load.search import BoundarySearch, KvUsagePeak
from scripts.lib.load.server_calls import reset_prefix_cache
from scripts.lib.load.server_view import requests_counted, server_view
from scripts.lib.load.tokenizers import load_tokenizer
from scripts.lib.load.wire import Assignment, Finished
from scripts.lib.load.worker import peak_memory_mib
from scripts.lib.study.models import Slo, SloSearch, Workload

Scrape = Mapping[str, object]
ScrapeCall = Callable[[], object]

_EVERYTHING = 10**9


@dataclass
class _Collected:
    """What a running session has so far."""

    points: list[Point] = field(default_factory=list)
    most_asked: int = 0
    used: dict[int, Sample] = field(default_factory=dict)
    reset_problem: str | None = None
    fresh_from: int = 0


class LoadSession:
    """Measures a workload; ``prepare`` may run while the server is still loading.

    Args:
        workload: Data set, levels, decoding.
        model: The served model's name.
        tokenizer: A checkpoint folder or its ``tokenizer.json``.
        project: Relative file names of the workload start here.
        output: Folder of ``requests.jsonl.gz`` and ``itl.npz``.
        slo: Limits that the boundary search judges by.
        slo_search: Add points between the last pass and the first fail.
        progress: Who is told what happens.
        origin: The session clock's zero (``time.monotonic``), to share it with samplers.
    """

    def __init__(
        self,
        workload: Workload,
        *,
        model: str,
        tokenizer: Path,
        project: Path,
        output: Path,
        progress: Progress,
        slo: Slo | None = None,
        slo_search: SloSearch | None = None,
        origin: float | None = None,
    ) -> None:
        self._workload = workload
        self._model = model
        self._tokenizer_path = tokenizer
        self._project = project
        self._output = output
        self._progress = progress
        self._search = (
            BoundarySearch(slo, slo_search) if slo and slo_search and workload.concurrency else None
        )
        self.origin_s = time.monotonic() if origin is None else origin
        self.origin_unix_s = time.time() - (time.monotonic() - self.origin_s)
        self._tokenizer: Tokenizer | None = None
        self._samples: Samples | None = None
        self._bodies: dict[int, bytes] = {}
        self._clients: ClientProcesses | None = None
        self._now = _Collected()

    def prepare(self) -> None:
        """Do what needs no server: tokenizer, sampling, request bodies, client processes.

        Raises:
            DatasetError: The tokenizer or the data set cannot be used.
        """
        if self._samples is not None:
            return
        workload = self._workload
        streams = expected_streams(workload)
        pace = limits.EXPECTED_TOKENS_PER_S_PER_STREAM
        count = processes_needed(streams, streams * pace, usable_cores())
        self._clients = ClientProcesses(count)
        self._progress.state(f"preparing the prompts; {count} client process(es)")
        self._tokenizer = load_tokenizer(self._tokenizer_path)
        self._samples = open_dataset(workload, self._tokenizer, self._project)
        wanted = most_requests(workload)
        if wanted is None:
            self._all_of_trace()
        else:
            for sample in self._samples.take(0, self._reserved()):
                self._body(sample)

    def run(
        self,
        url: str,
        *,
        scrape: ScrapeCall | None = None,
        kv_usage_peak: KvUsagePeak = lambda *_: None,
    ) -> LoadResult:
        """Measure everything and return ``load.json``; raw records go into ``output``.

        Args:
            url: The server's address, with or without ``/v1``.
            scrape: Reads ``/metrics`` (a mapping or model with the keys of ``read_metrics``);
                None, or a call that returns None or raises: the server has none.
            kv_usage_peak: What was sampled of the KV cache, for a search under ``kv_usage_max``.
        """
        self.prepare()
        url = base_url(url)
        warmup = self._warm_up(url)
        with RawRecords(self._output, self.origin_s) as records:
            levels = planned_levels(self._workload)
            for repetition in range(1, self._workload.repetitions + 1):
                for level in rotated(levels, repetition):
                    self._measure(url, level, scrape, records)
            self._search_boundary(url, scrape, kv_usage_peak, records)
        assert self._samples is not None
        return LoadResult(
            points=self._now.points,
            model=self._model,
            origin_unix_s=self.origin_unix_s,
            dataset=describe(self._samples, list(self._now.used.values()), self._now.most_asked),
            warmup=warmup,
            formulas=FORMULAS,
        )

    def close(self) -> None:
        """End the client processes; safe at any time, also twice."""
        if self._clients is not None:
            self._clients.close()
            self._clients = None
        self._progress.finish()

    # Prompts

    def _all_of_trace(self) -> list[Sample]:
        assert self._samples is not None
        while not self._samples.exhausted:
            self._samples.take(len(self._samples.drawn), 1)
        return self._samples.drawn

    def _body(self, sample: Sample) -> bytes:
        body = self._bodies.get(id(sample))
        if body is None:
            body = body_of(sample, self._workload, self._model)
            self._bodies[id(sample)] = body  # samples live as long as the session
        return body

    def _prompts_for(self, level: Level) -> list[Sample]:
        """Return a point's prompts.

        The same ones for every point, so that levels and repetitions differ in nothing else;
        new ones as long as there are any if the engine may still hold the former in its cache.
        """
        assert self._samples is not None
        count = requests_of(self._workload, level)
        if count is None:
            return self._all_of_trace()
        if self._now.reset_problem is None or not self._now.points:
            return self._samples.take(0, count)
        start = max(self._now.fresh_from, self._reserved())
        self._now.fresh_from = start + count
        return self._samples.take(start, count)

    def _reserved(self) -> int:
        """Return how many samples the plan and the warm-up may use."""
        return (most_requests(self._workload) or 0) + default_warmup(self._workload)

    # Measuring

    def _warm_up(self, url: str) -> dict[str, object]:
        count = default_warmup(self._workload)
        if not count:
            return {"requests": 0, "failed": 0, "duration_s": 0.0}
        assert self._samples is not None
        start = most_requests(self._workload) or 0
        samples = self._samples.take(start, count)
        concurrency = min(count, warmup_concurrency(self._workload))
        self._progress.start(f"warm-up, {count} requests", count)
        begin = time.monotonic()
        sent, _ = self._play(url, samples, concurrency, None)
        failed = [item.answer.error for item in sent if not item.answer.ok]
        seconds = time.monotonic() - begin
        self._progress.finish(
            f"warm-up: {count} requests in {seconds:.1f} s"
            + (f", {len(failed)} failed ({failed[0]})" if failed else "")
        )
        return {
            "requests": count,
            "concurrency": concurrency,
            "failed": len(failed),
            "first_error": failed[0] if failed else None,
            "duration_s": round(seconds, 3),
            "start_s": round(begin - self.origin_s, 3),
        }

    def _measure(
        self, url: str, level: Level, scrape: ScrapeCall | None, records: RawRecords
    ) -> Point:
        if self._workload.reset_prefix_cache:
            self._now.reset_problem = reset_prefix_cache(url)
        samples = self._prompts_for(level)
        offsets = offsets_of(self._workload, level, samples)
        before = _read(scrape)
        label = f"{level.words}, repetition {level.repetition}"
        self._progress.start(label, len(samples), self._workload.point_time_limit_s)
        sent, finished = self._play(
            url,
            samples,
            level.max_concurrency or 0 if offsets is not None else level.concurrency or 1,
            offsets,
        )
        if before is not None:
            time.sleep(limits.SETTLE_S)
        after = _read(scrape)
        point = self._point(level, sent, finished, before, after)
        cut = [self._cut(sent, samples)] if len(sent) < len(samples) else []
        point = point.model_copy(update={"warnings": [*point.warnings, *cut]})
        self._keep(level, point, sent, samples, records)
        self._progress.finish("; ".join([f"{label}: {in_words(point)}", *cut]))
        return point

    def _point(
        self,
        level: Level,
        sent: Sequence[Sent],
        finished: Sequence[Finished],
        before: Scrape | None,
        after: Scrape | None,
    ) -> Point:
        both = before is not None and after is not None
        point = build_point(
            level,
            sent,
            finished,
            origin_s=self.origin_s,
            server=server_view(before, after) if both and before and after else None,
            server_requests=requests_counted(before, after) if before and after else None,
            own_memory_mib=peak_memory_mib(),
        )
        extra = self._cache_warnings(point)
        return point.model_copy(update={"warnings": [*point.warnings, *extra]}) if extra else point

    def _cut(self, sent: Sequence[Sent], samples: Sequence[Sample]) -> str:
        limit = self._workload.point_time_limit_s
        return (
            f"cut short: {len(sent)} of {len(samples)} requests were sent in the "
            f"{limit or 0:g} s of point_time_limit_s"
        )

    def _cache_warnings(self, point: Point) -> list[str]:
        hits = point.server.prefix_cache_hits if point.server else None
        queries = point.server.prefix_cache_queries if point.server else None
        if self._workload.dataset.prefix is not None or not self._workload.reset_prefix_cache:
            return []
        if self._now.reset_problem is not None and hits is None:
            return [f"{self._now.reset_problem}; whether prompts hit the cache is unknown"]
        if hits and queries:
            share = hits / queries
            cause = self._now.reset_problem or "prompts of this point share beginnings"
            if share > limits.PREFIX_HIT_SHARE:
                return [f"{share:.1%} of the prompt tokens came from the prefix cache: {cause}"]
        return []

    def _keep(
        self,
        level: Level,
        point: Point,
        sent: Sequence[Sent],
        samples: Sequence[Sample],
        records: RawRecords,
    ) -> None:
        now = self._now
        records.add(len(now.points), sent)
        now.points.append(point)
        now.most_asked = max(now.most_asked, len(samples))
        now.used.update({id(sample): sample for sample in samples})
        if self._search is not None and level.concurrency is not None:
            requests = to_requests(sent, self.origin_s, open_loop=False)
            self._search.remember(level.concurrency, point, requests)

    def _search_boundary(
        self,
        url: str,
        scrape: ScrapeCall | None,
        kv_usage_peak: KvUsagePeak,
        records: RawRecords,
    ) -> None:
        if self._search is None:
            return
        while (concurrency := self._search.next_level(kv_usage_peak)) is not None:
            self._progress.state(f"looking for the SLO's boundary: concurrency {concurrency}")
            level = Level(
                len(self._workload.concurrency) + self._search.tried - 1,
                1,
                concurrency=concurrency,
                origin="slo_search",
            )
            for repetition in range(1, self._workload.repetitions + 1):
                self._measure(url, replace(level, repetition=repetition), scrape, records)

    def _play(
        self,
        url: str,
        samples: Sequence[Sample],
        slots: int,
        offsets: Sequence[float] | None,
    ) -> tuple[list[Sent], list[Finished]]:
        """Send ``samples`` over all client processes; the answers in order of index."""
        assert self._clients is not None
        target = target_of(url, self._workload)
        count = min(len(self._clients), max(1, len(samples)), slots or _EVERYTHING)
        parts = []
        for process in range(count):
            indices = list(range(process, len(samples), count))
            parts.append(
                Assignment(
                    target=target,
                    indices=indices,
                    bodies=[self._body(samples[index]) for index in indices],
                    slots=_share(slots, count, process),
                    offsets_s=None if offsets is None else [offsets[i] for i in indices],
                    timeout_s=self._workload.request_timeout_s,
                    send_for_s=self._workload.point_time_limit_s,
                )
            )
        _, finished = self._clients.play(parts, self._progress.update)
        answers = sorted((a for part in finished for a in part.answers), key=lambda a: a.index)
        return [Sent(a, samples[a.index].input_tokens) for a in answers], finished


def _share(total: int, parts: int, part: int) -> int:
    """Split ``total`` as evenly as whole numbers allow."""
    return total // parts + (part < total % parts)


def _read(scrape: ScrapeCall | None) -> Scrape | None:
    """Scrape /metrics; None where the server has none, or what it has is not readable."""
    if scrape is None:
        return None
    try:
        found = scrape()
    except Exception:  # the caller's own; a point without the server's view is still a point
        return None
    dump = getattr(found, "model_dump", None)
    value = dump() if dump is not None else found
    return value if isinstance(value, Mapping) else None
