"""One load measurement: one variant, one workload, one fresh server."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from scripts.lib.base.console import Console, JobError
from scripts.lib.base.files import write_json
from scripts.lib.engine.startup import Failure, Startup
from scripts.lib.jobs.attached import model_name
from scripts.lib.jobs.progress import JobProgress
from scripts.lib.jobs.serving import (
    ServedVariant,
    Serving,
    StartFailed,
    death_of,
    serve,
)
from scripts.lib.load.processes import ClientError
from scripts.lib.load.raw_records import clear_records, note_records
from scripts.lib.load.results import LoadResult
from scripts.lib.load.session import LoadSession
from scripts.lib.study.specs import WorkloadSpec
from scripts.lib.telemetry.sampler import Sampler, scrape_metrics

AfterStart = Callable[[Startup], Failure | None]


def measure_load(
    served: ServedVariant,
    spec: WorkloadSpec,
    *,
    session: int,
    console: Console,
    after_start: AfterStart,
) -> LoadResult:
    """Serve the variant, run the workload against it and write ``load.json``.

    A server that does not start, or a path that ``after_start`` refuses, is a result too:
    ``failure`` says why, and there are no points.

    Raises:
        JobError: if the run was interrupted from outside and should be repeated.
    """
    origin, origin_unix_s = time.monotonic(), time.time()
    loading = LoadSession(
        spec.workload,
        model=model_name(served.engine, served.name),
        tokenizer=served.model_folder,
        project=served.project,
        output=served.folder,
        slo=spec.slo,
        slo_search=spec.slo_search,
        progress=JobProgress(console),
        origin=origin,
    )
    with closing(loading):
        found = _serve_and_run(served, loading, origin, console, after_start)
    if isinstance(found, Failure):
        found = LoadResult(points=[], model=served.name, origin_unix_s=origin_unix_s, failure=found)
    result = found.model_copy(
        update={"variant": served.name, "workload": spec.name, "session": session}
    )
    result = note_records(result, served.folder)
    write_json(served.folder / "load.json", result)
    return result


def _serve_and_run(
    served: ServedVariant,
    loading: LoadSession,
    origin: float,
    console: Console,
    after_start: AfterStart,
) -> LoadResult | Failure:
    """Return what was measured, or why nothing was."""
    try:
        with serve(served, console, while_loading=lambda _: loading.prepare()) as serving:
            refused = after_start(serving.startup)
            if refused is None:
                return _run(serving, served, loading, origin)
            console.say(f"not measured: {refused.hint}")
            return refused
    except StartFailed as error:
        console.say(f"the server did not start: {error}")
        return error.failure
    except ClientError as error:
        raise JobError(f"{error}; run the same command again to go on") from error


def _run(
    serving: Serving, served: ServedVariant, loading: LoadSession, origin: float
) -> LoadResult:
    with Sampler(serving.url, served.folder, origin=origin, gpus=serving.gpus) as sampler:
        result = loading.run(
            serving.url,
            scrape=lambda: scrape_metrics(serving.url),
            kv_usage_peak=sampler.kv_usage_peak,
        )
    if not serving.alive:
        return result.model_copy(update={"failure": death_of(serving, served)})
    kind = "attached" if serving.server is None else "started"
    return result.model_copy(update={"url_kind": kind})


def clear_folder(folder: Path) -> None:
    """Remove the records of a former, perhaps interrupted, run."""
    clear_records(folder)
    for name in ("startup.json", "server.log"):
        (folder / name).unlink(missing_ok=True)
