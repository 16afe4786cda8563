"""Times the analysis of a study with a million request records.

    python -m benchmarks.scale [--records 1000000]

Writes a synthetic study (three variants, three levels, three repetitions) into a temporary folder,
then runs the workflow's own ``build_tables`` on it as a process of its own. Prints wall time and
peak memory of that process.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.factories import Recipe, write_study

PROJECT = Path(__file__).resolve().parents[1]


def run(command: list[str]) -> tuple[float, float]:
    """Run a command; return its wall time in s and its own peak memory in MiB."""
    begin = time.monotonic()
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return time.monotonic() - begin, usage.ru_maxrss / 1024


def main() -> None:
    """Write the study, analyse it, print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=1_000_000)
    wanted = parser.parse_args().records
    recipe = Recipe()
    at_once = sum(recipe.levels) * recipe.repetitions * len(recipe.speeds)
    recipe.requests_per_level = -(-wanted // at_once)
    with tempfile.TemporaryDirectory() as scratch:
        print(f"writing {recipe.requests_per_level * at_once:,} records ...", file=sys.stderr)
        results = write_study(Path(scratch), recipe)
        wall_s, peak_mib = run(
            [
                sys.executable,
                "-m",
                "scripts.build_tables",
                "--study",
                str(results / "study.json"),
                "--results",
                str(results),
            ]  # fmt: skip
        )
    records = recipe.requests_per_level * at_once
    print(json.dumps({"records": records, "wall_s": wall_s, "peak_mib": peak_mib}))


if __name__ == "__main__":
    main()
