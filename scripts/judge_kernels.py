"""Judge whether the engine ran what a variant's checkpoint promises."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.base.command_line import run_main
from scripts.lib.base.files import write_json
from scripts.lib.plan.judge_runs import judge_runs
from scripts.lib.plan.tables import PlanError
from scripts.lib.study.specs import read_study


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line; 0: judged, 2: the input could not be read (one sentence says why)."""
    parser = argparse.ArgumentParser("python -m scripts.judge_kernels", description=__doc__)
    parser.add_argument("--study", type=Path, required=True, help="the resolved study.json")
    parser.add_argument("--variant", required=True, help="its name in the study")
    parser.add_argument("--host", type=Path, help="host.json")
    parser.add_argument("--manifest", type=Path, help="the checkpoint's manifest")
    parser.add_argument("--startup", type=Path, nargs="*", default=[], help="its starts")
    parser.add_argument(
        "--baseline-startup", type=Path, nargs="*", default=[], help="starts of the baseline"
    )
    parser.add_argument("--baseline-manifest", type=Path, help="the baseline checkpoint's")
    parser.add_argument("--output", type=Path, required=True, help="kernels/<variant>.json")
    options = parser.parse_args(arguments)
    try:
        verdict = judge_runs(
            read_study(options.study),
            options.variant,
            host=options.host,
            manifest=options.manifest,
            baseline_manifest=options.baseline_manifest,
            startups=options.startup,
            baseline_startups=options.baseline_startup,
        )
        write_json(options.output, verdict)
    except (PlanError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{verdict.variant}: {verdict.verdict}. {verdict.summary}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    run_main(main)
