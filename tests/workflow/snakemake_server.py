"""Runs Snakemake for tests, each time in a fresh process that need not import it again.

Importing Snakemake takes two thirds of a dry run. This process imports it once, then forks for each
request: a JSON line ``{arguments, cwd, env, stdout, stderr}`` (the last two: files to write) is
answered with the exit status.
"""

import json
import os
import sys

import pandas  # noqa: F401 - Snakemake imports it for the parameters of rules
import pydantic  # noqa: F401 - our rules do
import yaml  # noqa: F401
from snakemake.cli import main


def run(request: dict) -> int:
    """Be ``snakemake`` with these arguments; return its exit status."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.argv = ["snakemake", *request["arguments"]]
    try:
        main(request["arguments"])
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


for line in sys.stdin:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = run(json.loads(line))
        finally:
            os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
