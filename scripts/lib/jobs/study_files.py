"""What is wrong in the files of a study, before a job reads them hours later."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from scripts.lib.base.again import measure_again
from scripts.lib.base.files import read_json
from scripts.lib.load.prompt_files import check_prompt_file
from scripts.lib.load.samples import DatasetError
from scripts.lib.quality.probes import read_probe_files
from scripts.lib.study.checks import probe_files
from scripts.lib.study.models import Quality, Study
from scripts.lib.study.raw import Raw, section, sources

MOST = 5
"""Problems that are told of one place; the others are likely the same."""


def find_file_problems(raw: Raw, project: Path) -> Iterator[str]:
    """Yield what is wrong in probe files, prompt files and calibration texts.

    Files that are not there are the study's own problems.
    """
    yield from _probes(raw, project)
    for name, workload in section(raw, "workloads").items():
        dataset = workload.get("dataset")
        for kind in ("sharegpt", "jsonl", "trace"):
            if isinstance(dataset, dict) and isinstance(dataset.get(kind), str):
                endpoint = str(workload.get("endpoint", "completions"))
                where = f"workloads.{name}.dataset.{kind}"
                yield from _prompts(where, kind, dataset[kind], endpoint, project)
    for name, quantize in sources(raw, "quantize").items():
        if isinstance(quantize.get("calibration"), str):
            where = f"checkpoints.{name}.quantize.calibration"
            yield from _prompts(where, "sharegpt", quantize["calibration"], "chat", project)


def find_lost_records(study: Study, results: Path) -> Iterator[str]:
    """Yield the raw records of the study's measurements that are not there any more.

    Snakemake does not miss them while the report is there. Whether those that are there are
    whole is checked when they are read.
    """
    for path in sorted(results.glob("runs/*/*/session*/load.json")):
        variant, workload, session = path.parts[-4:-1]
        number = session.removeprefix("session")
        if not (number.isdigit() and study.measures(variant, workload, int(number))):
            continue
        for name in _records_of(path):
            if not path.with_name(name).is_file():
                yield f"{path.with_name(name)} is missing; {measure_again(path.parent)}"


def _records_of(path: Path) -> list[str]:
    """Return the records that a load.json noted; a damaged one is said where it is read."""
    try:
        noted = read_json(path).get("records")
    except (AttributeError, OSError, ValueError):
        return []
    return list(noted) if isinstance(noted, dict) else []


def _probes(raw: Raw, project: Path) -> Iterator[str]:
    quality = raw.get("quality", {})
    if not isinstance(quality, dict):
        return
    patterns = quality.get("probes", Quality().probes)
    try:
        files = probe_files([p for p in patterns if isinstance(p, str)], project)
    except (OSError, TypeError, ValueError):  # no patterns at all: said elsewhere
        return
    _, problems = read_probe_files(files, project)
    for problem in problems[:MOST]:
        yield f"quality.probes: {problem}"
    if len(problems) > MOST:
        yield f"quality.probes: {len(problems) - MOST} more problems in these files"


def _prompts(where: str, kind: str, name: str, endpoint: str, project: Path) -> Iterator[str]:
    try:
        if (project / name).is_file():
            check_prompt_file(kind, project / name, endpoint)
    except DatasetError as error:
        yield f"{where}: {str(error).replace(str(project / name), name, 1)}"
    except (OSError, ValueError):  # no path at all: said elsewhere
        return
