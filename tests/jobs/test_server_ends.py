"""A server that somebody else ends is measured again; one that fails by itself is a row."""

import errno
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from scripts.lib.base.console import Console, JobError, run_job
from scripts.lib.base.files import read_json
from scripts.lib.base.model_files import read_model
from scripts.lib.checkpoints.make import Job, make_checkpoint
from scripts.lib.checkpoints.manifest import Manifest
from scripts.lib.engine.environment import EngineInfo
from scripts.lib.engine.server import answers
from scripts.lib.engine.startup import Failure
from scripts.lib.jobs.load_job import measure_load
from scripts.lib.jobs.serving import ServedVariant, StartFailed, death_of, serve
from scripts.lib.study.models import Checkpoint, Engine, Variant, Workload
from scripts.lib.study.specs import WorkloadSpec

FAKE = Path(__file__).parents[1] / "fakes/engine.py"


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A variant on the fake engine."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text('{"vocab_size": 300, "hidden_size": 16}')
    words = {"[UNK]": 0, **{f"w{i}": i for i in range(1, 300)}}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "model/tokenizer.json"))
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


@pytest.fixture
def attached(served, tmp_path):
    """A function that gives a variant at an address where a server runs, and that server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    flags = ["--model", "x", "--served-model-name", "m", "--host", "127.0.0.1"]
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(
        [sys.executable, str(FAKE), *flags, "--port", str(port)], stdout=subprocess.DEVNULL
    ) as process:
        with httpx.Client(trust_env=False) as client:
            deadline = time.monotonic() + 15
            while not answers(client, url) and time.monotonic() < deadline:
                time.sleep(0.05)
        yield lambda **more: (served(command=None, address=url, **more), process)
        process.kill()


def test_a_server_at_an_address_that_goes_away_is_no_result(attached):
    variant, process = attached()
    with pytest.raises(JobError, match="start it"), serve(variant, Console("t")) as serving:
        assert serving.alive
        assert serving.model == "m"
        process.kill()
        process.wait(10)
        assert not serving.alive
        death_of(serving, variant)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"log": "none.txt"},
            r"engine\.log .*none\.txt cannot be read .*leave it out",
        ),
        ({"served_model_name": "n"}, r'serves m, not "n"; give engine\.served_model_name'),
    ],
)
def test_what_is_wrong_with_an_address_is_said(attached, settings, words):
    variant, _ = attached(**settings)
    with pytest.raises(JobError, match=words), serve(variant, Console("t")):
        pass


def test_a_port_taken_by_another_program_is_no_result(served):
    failing = served(
        command=["/bin/sh", "-c", "echo 'OSError: [Errno 98] Address already in use'; exit 1"]
    )
    with pytest.raises(JobError, match="run the same command again"), serve(failing, Console("t")):
        pass


def test_a_damaged_manifest_is_named(served, tmp_path):
    (tmp_path / "cut.json").write_text('{"name": ')
    with pytest.raises(ValueError, match=r"cut\.json: not JSON .*run snakemake again"):
        read_model(tmp_path / "cut.json", Manifest)
    (tmp_path / "v.json").write_text('{"name": "v", "variant": {"checkpoint": "c"}, "engine": "e"}')
    cut = tmp_path / "cut.json"
    with pytest.raises(ValueError, match=r"cut\.json"):
        ServedVariant.read(
            variant=tmp_path / "v.json", engine=cut, info=cut, manifest=cut, folder=tmp_path
        )


def test_the_log_of_a_job_holds_a_trace_only_where_the_sentence_is_not_ours(tmp_path):
    def ours() -> None:
        raise JobError("a sentence")

    def foreign() -> None:
        raise ValueError("no sentence")

    def full() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert run_job(Console("t", tmp_path / "full.log"), full) == 1
    assert "the disk is full" in (tmp_path / "full.log").read_text()
    assert "Traceback" not in (tmp_path / "full.log").read_text()
    assert run_job(Console("t", tmp_path / "ours.log"), ours) == 1
    assert run_job(Console("t", tmp_path / "foreign.log"), foreign) == 1
    assert "Traceback" not in (tmp_path / "ours.log").read_text()
    assert "Traceback" in (tmp_path / "foreign.log").read_text()


def test_a_killed_client_process_stops_the_job_with_a_sentence(served):
    variant = served(env={"FAKE_TTFT_MS": "300"})
    workload = Workload.model_validate(
        {
            "dataset": {"random": {"input_tokens": 4, "output_tokens": 4}},
            "concurrency": [1],
            "requests_per_point": 20,
        }
    )

    def kill_client() -> None:
        deadline = time.monotonic() + 15
        while not (variant.folder / "metrics.csv.gz").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        for process in psutil.Process().children():
            if "scripts.lib.load.worker" in process.cmdline():
                process.kill()

    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(JobError, match=r"client process died.*again"),
    ):
        pool.submit(kill_client)
        measure_load(
            variant,
            WorkloadSpec(name="w", workload=workload),
            session=1,
            console=Console("t"),
            after_start=lambda _: None,
        )
    assert not (variant.folder / "load.json").exists()
    assert psutil.Process().children() == []


@pytest.mark.parametrize(
    ("engine", "refused", "points", "failure"),
    [
        ({}, None, 1, None),
        ({}, Failure(kind="degraded", line="", hint="not what was asked"), 0, "degraded"),
        ({"command": ["/bin/sh", "-c", "echo no; exit 3"]}, None, 0, "died-before-ready"),
    ],
)
def test_a_load_job_holds_points_or_why_there_are_none(served, engine, refused, points, failure):
    variant = served(**engine)
    workload = Workload.model_validate(
        {
            "dataset": {"random": {"input_tokens": 4, "output_tokens": 4}},
            "concurrency": [1],
            "requests_per_point": 2,
            "repetitions": 1,
        }
    )
    result = measure_load(
        variant,
        WorkloadSpec(name="w", workload=workload),
        session=2,
        console=Console("t"),
        after_start=lambda _: refused,
    )
    assert len(result.points) == points
    assert (result.failure and result.failure.kind) == failure
    assert (result.variant, result.workload, result.session) == ("v", "w", 2)
    assert read_json(variant.folder / "load.json")["session"] == 2
    assert psutil.Process().children() == []
