"""Make a study of logs and result files made by hand (docs/import.md has the file's keys)."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from scripts.lib.analysis.analyse import analyse_study
from scripts.lib.analysis.assemble import assemble
from scripts.lib.analysis.decision.alerts import alerts_text
from scripts.lib.analysis.import_points import ImportProblem
from scripts.lib.analysis.importer import import_study
from scripts.lib.analysis.points.wholeness import RecordError
from scripts.lib.analysis.tables import TableError, write_tables
from scripts.lib.base.command_line import run_main
from scripts.lib.base.files import write_json, write_text
from scripts.lib.plan.judge_runs import judge_runs
from scripts.lib.plan.models import Verdict
from scripts.lib.plan.tables import PlanError
from scripts.lib.report.render import write_report
from scripts.lib.study.models import Study

Report = dict[str, object]


def main(arguments: list[str] | None = None) -> int:
    """Import each file, print what was made as JSON; return the exit status."""
    parser = argparse.ArgumentParser("python -m scripts.import_results", description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="STUDY.yaml", help="import files")
    parser.add_argument("--results", type=Path, default=Path("results"), help="(results)")
    parser.add_argument(
        "--report", action="store_true", help="also judge, tabulate, summarise and render"
    )
    options = parser.parse_args(arguments)
    reports = []
    try:
        for path in options.files:
            study, folder = import_study(path, options.results)
            made = _finish(study, folder) if options.report else {"next": _commands(study, folder)}
            reports.append({"study": study.study, "folder": str(folder), **made})
    except (ImportProblem, RecordError, TableError, PlanError, OSError, ValueError) as error:
        print(f"import_results: {error}", file=sys.stderr)
        return 2
    print(json.dumps(reports[0] if len(reports) == 1 else reports, indent=1, ensure_ascii=False))
    return 0


def _finish(study: Study, folder: Path) -> Report:
    """Go all the way to the report, as the workflow's rules do."""
    for variant in study.variants:
        write_json(folder / "kernels" / f"{variant}.json", _verdict(study, folder, variant))
    write_tables(folder / "tables", analyse_study(study, folder))
    summary = assemble(study, folder, Path.cwd())
    write_json(folder / "summary.json", summary)
    write_text(folder / "alerts.yaml", alerts_text(study.study, summary.decision))
    files = write_report(summary, folder / "report")
    return {
        "decision": summary.decision.headline,
        "not_measured": summary.not_measured,
        "report": [str(path) for path in files],
    }


@dataclass(frozen=True)
class _Evidence:
    """The files of an imported study by which one variant is judged."""

    host: Path | None
    manifest: Path | None
    baseline_manifest: Path | None
    startups: list[Path]
    baseline_startups: list[Path]


def _evidence(study: Study, folder: Path, variant: str) -> _Evidence:
    def there(path: str) -> Path | None:
        return folder / path if (folder / path).is_file() else None

    def manifest(name: str) -> Path | None:
        return there(f"checkpoints/{study.variants[name].checkpoint}.json")

    def starts(name: str) -> list[Path]:
        return sorted(folder.glob(f"runs/{name}/*/session*/startup.json"))

    return _Evidence(
        host=there("host.json"),
        manifest=manifest(variant),
        baseline_manifest=manifest(study.baseline),
        startups=starts(variant),
        baseline_startups=starts(study.baseline),
    )


def _verdict(study: Study, folder: Path, variant: str) -> Verdict:
    found = _evidence(study, folder, variant)
    return judge_runs(
        study,
        variant,
        host=found.host,
        manifest=found.manifest,
        baseline_manifest=found.baseline_manifest,
        startups=found.startups,
        baseline_startups=found.baseline_startups,
    )


def _commands(study: Study, folder: Path) -> list[str]:
    """Return the commands that make the report of an imported study."""
    tell = ["--study", f"{folder}/study.json"]
    results = ["--results", str(folder)]
    summary = f"{folder}/summary.json"
    commands = [_judge_command(study, folder, variant) for variant in study.variants]
    commands += [
        ["build_tables", *tell, *results],
        ["summarise_study", *tell, *results, "--output", summary]
        + ["--alerts", f"{folder}/alerts.yaml"],
        ["render_report", "--summary", summary, "--output", f"{folder}/report"],
    ]
    return [shlex.join(["python", "-m", f"scripts.{c[0]}", *c[1:]]) for c in commands]


def _judge_command(study: Study, folder: Path, variant: str) -> list[str]:
    found = _evidence(study, folder, variant)
    words = ["judge_kernels", "--study", f"{folder}/study.json", "--variant", variant]
    known = {
        "--host": found.host,
        "--manifest": found.manifest,
        "--baseline-manifest": found.baseline_manifest,
    }
    for flag, path in known.items():
        words += [flag, str(path)] if path else []
    words += ["--startup", *map(str, found.startups)]
    words += ["--baseline-startup", *map(str, found.baseline_startups)]
    return [*words, "--output", f"{folder}/kernels/{variant}.json"]


if __name__ == "__main__":
    run_main(main)
