"""Serves one variant for the length of a job: start, wait, tell, stop."""

from __future__ import annotations

import argparse
import datetime
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from scripts.lib.base.console import Console, JobError
from scripts.lib.base.files import write_json
from scripts.lib.base.model_files import read_model
from scripts.lib.checkpoints.manifest import Manifest
from scripts.lib.engine.environment import EngineInfo
from scripts.lib.engine.flags import (
    asks_for_random_weights,
    server_command,
    server_environment,
    set_variables,
)
from scripts.lib.engine.gpus import reserve_gpus
from scripts.lib.engine.log_reader import read_log, read_log_if_any
from scripts.lib.engine.server import Server, ServerFailed, answers
from scripts.lib.engine.startup import Failure, LogFacts, Startup
from scripts.lib.jobs.attached import attach, model_name
from scripts.lib.load.bodies import base_url
from scripts.lib.study.models import Engine, Variant
from scripts.lib.study.specs import EngineSpec, VariantSpec

ENDED_FROM_OUTSIDE = {
    128 + number: signal.Signals(number).name
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM)
}
SAY_EVERY_S = 15.0
ASK_AGAIN_S = 30.0
NICENESS_ON_CPU = 10
"""A CPU engine keeps every core busy. The client needs some 2 % of one, at once: it goes first,
or the time that data lie unread would be measured as the engine's."""


@dataclass(frozen=True)
class ServedVariant:
    """What a job needs to serve one variant, and where its records go."""

    name: str
    variant: Variant
    engine: Engine
    info: EngineInfo
    manifest: Manifest
    folder: Path
    project: Path

    @classmethod
    def of(cls, options: argparse.Namespace) -> ServedVariant:
        """Read what :func:`add_served_variant` put on a job's command line."""
        return cls.read(
            variant=options.variant,
            engine=options.engine_spec,
            info=options.engine,
            manifest=options.checkpoint,
            folder=options.output.parent,
        )

    @classmethod
    def read(
        cls, *, variant: Path, engine: Path, info: Path, manifest: Path, folder: Path
    ) -> ServedVariant:
        """Read the spec files of a job; the working directory is the project's root."""
        spec = read_model(variant, VariantSpec)
        return cls(
            name=spec.name,
            variant=spec.variant,
            engine=read_model(engine, EngineSpec).engine,
            info=read_model(info, EngineInfo),
            manifest=read_model(manifest, Manifest),
            folder=folder,
            project=Path.cwd(),
        )

    @property
    def model_folder(self) -> Path:
        """Where the checkpoint lies.

        Raises:
            JobError: if it is not there any more.
        """
        folder = self.project / self.manifest.folder
        if not folder.is_dir():
            raise JobError(
                f"the checkpoint {self.manifest.name} is not at {self.manifest.folder} any more; "
                f"delete results/*/checkpoints/{self.manifest.name}.json to have it made again"
            )
        return folder

    @property
    def random_weights(self) -> bool:
        """Whether the engine makes the weights: its speed is real, its answers are not."""
        asked = asks_for_random_weights(self.variant, self.engine)
        return asked or self.manifest.dummy_weights


@dataclass
class Serving:
    """A server that is ready."""

    url: str
    model: str
    startup: Startup
    gpus: list[int]
    server: Server | None = None

    @property
    def alive(self) -> bool:
        """Whether it still runs; one that we did not start is asked, since nobody tells us."""
        if self.server is not None:
            return self.server.alive
        with httpx.Client(timeout=ASK_AGAIN_S, trust_env=False) as client:
            return answers(client, self.url)


