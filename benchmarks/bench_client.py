"""Judges our load client, and others beside it in the same run, by a server of known pace.

    python -m benchmarks.bench_client --streams 128 300 600 --vllm-python PATH

Each client sends three waves of requests to a paced server (TTFT 200 ms, TPOT 30 ms) on this
machine's own cores. What it reports is held against that truth and, for ours, against the bars.
Peers get environments of their own under ``resources/peers``; one that does not install or
run is left out with a sentence.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.request import urlopen

from benchmarks.peers import PEERS, Load, PeerError, Reading, install, run

PROJECT = Path(__file__).resolve().parents[1]
OURS = "ours"
TTFT_MS, TPOT_MS = 200.0, 30.0
INPUT_TOKENS, OUTPUT_TOKENS = 32, 100


@dataclass(frozen=True)
class Bar:
    """The largest errors allowed, in ms and percent of TPOT."""

    ttft_mean_ms: float
    ttft_p99_ms: float
    tpot_percent: float
    may_be_invalid: bool = False


BARS = {128: Bar(5, 12, 0.15), 300: Bar(8, 25, 0.15), 600: Bar(18, 45, 0.2, may_be_invalid=True)}
MEMORY_BAR_MIB = 800.0


@dataclass(frozen=True)
class Row:
    """One client at one number of streams: the median of its runs."""

    client: str
    streams: int
    runs: int
    ttft_mean_ms: float
    ttft_p99_ms: float
    tpot_mean_ms: float
    kept_ttft_mean_ms: float
    kept_ttft_p99_ms: float
    kept_tpot_mean_ms: float
    wall_s: float
    valid: bool
    memory_mib: float | None = None

    @property
    def errors(self) -> tuple[float, float, float]:
        """Errors of mean TTFT (ms), p99 TTFT (ms) and TPOT (%) against the nominal pace."""
        return (
            abs(self.ttft_mean_ms - TTFT_MS),
            abs(self.ttft_p99_ms - TTFT_MS),
            abs(self.tpot_mean_ms / TPOT_MS - 1) * 100,
        )


@contextmanager
def paced_server() -> Iterator[str]:
    """Run the paced server in a process of its own and give its address."""
    process = subprocess.Popen(
        [
            sys.executable,
            str(PROJECT / "tests" / "fakes" / "paced_server.py"),
            "--ttft-ms",
            str(TTFT_MS),
            "--tpot-ms",
            str(TPOT_MS),
        ],  # fmt: skip
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait()


def make_tokenizer(folder: Path) -> Path:
    """Train a small tokenizer on our own texts, so that no model is needed."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    chats = json.loads((PROJECT / "config" / "datasets" / "chat.json").read_text("utf-8"))
    texts = [turn["value"] for chat in chats for turn in chat["conversations"]]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=3000,
        special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|end|>",
        "unk_token": "<|end|>",
        "model_max_length": 4096,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "config.json").write_text('{"model_type": "gpt2"}')
    return folder


def run_ours(load: Load) -> tuple[Reading, float | None]:
    """Run our command line as a user would; also return the peak memory in MiB."""
    load.folder.mkdir(parents=True, exist_ok=True)
    spec = {
        "dataset": {
            "random": {"input_tokens": load.input_tokens, "output_tokens": load.output_tokens}
        },
        "concurrency": [load.streams],
        "requests_per_point": load.requests,
        "warmup_requests": 0,
        "repetitions": 1,
    }
    (load.folder / "workload.json").write_text(json.dumps(spec))
    begin = time.monotonic()
    with (load.folder / "log.txt").open("w") as log:
        subprocess.run(
            [
                sys.executable,
                "-m",
                "scripts.run_load",
                "--url",
                load.url,
                "--model",
                "paced",
                "--tokenizer",
                str(load.tokenizer),
                "--workload",
                str(load.folder / "workload.json"),
                "--output",
                str(load.folder),
            ],  # fmt: skip
            cwd=PROJECT,
            stdout=subprocess.DEVNULL,
            stderr=log,
            check=True,
        )
    point = json.loads((load.folder / "load.json").read_text())["points"][0]
    reading = Reading(
        ttft_mean_ms=point["ttft_ms"]["mean"],
        ttft_p99_ms=point["ttft_ms"]["p99"],
        tpot_mean_ms=point["tpot_ms"]["mean"],
        completed=point["completed"],
        wall_s=time.monotonic() - begin,
        valid=point["valid"],
        note="; ".join(point["invalid_reasons"]),
    )
    return reading, point["client"]["peak_memory_mib"]


