"""The load clients we compare ours with: how to install, run and read each of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

INSTALL_TIMEOUT_S = 900
RUN_TIMEOUT_S = 420

VLLM_ENTRY = (
    "import argparse; from vllm.benchmarks.serve import add_cli_args, main; "
    "parser = argparse.ArgumentParser(); add_cli_args(parser); main(parser.parse_args())"
)
"""``vllm bench serve`` without the rest of the command line (which imports the engine)."""


class PeerError(RuntimeError):
    """A peer that cannot be installed or run; the message says why."""


@dataclass(frozen=True)
class Load:
    """One load against the paced server."""

    url: str
    tokenizer: Path
    streams: int
    requests: int
    input_tokens: int
    output_tokens: int
    folder: Path


@dataclass(frozen=True)
class Reading:
    """What a client reported; TPOT without the first token, or the mean ITL where it has none."""

    ttft_mean_ms: float
    ttft_p99_ms: float
    tpot_mean_ms: float
    completed: int
    wall_s: float = 0.0
    valid: bool = True
    note: str = ""


@dataclass(frozen=True)
class Peer:
    """One other client."""

    name: str
    requirement: str | None
    command: Callable[[Path, Load], list[str]]
    read: Callable[[Path], Reading]


def _vllm(python: Path, load: Load) -> list[str]:
    return [
        str(python), "-c", VLLM_ENTRY,
        "--backend", "openai", "--base-url", load.url, "--endpoint", "/v1/completions",
        "--model", "paced", "--tokenizer", str(load.tokenizer),
        "--dataset-name", "random", "--random-input-len", str(load.input_tokens),
        "--random-output-len", str(load.output_tokens), "--ignore-eos",
        "--num-prompts", str(load.requests), "--max-concurrency", str(load.streams),
        "--percentile-metrics", "ttft,tpot,itl,e2el", "--disable-tqdm",
        "--save-result", "--result-dir", str(load.folder), "--result-filename", "vllm.json",
    ]  # fmt: skip


def _read_vllm(folder: Path) -> Reading:
    data = json.loads((folder / "vllm.json").read_text())
    return Reading(
        data["mean_ttft_ms"], data["p99_ttft_ms"], data["mean_tpot_ms"], data["completed"]
    )


def _guidellm(python: Path, load: Load) -> list[str]:
    return [
        str(python.with_name("guidellm")), "run", "--disable-console",
        "--backend",
        f"kind=openai_http,target={load.url},model=paced,request_format=/v1/completions",
        "--profile", f"kind=concurrent,streams={load.streams}",
        "--constraint", f"kind=max_requests,count={load.requests}",
        "--tokenizer", f"kind=huggingface_auto,model={load.tokenizer}",
        "--data",
        f"kind=synthetic_text,prompt_tokens={load.input_tokens},"
        f"output_tokens={load.output_tokens}",
        "--output", f"kind=json,path={load.folder / 'guidellm.json'}",
    ]  # fmt: skip


def _read_guidellm(folder: Path) -> Reading:
    metrics = json.loads((folder / "guidellm.json").read_text())["benchmarks"][0]["metrics"]
    ttft = metrics["time_to_first_token_ms"]["successful"]
    # Its "time per output token" includes the first one; its ITL is our TPOT's meaning.
    itl = metrics["inter_token_latency_ms"]["successful"]
    return Reading(ttft["mean"], ttft["percentiles"]["p99"], itl["mean"], ttft["count"])


def _aiperf(python: Path, load: Load) -> list[str]:
    return [
        str(python.with_name("aiperf")), "profile", "-m", "paced", "--url", load.url,
        "--endpoint-type", "completions", "--streaming",
        "--concurrency", str(load.streams), "--request-count", str(load.requests),
        "--isl", str(load.input_tokens), "--osl", str(load.output_tokens),
        "--tokenizer", str(load.tokenizer), "--use-legacy-max-tokens",
        "--use-server-token-count", "--extra-inputs", "ignore_eos:true",
        "--ui", "none", "--artifact-dir", str(load.folder / "aiperf"),
    ]  # fmt: skip


def _read_aiperf(folder: Path) -> Reading:
    data = json.loads((folder / "aiperf" / "profile_export_aiperf.json").read_text())
    ttft, itl = data["time_to_first_token"], data["inter_token_latency"]
    return Reading(ttft["avg"], ttft["p99"], itl["avg"], int(ttft["count"]))


PEERS = {
    peer.name: peer
    for peer in (
        Peer("vllm bench serve", None, _vllm, _read_vllm),
        Peer("guidellm", "guidellm==0.8.1", _guidellm, _read_guidellm),
        Peer("aiperf", "aiperf==0.13.0", _aiperf, _read_aiperf),
    )
}


def install(peer: Peer, folder: Path) -> Path:
    """Return the Python of the peer's own environment under ``folder``, made if missing.

    Raises:
        PeerError: It could not be installed.
    """
    assert peer.requirement is not None
    home = folder / peer.requirement.replace("==", "-")
    python, ready = home / "bin" / "python", home / ".ready"
    if ready.exists():
        return python.absolute()
    print(f"installing {peer.requirement} ...", file=sys.stderr, flush=True)
    steps = (
        [sys.executable, "-m", "venv", "--clear", str(home)],
        [str(python), "-m", "pip", "install", "--quiet", peer.requirement],
    )
    for step in steps:
        try:
            done = subprocess.run(
                step, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired as problem:
            raise PeerError(f"{peer.requirement} took too long to install") from problem
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise PeerError(f"{peer.requirement} does not install here: {last}")
    ready.touch()
    return python.absolute()


def run(peer: Peer, python: Path, load: Load) -> Reading:
    """Run the peer once.

    Raises:
        PeerError: It failed, or left no result.
    """
    load.folder.mkdir(parents=True, exist_ok=True)
    log = load.folder / "log.txt"
    begin = time.monotonic()
    with log.open("w") as file:
        process = subprocess.Popen(
            peer.command(python, load),
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TRANSFORMERS_VERBOSITY": "error"},
            start_new_session=True,
        )
        try:
            process.wait(RUN_TIMEOUT_S)
        except subprocess.TimeoutExpired as problem:
            raise PeerError(f"{peer.name} took longer than {RUN_TIMEOUT_S} s") from problem
        finally:
            _end_group(process)
    wall_s = time.monotonic() - begin
    try:
        reading = peer.read(load.folder)
    except (OSError, KeyError, IndexError, ValueError) as problem:
        raise PeerError(f"{peer.name} left no result ({problem!r}); see {log}") from problem
    return Reading(**{**vars(reading), "wall_s": wall_s})


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End what the peer left behind."""
    try:
        os.killpg(process.pid, 9)
    except ProcessLookupError:
        return
    process.wait()