def add_served_variant(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a variant's spec, engine and checkpoint."""
    parser.add_argument("--variant", type=Path, required=True, help="its spec")
    parser.add_argument("--engine-spec", type=Path, required=True, help="specs/engines/<name>.json")
    parser.add_argument("--engine", type=Path, required=True, help="engines/<name>.json")
    parser.add_argument("--checkpoint", type=Path, required=True, help="its manifest")


class StartFailed(Exception):
    """A server that did not start, with its cause; a row of the report, not an error."""

    def __init__(self, startup: Startup, failure: Failure) -> None:
        self.startup = startup
        self.failure = failure
        super().__init__(f"{failure.kind}: {failure.line.strip()} ({failure.hint})")


@contextmanager
def serve(
    served: ServedVariant,
    console: Console,
    *,
    while_loading: Callable[[str], None] = lambda _: None,
) -> Iterator[Serving]:
    """Have ``served`` answer at a URL while the context lasts.

    Args:
        served: The variant, and the folder for ``server.log`` and ``startup.json``.
        console: Told each state.
        while_loading: Called with the URL once the server's process runs.

    Raises:
        StartFailed: it did not become ready, with the cause from its log.
        JobError: it was killed from outside, or cannot be started at all.
    """
    if served.engine.address:
        url = base_url(served.engine.address)
        while_loading(url)
        model = model_name(served.engine, served.name)
        startup = attach(served.engine, served.name, folder=served.folder, project=served.project)
        yield Serving(url, model, startup, [])
        return
    gpus_needed = 0 if served.engine.is_cpu_build else served.variant.gpus
    with reserve_gpus(gpus_needed, console.say) as gpus, _server(served, gpus) as server:
        started_at = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        console.say("starting the server")
        while_loading(server.url)
        startup = _wait(server, served, console, started_at, gpus)
        try:
            yield Serving(server.url, served.name, startup, gpus, server)
        finally:
            console.say("stopping the server")
            died = not server.alive
            status = server.stop()
            final = startup.model_copy(update={"exit_code": status if died else 0})
            write_json(served.folder / "startup.json", final)


def _server(served: ServedVariant, gpus: list[int]) -> Server:
    """Return the server of a variant, on a free port; it starts when its context is entered."""
    port = _free_port()
    command = server_command(
        served.engine,
        served.info,
        served.variant,
        model=served.model_folder,
        served_name=served.name,
        port=port,
        random_weights=served.random_weights,
    )
    return Server(
        command,
        environment=server_environment(served.engine, served.variant, gpus=gpus),
        log=served.folder / "server.log",
        url=f"http://127.0.0.1:{port}",
        niceness=0 if gpus else NICENESS_ON_CPU,
    )


def death_of(serving: Serving, served: ServedVariant) -> Failure:
    """Say why a server that was ready has died.

    Raises:
        JobError: it was ended from outside (a signal or an orderly shutdown, no cause in its
            log): measure again.
    """
    if serving.server is None:
        raise JobError(
            f"the server at {serving.url} does not answer any more; start it and run the same "
            "command again"
        )
    status = serving.server.stop()
    failure = read_log(served.folder / "server.log").failure
    if failure is not None:
        return failure
    if status == 0 or status in ENDED_FROM_OUTSIDE:
        raise JobError(_ended_sentence(status))
    return Failure(
        kind="engine-dead-after-start",
        line=_last_line(served.folder / "server.log"),
        hint=f"the server ended with status {status} during the run; its log says no cause",
    )


def _wait(
    server: Server, served: ServedVariant, console: Console, started_at: str, gpus: list[int]
) -> Startup:
    """Wait for readiness and write ``startup.json``."""
    last = time.monotonic()

    def on_wait(elapsed_s: float) -> None:
        nonlocal last
        if time.monotonic() - last > SAY_EVERY_S:
            last = time.monotonic()
            console.say(f"loading for {elapsed_s:.0f} s: {_last_line(server.log)}")

    error: ServerFailed | None = None
    last_line = ""
    ready_s: float | None = None
    try:
        ready_s = server.wait_ready(
            startup_timeout_s=served.engine.startup_timeout_s,
            silence_timeout_s=served.engine.silence_timeout_s,
            on_wait=on_wait,
        )
        console.say(f"ready after {ready_s:.0f} s")
    except ServerFailed as failed:
        error = failed
        last_line = _last_line(server.log)  # before our own interrupt adds its words
        server.stop()
    facts = read_log_if_any(server.log)
    failure = _failure(error, facts, last_line) if error else None
    startup = Startup(
        variant=served.name,
        command=_relative(server.command, served.project),
        environment=set_variables(served.engine, served.variant, gpus=gpus),
        started_at=started_at,
        ready_s=round(ready_s, 2) if ready_s is not None else None,
        ready=ready_s is not None,
        exit_code=server.exit_code,
        gpus=gpus,
        facts=_without_root(facts, served.project),
        failure=failure,
    )
    write_json(served.folder / "startup.json", startup)
    if failure is not None:
        raise StartFailed(startup, failure)
    return startup


def _failure(error: ServerFailed, facts: LogFacts, last_line: str) -> Failure:
    if error.kind == "died" and facts.failure is None and error.exit_code in ENDED_FROM_OUTSIDE:
        raise JobError(_ended_sentence(error.exit_code)) from None
    if error.kind == "died" and facts.failure is not None:
        if facts.failure.kind == "port-in-use":  # we chose the port: no fault of the variant
            raise JobError(
                f"another program took the server's port ({facts.failure.line.strip()}); run the "
                "same command again: another port is chosen"
            )
        return facts.failure
    kind = {"died": "died-before-ready", "silent": "silent", "timeout": "start-timeout"}
    hint = str(error) if error.kind != "died" else f"{error}; read the end of its server.log"
    return Failure(kind=kind[error.kind], line=last_line, hint=hint)


def _ended_sentence(status: int | None) -> str:
    how = ENDED_FROM_OUTSIDE.get(status or 0)
    if how == "SIGKILL":
        return (
            "the server was killed (SIGKILL) from outside; if the kernel did it, the machine has "
            "too little memory for this variant, else run the same command again to go on"
        )
    return (
        f"the server was stopped from outside ({how or 'it ended in good order'}); run the same "
        "command again to go on"
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _without_root(facts: LogFacts, project: Path) -> LogFacts:
    """Leave the project's own place out of the quoted lines: it says nothing elsewhere."""
    return LogFacts.model_validate_json(facts.model_dump_json().replace(f"{project}/", ""))


def _relative(command: list[str], project: Path) -> list[str]:
    root = f"{project}/"
    return [word.replace(root, "") for word in command]


def _last_line(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4096))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "(empty log)")
