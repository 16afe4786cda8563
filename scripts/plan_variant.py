"""Plan a variant before anything is loaded, or print plans as a table."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pydantic import ValidationError

from scripts.lib.base.files import read_json, write_json
from scripts.lib.plan.models import Plan
from scripts.lib.plan.plan import plan_variant
from scripts.lib.plan.render import render_plan
from scripts.lib.plan.tables import PlanError
from scripts.lib.study.specs import read_study
from scripts.lib.telemetry.host import Host


def main() -> int:
    """Parse the command line; 0: done, 2: the input could not be read (one sentence says why)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", type=Path, help="the resolved study.json")
    parser.add_argument("--variant")
    parser.add_argument("--host", type=Path, help="host.json")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--engine-version", help="instead of the one that the lock pins")
    parser.add_argument("--show", type=Path, nargs="+", help="plans to print as one table")
    arguments = parser.parse_args()
    if not arguments.show and not (arguments.study and arguments.variant and arguments.output):
        parser.error("give --show PLAN.json ..., or --study, --variant and --output")
    try:
        if arguments.show:
            plans = [Plan.model_validate(read_json(path)) for path in arguments.show]
            print(render_plan(plans), end="")
        else:
            _plan(arguments)
    except (PlanError, OSError, ValidationError, ValueError) as error:
        print(f"plan_variant: {error}", file=sys.stderr)
        return 2
    return 0


def _plan(arguments: argparse.Namespace) -> None:
    study = read_study(arguments.study)
    if arguments.variant not in study.variants:
        known = ", ".join(study.variants)
        raise PlanError(f'{arguments.study} has no variant "{arguments.variant}"; it has {known}')
    host = Host.model_validate(read_json(arguments.host)) if arguments.host else None
    plan = plan_variant(study, arguments.variant, host, version=arguments.engine_version)
    write_json(arguments.output, plan)


if __name__ == "__main__":
    sys.exit(main())
