"""Run one workload against a server that already runs; prints and writes load.json."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from scripts.lib.base.command_line import run_main
from scripts.lib.base.files import write_json
from scripts.lib.base.model_files import first_problem
from scripts.lib.load.bodies import base_url
from scripts.lib.load.processes import ClientError
from scripts.lib.load.progress import ConsoleProgress
from scripts.lib.load.raw_records import clear_records, note_records
from scripts.lib.load.results import LoadResult
from scripts.lib.load.samples import DatasetError
from scripts.lib.load.session import LoadSession
from scripts.lib.study.models import Slo, SloSearch, Workload
from scripts.lib.telemetry.sampler import Sampler, scrape_metrics


class SpecError(ValueError):
    """A workload spec that cannot be used, as a sentence."""


def read_spec(path: Path) -> tuple[Workload, Slo | None, SloSearch | None]:
    """Read a workload, plain or as under ``results/<study>/specs/workloads/``.

    Raises:
        SpecError: The file is missing, not JSON, or has a wrong key.
    """
    try:
        spec = json.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise SpecError(f"{path}: cannot be read ({problem.strerror})") from problem
    except ValueError as problem:
        raise SpecError(f"{path}: not JSON ({problem})") from problem
    if not isinstance(spec, dict):
        raise SpecError(f"{path}: not a JSON object")
    wrapped = isinstance(spec.get("workload"), dict)
    try:
        workload = Workload.model_validate(spec["workload"] if wrapped else spec)
        slo = Slo.model_validate(spec["slo"]) if wrapped and spec.get("slo") else None
        found = spec.get("slo_search") if wrapped else None
        search = SloSearch.model_validate(found) if found else None
    except ValidationError as problem:
        given = problem.errors()[0]["input"]
        raise SpecError(f"{path}: {first_problem(problem)} (got {given!r})") from problem
    if not workload.points:
        raise SpecError(f"{path}: no load points; give concurrency, rate, ramp or a trace")
    return workload, slo, search


def measure(options: argparse.Namespace) -> LoadResult:
    """Run the workload and write ``load.json`` with the raw records beside it."""
    workload, slo, search = read_spec(options.workload)
    session = LoadSession(
        workload,
        model=options.model,
        tokenizer=options.tokenizer,
        project=Path.cwd(),
        output=options.output,
        slo=slo,
        slo_search=search,
        progress=ConsoleProgress(),
    )
    url = base_url(options.url)
    try:
        session.prepare()
        clear_records(options.output)
        scrape = partial(scrape_metrics, url)
        if search is None or slo is None or slo.kv_usage_max is None:
            result = session.run(url, scrape=scrape)
        else:  # the search judges the KV cache by its samples
            options.output.mkdir(parents=True, exist_ok=True)
            with Sampler(url, options.output, origin=session.origin_s, gpus=[]) as sampler:
                result = session.run(url, scrape=scrape, kv_usage_peak=sampler.kv_usage_peak)
    finally:
        session.close()
    result = result.model_copy(update={"url_kind": "attached"})
    result = note_records(result, options.output)
    write_json(options.output / "load.json", result)
    return result


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and run; 2 with one sentence when the input cannot be used."""
    parser = argparse.ArgumentParser("python -m scripts.run_load", description=__doc__)
    parser.add_argument("--url", required=True, help="e.g. http://127.0.0.1:8000")
    parser.add_argument("--model", required=True, help="the served model's name")
    parser.add_argument(
        "--tokenizer", required=True, type=Path, help="tokenizer.json, or the folder with it"
    )
    parser.add_argument(
        "--workload",
        required=True,
        type=Path,
        help="a workload of a study as JSON, e.g. results/<study>/specs/workloads/<name>.json",
    )
    parser.add_argument("--output", required=True, type=Path, help="folder for the results")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the clients are ended
    try:
        base_url(options.url)
        result = measure(options)
    except (SpecError, DatasetError, ClientError, ValueError, OSError) as problem:
        print(problem, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    print(result.model_dump_json(indent=1))
    return 0


if __name__ == "__main__":
    run_main(main)
