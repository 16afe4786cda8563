"""A server that already runs at an address: it is asked and read, never started or stopped."""

from __future__ import annotations

import datetime
from pathlib import Path

import httpx

from scripts.lib.base.console import JobError
from scripts.lib.base.files import write_json
from scripts.lib.engine.log_reader import read_log_if_any
from scripts.lib.engine.startup import LogFacts, Startup
from scripts.lib.load.bodies import base_url
from scripts.lib.study.models import Engine


def model_name(engine: Engine, variant: str) -> str:
    """Return the name under which the server of ``variant`` knows the model.

    A server that we start gets the variant's name; one at an address is asked.

    Raises:
        JobError: the server at the address does not answer, or serves another model.
    """
    if not engine.address:
        return variant
    address = base_url(engine.address)
    try:
        answer = httpx.get(f"{address}/v1/models", timeout=10, trust_env=False)
        answer.raise_for_status()
        names = [str(model["id"]) for model in answer.json()["data"]]
    except (httpx.HTTPError, KeyError, ValueError) as error:
        raise JobError(
            f"engine.address {address} does not answer as an OpenAI server ({error}); start it"
        ) from None
    wanted = engine.served_model_name or (names[0] if names else variant)
    if wanted not in names:
        raise JobError(
            f'engine.address {address} serves {", ".join(names)}, not "{wanted}"; give '
            "engine.served_model_name one of these, or leave it out"
        )
    return wanted


def attach(engine: Engine, variant: str, *, folder: Path, project: Path) -> Startup:
    """Write ``server.log`` and ``startup.json`` of a server that already runs.

    Args:
        engine: Its ``log`` is copied, if it names one.
        variant: Whose records they are.
        folder: Where they go; made if it is not there.
        project: What ``engine.log`` is relative to.

    Raises:
        JobError: the log cannot be read.
    """
    log = project / engine.log if engine.log else None
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "server.log").write_bytes(_bytes_of(log) if log else b"")
    startup = Startup(
        variant=variant,
        command=[],
        environment={},
        started_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        ready_s=None,
        ready=True,
        facts=read_log_if_any(log) if log else LogFacts(ready=True),
    )
    write_json(folder / "startup.json", startup)
    return startup


def _bytes_of(log: Path) -> bytes:
    try:
        return log.read_bytes()
    except OSError as error:
        raise JobError(
            f"engine.log {log} cannot be read ({error.strerror}); give the log file of the server "
            "at engine.address, or leave it out"
        ) from None
