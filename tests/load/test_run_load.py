from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from plain_server import Manners, plain_server

from scripts.lib.base.files import sha256_of
from scripts.run_load import SpecError, read_spec

PROJECT = Path(__file__).parents[2]
MINIMAL = {
    "dataset": {"random": {"input_tokens": 32, "output_tokens": 20}},
    "concurrency": [8],
    "requests_per_point": 24,
    "warmup_requests": 0,
    "repetitions": 1,
}


def command(url: str, tokenizer: Path, spec: Path, output: Path) -> list[str]:
    return [
        sys.executable, "-m", "scripts.run_load",
        "--url", url,
        "--model", "m",
        "--tokenizer", str(tokenizer),
        "--workload", str(spec),
        "--output", str(output),
    ]  # fmt: skip


def run(*arguments) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments), capture_output=True, text=True, cwd=PROJECT, timeout=60
    )


def test_the_contract(tmp_path, tokenizer_folder):
    spec, output = tmp_path / "spec.json", tmp_path / "deep" / "out"
    spec.write_text(json.dumps(MINIMAL))
    output.mkdir(parents=True)
    (output / "metrics.csv.gz").write_bytes(b"of a former run")
    with plain_server(Manners(usage=False)) as server:
        done = run(server.url, tokenizer_folder / "tokenizer.json", spec, output)
    assert done.returncode == 0, done.stderr
    assert not (output / "metrics.csv.gz").exists()
    printed = json.loads(done.stdout)
    assert printed == json.loads((output / "load.json").read_text())
    assert printed["records"] == {
        name: sha256_of(output / name) for name in ("requests.jsonl.gz", "itl.npz")
    }
    assert printed["url_kind"] == "attached"
    point = printed["points"][0]
    assert (point["concurrency"], point["sent"], point["completed"]) == (8, 24, 24)
    assert point["failed"] == 0
    for metric in ("ttft_ms", "tpot_ms", "itl_ms", "e2el_ms"):
        assert {"mean", "p50", "p95", "p99"} <= set(point[metric])
    assert {"processes", "cpu_share", "send_lag_p99_ms"} <= set(point["client"])
    assert point["output_throughput_tok_s"] > 0
    assert point["total_throughput_tok_s"] > point["output_throughput_tok_s"]
    assert isinstance(point["valid"], bool)
    assert point["invalid_reasons"] == [] or not point["valid"]
    assert server.seen.connections <= 8 + 3  # and the questions beside the load
    assert "24/24 done" in done.stderr


def test_a_server_that_is_not_there_is_a_result(tmp_path, tokenizer_folder):
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(MINIMAL))
    done = run("http://127.0.0.1:9", tokenizer_folder, spec, tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout)["points"][0]["valid"] is False


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "cannot be read"),
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        (json.dumps({**MINIMAL, "concurency": [1]}), "concurency: Extra inputs"),
        (json.dumps({**MINIMAL, "concurrency": [0]}), "concurrency.0: Input should be greater"),
        (json.dumps({"dataset": MINIMAL["dataset"]}), "no load points"),
        (json.dumps({**MINIMAL, "dataset": {}}), "dataset: give exactly one of sharegpt"),
    ],
)
def test_bad_specs_are_sentences(text, sentence, tmp_path):
    path = tmp_path / "spec.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SpecError, match=sentence):
        read_spec(path)


def test_a_spec_of_ours(tmp_path):
    path = tmp_path / "chat.json"
    wrapped = {
        "name": "chat",
        "workload": MINIMAL,
        "slo": {"ttft_p95_ms": 500},
        "slo_search": {"resolution": 2},
    }
    path.write_text(json.dumps(wrapped))
    workload, slo, search = read_spec(path)
    assert workload.concurrency == [8]
    assert slo is not None
    assert slo.ttft_p95_ms == 500
    assert search is not None
    assert search.resolution == 2
    path.write_text(json.dumps({"name": "chat", "workload": MINIMAL, "slo": None}))
    assert read_spec(path)[1:] == (None, None)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("ftp://x", "tok", "spec.json"), "not the address of a server"),
        (("http://127.0.0.1:9", "none", "spec.json"), "tokenizer.json"),
        (("http://127.0.0.1:9", "tok", "none.json"), "cannot be read"),
    ],
)
def test_unusable_input_exits_with_two_and_one_sentence(
    arguments, sentence, tmp_path, tokenizer_folder
):
    (tmp_path / "spec.json").write_text(json.dumps(MINIMAL))
    url, tokenizer, spec = arguments
    folder = tokenizer_folder if tokenizer == "tok" else tmp_path / tokenizer
    done = run(url, folder, tmp_path / spec, tmp_path / "out")
    assert done.returncode == 2
    assert done.stdout == ""
    assert sentence in done.stderr.strip().splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupting_ends_the_client_processes(how, tmp_path, tokenizer_folder):
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({**MINIMAL, "requests_per_point": 1000}))
    with plain_server(Manners(tpot_s=0.05)) as server:
        process = subprocess.Popen(
            command(server.url, tokenizer_folder, spec, tmp_path / "out"),
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        deadline = time.monotonic() + 30
        while not server.seen.requests and time.monotonic() < deadline:
            time.sleep(0.05)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert children
        process.send_signal(how)
        assert process.wait(20) in (130, 143)
        process.communicate()
    for child in children:
        assert not Path(f"/proc/{child}").exists() or _is_zombie(child)


def _is_zombie(pid: str) -> bool:
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True


def test_a_killed_session_takes_its_clients_with_it(tmp_path, tokenizer_folder):
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({**MINIMAL, "requests_per_point": 1000}))
    with plain_server(Manners(tpot_s=0.05)) as server:
        process = subprocess.Popen(
            command(server.url, tokenizer_folder, spec, tmp_path / "out"),
            cwd=PROJECT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 30
        while not server.seen.requests and time.monotonic() < deadline:
            time.sleep(0.05)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        while any(_alive(child) for child in children) and time.monotonic() < deadline:
            time.sleep(0.05)
    assert not any(_alive(child) for child in children)


def _alive(pid: str) -> bool:
    return Path(f"/proc/{pid}").exists() and not _is_zombie(pid)
