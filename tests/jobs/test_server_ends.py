"""A server that somebody else ends is measured again; one that fails by itself is a row."""

import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from scripts.lib.base.console import Console, JobError, run_job
from scripts.lib.base.files import read_json
from scripts.lib.checkpoints.make import Job, make_checkpoint
from scripts.lib.engine.environment import EngineInfo
from scripts.lib.jobs.serving import ServedVariant, StartFailed, death_of, serve
from scripts.lib.study.models import Checkpoint, Engine, Variant

FAKE = Path(__file__).parents[1] / "fakes/engine.py"


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A variant on the fake engine."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text('{"vocab_size": 300, "hidden_size": 16}')
    spec = Checkpoint.model_validate({"dummy": {"config": str(tmp_path / "model")}})

    def make(**engine):
        settings = {"command": [sys.executable, str(FAKE)], **engine}
        return ServedVariant(
            name="v",
            variant=Variant(checkpoint="c", tensor_parallel_size=1),
            engine=Engine.model_validate(settings),
            info=EngineInfo(name="e", kind="command"),
            manifest=make_checkpoint(Job("c", spec, tmp_path / "resources")),
            folder=tmp_path / "records",
            project=tmp_path,
        )

    monkeypatch.setattr("scripts.lib.jobs.serving.reserve_gpus", no_gpus)
    return make


class no_gpus:
    def __init__(self, *_: object) -> None: ...

    def __enter__(self) -> list[int]:
        return []

    def __exit__(self, *_: object) -> None: ...


def engine_process() -> psutil.Process:
    """Return the server's process, below its keeper."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        for process in psutil.Process().children(recursive=True):
            words = process.cmdline()
            if str(FAKE) in words and "-I" not in words:
                return process
        time.sleep(0.02)
    raise AssertionError("the server never started")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
def test_a_server_ended_from_outside_while_it_loads_is_no_result(served, number):
    def end(_: str) -> None:
        os.kill(engine_process().pid, number)

    with (
        pytest.raises(JobError, match=number.name),
        serve(served(env={"FAKE_START_S": "20"}), Console("t"), while_loading=end),
    ):
        pass


@pytest.mark.parametrize(
    ("whom", "number", "words"),
    [
        ("server", signal.SIGTERM, "stopped from outside"),
        ("server", signal.SIGKILL, "SIGKILL"),
        ("keeper", signal.SIGKILL, "SIGKILL"),
    ],
)
def test_a_server_ended_from_outside_while_it_serves_is_no_result(served, whom, number, words):
    variant = served()
    with pytest.raises(JobError, match=words), serve(variant, Console("t")) as serving:
        process = engine_process()
        victim = process if whom == "server" else process.parent()
        victim.send_signal(number)
        process.wait(10)
        while serving.alive:
            time.sleep(0.02)
        death_of(serving, variant)
    assert read_json(variant.folder / "startup.json")["exit_code"] in (0, 137)


def test_a_silent_server_is_quoted_as_it_was_before_we_ended_it(served):
    variant = served(env={"FAKE_START_S": "60"}, silence_timeout_s=1.5)
    with pytest.raises(StartFailed) as caught, serve(variant, Console("t")):
        pass
    assert caught.value.failure.kind == "silent"
    assert "Initializing a V1 LLM engine" in caught.value.failure.line


def test_the_log_of_a_job_holds_a_trace_only_where_the_sentence_is_not_ours(tmp_path):
    def ours() -> None:
        raise JobError("a sentence")

    def foreign() -> None:
        raise ValueError("no sentence")

    assert run_job(Console("t", tmp_path / "ours.log"), ours) == 1
    assert run_job(Console("t", tmp_path / "foreign.log"), foreign) == 1
    assert "Traceback" not in (tmp_path / "ours.log").read_text()
    assert "Traceback" in (tmp_path / "foreign.log").read_text()
