"""Asks one variant the probes, on a fresh server."""

from __future__ import annotations

from pathlib import Path

from scripts.lib.base.console import Console
from scripts.lib.base.files import sha256_of, write_json
from scripts.lib.jobs.serving import ServedVariant, StartFailed, death_of, serve
from scripts.lib.quality.completions import write_completions
from scripts.lib.quality.probes import load_probes
from scripts.lib.quality.results import QualityResult
from scripts.lib.quality.run import run_probes, settings
from scripts.lib.study.checks import probe_files
from scripts.lib.study.models import Quality


def probe_quality(served: ServedVariant, quality: Quality, *, console: Console) -> QualityResult:
    """Serve the variant, ask every probe once and write ``quality.json``.

    A variant with random weights is not asked, and one whose server does not start cannot be:
    ``not_applicable`` says so.

    Raises:
        JobError: if the server was killed from outside; run it again.
    """
    items = load_probes(quality.probes, served.project)
    if served.random_weights:
        result = _without(served, quality, "its weights are random (dummy): nothing to judge")
        write_json(served.folder / "quality.json", result)
        return result
    try:
        with serve(served, console) as serving:
            console.say(f"asking {len(items)} probes")
            results, records = run_probes(serving.url, serving.model, items, quality)
            asked = [
                {**record, "messages": item.messages}
                for item, record in zip(items, records, strict=True)
            ]
            write_completions(served.folder / "completions.jsonl.gz", asked)
            if not serving.alive:
                failure = death_of(serving, served)
                result = _without(served, quality, f"the server died: {failure.line}")
            else:
                result = _without(served, quality, None).model_copy(update={"items": results})
                passed = sum(item.passed is True for item in results)
                console.say(f"{passed} of {len(results)} passed")
    except StartFailed as error:
        console.say(f"the server did not start: {error}")
        result = _without(served, quality, f"its server did not start ({error.failure.kind})")
    write_json(served.folder / "quality.json", result)
    return result


def clear_folder(folder: Path) -> None:
    """Remove the records of a former, perhaps interrupted, run."""
    for name in ("quality.json", "completions.jsonl.gz", "startup.json", "server.log"):
        (folder / name).unlink(missing_ok=True)


def _without(served: ServedVariant, quality: Quality, reason: str | None) -> QualityResult:
    files = probe_files(quality.probes, served.project)
    return QualityResult(
        variant=served.name,
        items=[],
        probe_files={str(path): sha256_of(served.project / path) for path in files},
        settings={**settings(quality), "concurrency": quality.concurrency},
        not_applicable=reason,
    )
