"""From a study's folder to all its tables, in one pass over the raw records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Literal

from scripts.lib.analysis.comparison.comparisons import compare, noise_floor
from scripts.lib.analysis.comparison.crossover import find_crossovers
from scripts.lib.analysis.comparison.quality_view import build_quality
from scripts.lib.analysis.ledger import Start, build_ledger
from scripts.lib.analysis.points.boundaries import find_boundaries
from scripts.lib.analysis.points.digest import Digest, digest_run
from scripts.lib.analysis.points.records import Run, find_runs
from scripts.lib.analysis.points.rows import rows_from_digests
from scripts.lib.analysis.points.timelines import build_timeline
from scripts.lib.analysis.points.wholeness import RecordError
from scripts.lib.analysis.stamps import stamp_of
from scripts.lib.analysis.summary import FailureRow, Timeline
from scripts.lib.analysis.tables import Analysis
from scripts.lib.base.again import ask_again
from scripts.lib.base.model_files import Model, read_model
from scripts.lib.engine.startup import Startup
from scripts.lib.plan.models import Plan, Verdict
from scripts.lib.quality.completions import read_lines
from scripts.lib.quality.results import QualityResult
from scripts.lib.study.models import Study


def analyse_study(study: Study, folder: Path, scrubbed: Collection[str] = ()) -> Analysis:
    """Return every table of a study.

    Runs of variants and workloads that the study no longer has are left alone.

    Args:
        study: The resolved study.
        folder: ``results/<study>``.
        scrubbed: Files in it that an archive holds without machine paths.

    Raises:
        RecordError: if a raw record is malformed, or not as it was measured.
        ModelError: if a plan, verdict, start or quality result is.
    """
    collected = _Collected()
    for run in find_runs(folder, study.measures, scrubbed):
        collected.add(study, run)
    verdicts = read_models(folder / "kernels", study.variants, Verdict)
    plans = read_models(folder / "plan", study.variants, Plan)
    stamps = {name: stamp_of(verdicts.get(name)) for name in study.variants}
    results = _quality_results(study, folder)
    for name in study.variants:
        collected.add_quality_start(folder, name)
    rows = rows_from_digests(study, collected.digests, stamps)
    return Analysis(
        points=rows,
        boundaries=find_boundaries(rows) if study.slo.limits_anything else [],
        comparisons=compare(study, collected.digests),
        crossovers=find_crossovers(study, collected.digests, plans),
        noise_floor=noise_floor(study, collected.digests),
        ledger=build_ledger(study, collected.starts, plans),
        quality=build_quality(study, results, stamps, read_prompts(folder)),
        timelines=collected.timelines,
        failures=collected.failures,
    )


class _Collected:
    """What one pass over the runs leaves behind; the raw records themselves are let go."""

    def __init__(self) -> None:
        self.digests: list[Digest] = []
        self.timelines: list[Timeline] = []
        self.starts: dict[str, list[Start]] = {}
        self.failures: list[FailureRow] = []

    def add(self, study: Study, run: Run) -> None:
        self.digests += digest_run(study, run)
        timeline = build_timeline(run)
        if timeline is not None:
            self.timelines.append(timeline)
        if run.startup is not None:
            self._add_start(run.variant, run.startup, run.source)
        failure = run.failure or (run.startup.failure if run.startup else None)
        if failure is not None:
            ready = run.startup is not None and run.startup.ready
            self._add_failure(run.variant, "load" if ready else "start", failure, run.source)

    def add_quality_start(self, folder: Path, variant: str) -> None:
        path = folder / "quality" / variant / "startup.json"
        if not path.is_file():
            return
        startup = read_model(path, Startup)
        source = str(path.relative_to(folder))
        self._add_start(variant, startup, source)
        if startup.failure is not None:
            self._add_failure(variant, "quality", startup.failure, source)

    def _add_start(self, variant: str, startup: Startup, source: str) -> None:
        self.starts.setdefault(variant, []).append(
            Start(startup, source.replace("load.json", "startup.json"))
        )

    def _add_failure(
        self,
        variant: str,
        stage: Literal["start", "load", "quality"],
        failure: object,
        source: str,
    ) -> None:
        """Note a failure once per variant, stage and kind: every session dies of the same."""
        row = FailureRow.model_validate(
            {"variant": variant, "stage": stage, "failure": failure, "source": source}
        )
        seen = {(f.variant, f.stage, f.failure.kind) for f in self.failures}
        if (variant, stage, row.failure.kind) not in seen:
            self.failures.append(row)


def _quality_results(study: Study, folder: Path) -> dict[str, QualityResult]:
    paths = {name: folder / "quality" / name / "quality.json" for name in study.variants}
    return {n: read_model(p, QualityResult) for n, p in paths.items() if p.is_file()}


def read_prompts(folder: Path) -> dict[str, str]:
    """Return the last user message of each probe item, where the completions hold messages."""
    prompts: dict[str, str] = {}
    for path in sorted(folder.glob("quality/*/completions.jsonl.gz")):
        try:
            records = [record for _, record in read_lines(path)]
        except ValueError as error:
            raise RecordError(f"{error}; {ask_again(path.parent)}") from None
        for record in records:
            for message in record.get("messages") or []:
                if message.get("role") == "user":
                    prompts[record["id"]] = str(message.get("content", ""))
    return prompts


def read_models(folder: Path, names: Iterable[str], model: type[Model]) -> Mapping[str, Model]:
    """Return ``folder/<name>.json`` of every name that has one."""
    paths = {name: folder / f"{name}.json" for name in names}
    return {name: read_model(path, model) for name, path in paths.items() if path.is_file()}
