"""Asks one variant the probes, on a fresh server."""

from __future__ import annotations

from pathlib import Path

from scripts.lib.base.console import Console
from scripts.lib.base.files import sha256_of, write_json
from scripts.lib.jobs.serving import ServedVariant, StartFailed, death_of, serve
from scripts.lib.quality.asking import Records, ask_probes, settings
from scripts.lib.quality.completions import write_completions
from scripts.lib.quality.probes import load_probes
from scripts.lib.quality.results import AskedProbes
from scripts.lib.study.checks import probe_files
from scripts.lib.study.models import Quality


def probe_quality(served: ServedVariant, quality: Quality, *, console: Console) -> AskedProbes:
    """Serve the variant, ask every probe once, write ``completions.jsonl.gz`` and ``asked.json``.

    A variant with random weights is not asked, and one whose server does not start cannot be:
    ``not_applicable`` says so, and there are no completions.

    Raises:
        JobError: if the server was killed from outside; run it again.
    """
    records, reason = _ask(served, quality, console)
    write_completions(served.folder / "completions.jsonl.gz", records)
    files = probe_files(quality.probes, served.project)
    asked = AskedProbes(
        variant=served.name,
        probe_files={str(path): sha256_of(served.project / path) for path in files},
        settings={
            **settings(quality),
            "max_tokens": quality.max_tokens,
            "concurrency": quality.concurrency,
        },
        not_applicable=reason,
    )
    write_json(served.folder / "asked.json", asked)
    return asked


def _ask(served: ServedVariant, quality: Quality, console: Console) -> tuple[Records, str | None]:
    """Return what was answered, and why that is no measure of quality, if it is none."""
    if served.random_weights:
        return [], "its weights are random (dummy): nothing to judge"
    items = load_probes(quality.probes, served.project)
    try:
        with serve(served, console) as serving:
            console.say(f"asking {len(items)} probes")
            records = ask_probes(serving.url, serving.model, items, quality)
            if not serving.alive:
                return records, f"the server died: {death_of(serving, served).line}"
    except StartFailed as error:
        console.say(f"the server did not start: {error}")
        return [], f"its server did not start ({error.failure.kind})"
    failed = sum("error" in record for record in records)
    console.say(f"{len(records) - failed} of {len(records)} probes answered")
    return records, None


def clear_folder(folder: Path) -> None:
    """Remove the records of a former, perhaps interrupted, run."""
    for name in ("asked.json", "completions.jsonl.gz", "startup.json", "server.log"):
        (folder / name).unlink(missing_ok=True)