def measure(client: str, python: Path | None, load: Load, runs: int) -> Row:
    """Run one client ``runs`` times, each against a fresh server, and take medians."""
    readings, kept, memory = [], [], []
    for number in range(runs):
        with paced_server() as url:
            once = Load(**{**vars(load), "url": url, "folder": load.folder / f"run{number + 1}"})
            if client == OURS:
                reading, peak = run_ours(once)
                memory.append(peak or 0.0)
            else:
                assert python is not None
                reading = run(PEERS[client], python, once)
            with urlopen(f"{url}/truth", timeout=10) as answer:  # noqa: S310 - our own server
                kept.append(json.load(answer))
        if reading.completed < load.requests:
            raise PeerError(f"{client} completed {reading.completed} of {load.requests} requests")
        readings.append(reading)

    def middle(values: list[float]) -> float:
        return statistics.median(values)

    return Row(
        client=client,
        streams=load.streams,
        runs=runs,
        ttft_mean_ms=middle([r.ttft_mean_ms for r in readings]),
        ttft_p99_ms=middle([r.ttft_p99_ms for r in readings]),
        tpot_mean_ms=middle([r.tpot_mean_ms for r in readings]),
        kept_ttft_mean_ms=middle([k["ttft_ms"]["mean"] for k in kept]),
        kept_ttft_p99_ms=middle([k["ttft_ms"]["p99"] for k in kept]),
        kept_tpot_mean_ms=middle([k["tpot_ms"]["mean"] for k in kept]),
        wall_s=middle([r.wall_s for r in readings]),
        valid=all(r.valid for r in readings),
        memory_mib=max(memory) if memory else None,
    )


def verdicts(rows: list[Row]) -> list[str]:
    """Return each bar that our client missed, and each peer that measured better."""
    missed = []
    for row in (row for row in rows if row.client == OURS):
        bar = BARS.get(row.streams)
        if bar is not None and not (bar.may_be_invalid and not row.valid):
            allowed = (bar.ttft_mean_ms, bar.ttft_p99_ms, bar.tpot_percent)
            names = ("mean TTFT error, ms", "p99 TTFT error, ms", "TPOT error, %")
            for name, error, limit in zip(names, row.errors, allowed, strict=True):
                if error > limit:
                    missed.append(f"{row.streams} streams: {name}: {error:.2f}, bar {limit:g}")
        if row.memory_mib is not None and row.memory_mib > MEMORY_BAR_MIB:
            missed.append(f"{row.streams} streams: peak memory {row.memory_mib:.0f} MiB")
        for other in rows:
            if other.streams != row.streams or other.client == OURS:
                continue
            if other.errors[0] < row.errors[0] or other.errors[1] < row.errors[1]:
                missed.append(f"{row.streams} streams: {other.client} measured TTFT better")
    return missed


HEADER = (
    f"{'client':<18}{'streams':>8}{'TTFT':>9}{'p99':>9}{'TPOT':>9}   "
    f"{'error:':<7}{'TTFT':>8}{'p99':>9}{'TPOT':>9}   {'server kept':<24}{'wall':>7}  valid"
)


def line(row: Row) -> str:
    """Return one row of the table."""
    mean, p99, tpot = row.errors
    kept = f"{row.kept_ttft_mean_ms:.1f}/{row.kept_ttft_p99_ms:.1f}/{row.kept_tpot_mean_ms:.3f}"
    return (
        f"{row.client:<18}{row.streams:>8}{row.ttft_mean_ms:>9.1f}{row.ttft_p99_ms:>9.1f}"
        f"{row.tpot_mean_ms:>9.3f}   {'':<7}{mean:>5.1f} ms{p99:>6.1f} ms{tpot:>7.3f} %   "
        f"{kept:<24}{row.wall_s:>5.0f} s  {'yes' if row.valid else 'no'}"
    )


def clients(arguments: argparse.Namespace) -> dict[str, Path | None]:
    """Return the clients that can run here, with the Python of each."""
    found: dict[str, Path | None] = {OURS: None}
    for name in arguments.peers:
        peer = PEERS[name]
        try:
            if peer.requirement is not None:
                found[name] = install(peer, arguments.peer_folder)
            elif arguments.vllm_python is None:
                raise PeerError(f"{name} left out: give --vllm-python, a Python that has vLLM")
            else:
                found[name] = arguments.vllm_python.absolute()
        except PeerError as problem:
            print(problem, file=sys.stderr)
    return found


def main() -> int:
    """Measure, print the table, write it as JSON; 1 if a bar was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--streams", type=int, nargs="+", default=[128, 300, 600])
    parser.add_argument("--waves", type=int, default=3, help="requests = waves x streams")
    parser.add_argument("--runs", type=int, default=1, help="runs of each client; medians")
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--vllm-python", type=Path, help="a Python that has vLLM")
    parser.add_argument("--peer-folder", type=Path, default=PROJECT / "resources" / "peers")
    parser.add_argument("--output", type=Path, help="write the rows as JSON")
    arguments = parser.parse_args()
    rows: list[Row] = []
    print(f"{os.cpu_count()} cores; truth: TTFT {TTFT_MS:g} ms, TPOT {TPOT_MS:g} ms", flush=True)
    print(HEADER, flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        tokenizer = make_tokenizer(Path(scratch) / "tokenizer")
        able = clients(arguments)
        for streams in arguments.streams:
            for client, python in able.items():
                folder = Path(scratch) / f"{client.replace(' ', '-')}-{streams}"
                load = Load(
                    "", tokenizer, streams, arguments.waves * streams,
                    INPUT_TOKENS, OUTPUT_TOKENS, folder,
                )  # fmt: skip
                try:
                    rows.append(measure(client, python, load, arguments.runs))
                except PeerError as problem:
                    print(f"{client}, {streams} streams: {problem}", file=sys.stderr)
                    continue
                print(line(rows[-1]), flush=True)
    missed = verdicts(rows)
    print("\n".join(missed) if missed else "all bars kept; better than every peer that ran")
    if arguments.output:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
