"""Plan a variant before anything is loaded, or print plans as a table."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.base.command_line import run_main
from scripts.lib.base.files import write_json
from scripts.lib.base.model_files import read_model
from scripts.lib.plan.models import Plan
from scripts.lib.plan.plan import plan_variant
from scripts.lib.plan.render import render_plan
from scripts.lib.plan.tables import PlanError
from scripts.lib.study.specs import read_study
from scripts.lib.telemetry.host import Host


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line; 0: done, 2: the input could not be read (one sentence says why)."""
    parser = argparse.ArgumentParser("python -m scripts.plan_variant", description=__doc__)
    parser.add_argument("--study", type=Path, help="the resolved study.json")
    parser.add_argument("--variant", help="its name in the study")
    parser.add_argument("--host", type=Path, help="host.json")
    parser.add_argument("--output", type=Path, help="plan/<variant>.json")
    parser.add_argument("--engine-version", help="instead of the one that the lock pins")
    parser.add_argument("--show", type=Path, nargs="+", help="plans to print as one table")
    options = parser.parse_args(arguments)
    if not options.show and not (options.study and options.variant and options.output):
        parser.error("give --show PLAN.json ..., or --study, --variant and --output")
    try:
        if options.show:
            said = render_plan([read_model(path, Plan) for path in options.show])
        else:
            _plan(options)
            said = ""
    except (PlanError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    print(said, end="")
    return 0


def _plan(options: argparse.Namespace) -> None:
    study = read_study(options.study)
    if options.variant not in study.variants:
        known = ", ".join(study.variants)
        raise PlanError(f'{options.study} has no variant "{options.variant}"; it has {known}')
    host = read_model(options.host, Host) if options.host else None
    plan = plan_variant(study, options.variant, host, version=options.engine_version)
    write_json(options.output, plan)


if __name__ == "__main__":
    run_main(main)
