"""A server's life: whatever happens, nothing of it is left."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from scripts.lib.engine.server import Server, ServerFailed

FAKE = Path(__file__).parents[1] / "fakes/process_server.py"
QUICK = {"startup_timeout_s": 20, "silence_timeout_s": 20}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def make(tmp_path):
    def build(*habits: str) -> Server:
        port = free_port()
        command = [sys.executable, str(FAKE), "--port", str(port)]
        command += [word for habit in habits for word in ("--habit", habit)]
        return Server(
            command,
            environment=dict(os.environ),
            log=tmp_path / "server.log",
            url=f"http://127.0.0.1:{port}",
            interrupt_grace_s=0.5,
            terminate_grace_s=0.5,
        )

    return build


def pids_in(log: Path) -> list[int]:
    """Return the pids that the fake printed; all of them were alive once."""
    lines = log.read_text().splitlines()
    return [int(line.split()[1]) for line in lines if line.startswith(("loading", "child"))]


def alive(pids: list[int]) -> list[int]:
    return [
        pid
        for pid in pids
        if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    ]


def wait_gone(pids: list[int], seconds: float = 5) -> list[int]:
    deadline = time.monotonic() + seconds
    while alive(pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    return alive(pids)


def test_it_becomes_ready_and_ends(make):
    with make() as server:
        assert 0 < server.wait_ready(**QUICK) < 20
        assert server.alive
    assert not server.alive
    assert alive(pids_in(server.log)) == []


@pytest.mark.parametrize(
    "habits",
    [("ignore-int",), ("ignore-term",), ("grandchild",), ("detached-grandchild", "ignore-term")],
)
def test_nothing_is_left_of_a_stubborn_one(make, habits):
    with make(*habits) as server:
        server.wait_ready(**QUICK)
        pids = pids_in(server.log)
        assert len(alive(pids)) == len(pids) >= 1
    assert alive(pids) == []


def test_dying_before_ready_is_noticed_at_once(make):
    started = time.monotonic()
    with make("die-early", "grandchild") as server:
        with pytest.raises(ServerFailed) as caught:
            server.wait_ready(**QUICK)
        assert caught.value.kind == "died"
        assert caught.value.exit_code == 3
    assert time.monotonic() - started < 5
    assert alive(pids_in(server.log)) == []


def test_a_silent_one_is_given_up_with_a_hint(make):
    with make("silent") as server:
        with pytest.raises(ServerFailed, match="silence_timeout_s") as caught:
            server.wait_ready(startup_timeout_s=20, silence_timeout_s=0.6)
        assert caught.value.kind == "silent"
    assert alive(pids_in(server.log)) == []


def test_one_that_is_never_ready_is_given_up(make):
    with make("never-ready") as server:
        with pytest.raises(ServerFailed, match="startup_timeout_s") as caught:
            server.wait_ready(startup_timeout_s=1, silence_timeout_s=20)
        assert caught.value.kind == "timeout"
    assert alive(pids_in(server.log)) == []


def test_dying_in_the_middle_is_seen(make):
    with make("die-later", "grandchild") as server:
        server.wait_ready(**QUICK)
        deadline = time.monotonic() + 5
        while server.alive and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not server.alive
        assert server.stop() == 7
    assert alive(pids_in(server.log)) == []


def test_a_command_that_does_not_exist(tmp_path):
    server = Server(
        ["no-such-program"],
        environment=dict(os.environ),
        log=tmp_path / "server.log",
        url="http://127.0.0.1:9",
    )
    with server, pytest.raises(ServerFailed):
        server.wait_ready(**QUICK)
    assert "cannot start no-such-program" in server.log.read_text()


def test_an_error_in_the_job_ends_the_server(make):
    with pytest.raises(RuntimeError), make("grandchild") as server:
        server.wait_ready(**QUICK)
        pids = pids_in(server.log)
        raise RuntimeError
    assert alive(pids) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_server_ends_with_a_job_that_is_killed(tmp_path, number):
    port = free_port()
    log = tmp_path / "server.log"
    job = f"""
import os, time
from pathlib import Path
from scripts.lib.engine.server import Server
command = [{sys.executable!r}, {str(FAKE)!r}, "--port", "{port}", "--habit", "detached-grandchild"]
with Server(command, environment=dict(os.environ), log=Path({str(log)!r}),
            url="http://127.0.0.1:{port}", interrupt_grace_s=0.5, terminate_grace_s=0.5) as server:
    server.wait_ready(startup_timeout_s=20, silence_timeout_s=20)
    print("ready", flush=True)
    time.sleep(60)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", job], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert process.stdout.readline() == b"ready\n"
    pids = pids_in(log)
    assert len(alive(pids)) == 2
    process.send_signal(number)
    process.wait(10)
    assert wait_gone(pids) == []


def test_a_killed_server_says_so(make):
    with make() as server:
        server.wait_ready(**QUICK)
        os.kill(pids_in(server.log)[0], signal.SIGKILL)
        deadline = time.monotonic() + 5
        while server.alive and time.monotonic() < deadline:
            time.sleep(0.05)
        assert server.stop() == 128 + signal.SIGKILL


def test_a_server_can_stand_behind_its_client(tmp_path):
    port = free_port()
    server = Server(
        [sys.executable, str(FAKE), "--port", str(port)],
        environment=dict(os.environ),
        log=tmp_path / "server.log",
        url=f"http://127.0.0.1:{port}",
        niceness=5,
    )
    with server:
        server.wait_ready(**QUICK)
        nice = psutil.Process(pids_in(server.log)[0]).nice()
    assert nice == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 5)
