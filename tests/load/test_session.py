from __future__ import annotations

import gzip
import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
from plain_server import Manners, plain_server

from scripts.lib.load.processes import ClientProcesses
from scripts.lib.load.progress import Silent
from scripts.lib.load.results import REQUEST_FIELDS, LoadResult, Point
from scripts.lib.load.samples import DatasetError
from scripts.lib.load.session import LoadSession
from scripts.lib.study.models import Slo, SloSearch, Workload

RANDOM = {"random": {"input_tokens": 8, "output_tokens": 6}}


@pytest.fixture(autouse=True, scope="module")
def _shared_clients():
    """Starting a client process takes most of a small session's time: start each size once."""
    started: dict[int, ClientProcesses] = {}

    def clients(count: int) -> ClientProcesses:
        if count not in started:
            started[count] = ClientProcesses(count)
            started[count].close = lambda: None  # type: ignore[method-assign]
        return started[count]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scripts.lib.load.session.ClientProcesses", clients)
        yield
    for group in started.values():
        ClientProcesses.close(group)


def measure(
    url: str, folder: Path, tokenizer: Path, spec: dict, scrape=None, **options
) -> LoadResult:
    workload = Workload.model_validate({"warmup_requests": 0, **spec})
    session = LoadSession(
        workload,
        model="m",
        tokenizer=tokenizer,
        project=folder,
        output=folder / "out",
        progress=Silent(),
        **options,
    )
    try:
        return session.run(url, scrape=scrape)
    finally:
        session.close()


def blamed_on_server(point: Point) -> list[str]:
    """Without what a busy test machine does to the client itself."""
    return [reason for reason in point.invalid_reasons if not reason.startswith("the client ")]


def lines(folder: Path) -> list[dict]:
    with gzip.open(folder / "out" / "requests.jsonl.gz", "rt") as file:
        return [json.loads(line) for line in file]


@pytest.mark.parametrize(
    "manners",
    [
        Manners(),
        Manners(chunked=False),
        Manners(usage=False),
        Manners(done=False),
        Manners(role_first=True),
        Manners(empty_finish=True),
        Manners(crlf=True),
        Manners(tokens_per_event=3),
        Manners(events_per_write=4),
        Manners(split_writes=True),
        Manners(close_after=True),
        Manners(usage=False, chunked=False, role_first=True, events_per_write=9),
    ],
    ids=repr,
)
def test_every_manner_of_server_is_understood(manners, tmp_path, tokenizer_folder):
    with plain_server(manners) as server:
        spec = {"dataset": RANDOM, "concurrency": [4], "requests_per_point": 12}
        if manners.role_first:
            spec["endpoint"] = "chat"
        point = measure(server.url, tmp_path, tokenizer_folder, spec).points[0]
    assert (point.sent, point.completed, point.failed) == (12, 12, 0)
    assert blamed_on_server(point) == []
    assert point.output_tokens == 72 if manners.usage or manners.tokens_per_event == 1 else 24
    assert server.seen.peak_in_flight == 4
    assert point.ttft_ms.mean is not None
    assert point.ttft_ms.mean >= 10
    assert bool([w for w in point.warnings if "no usage" in w or "gave no" in w]) != manners.usage


def test_records_and_result_agree(tmp_path, tokenizer_folder):
    with plain_server() as server:
        spec = {
            "dataset": RANDOM,
            "concurrency": [1, 3],
            "requests_per_point": [3, 9],
            "repetitions": 2,
        }
        origin = time.monotonic()
        result = measure(server.url, tmp_path, tokenizer_folder, spec, origin=origin)
    rows = lines(tmp_path)
    assert [(p.concurrency, p.repetition) for p in result.points] == [
        (1, 1),
        (3, 1),
        (3, 2),
        (1, 2),
    ]
    assert len(rows) == 24
    assert all(tuple(row) == REQUEST_FIELDS for row in rows)
    events = np.load(tmp_path / "out" / "itl.npz")
    assert len(events["offsets"]) == 25
    for number, point in enumerate(result.points):
        mine = [(i, row) for i, row in enumerate(rows) if row["point"] == number]
        assert [row["index"] for _, row in mine] == list(range(point.sent))
        ttft = [1000 * (r["first_token_s"] - r["sent_s"]) for _, r in mine]
        assert point.ttft_ms.mean == pytest.approx(np.mean(ttft), abs=0.01)
        assert point.ttft_ms.p95 == pytest.approx(np.percentile(ttft, 95), abs=0.01)
        tpot = [1000 * (r["last_token_s"] - r["first_token_s"]) / 5 for _, r in mine]
        assert point.tpot_ms.mean == pytest.approx(np.mean(tpot), abs=0.01)
        assert point.duration_s == pytest.approx(
            max(r["last_token_s"] for _, r in mine) - min(r["sent_s"] for _, r in mine), abs=1e-4
        )
        for line, row in mine:
            times = events["times_s"][events["offsets"][line] : events["offsets"][line + 1]]
            assert len(times) == row["chunks"] == 6
            assert times[0] == pytest.approx(row["first_token_s"])
    assert result.origin_unix_s == pytest.approx(time.time() - (time.monotonic() - origin), abs=1)
    assert result.model == "m"
    assert LoadResult.model_validate_json(result.model_dump_json()) == result


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("status", "HTTP 503: model is overloaded"),
        ("error_event", "the server sent an error: engine died"),
        ("reset", "the connection "),
        ("close", "the connection ended before an answer came"),
    ],
)
def test_faults_are_counted_and_make_the_point_invalid(fault, error, tmp_path, tokenizer_folder):
    with plain_server(Manners(fault=fault, fault_every=5)) as server:
        spec = {"dataset": RANDOM, "concurrency": [3], "requests_per_point": 20}
        point = measure(server.url, tmp_path, tokenizer_folder, spec).points[0]
    assert point.sent == 20
    assert point.completed + point.failed == 20
    if fault == "close":  # a kept connection that closes before it answers is tried once more
        assert any("sent again" in warning for warning in point.warnings)
        return
    assert point.failed == 4
    assert not point.valid
    assert sum(point.errors.values()) == 4
    assert all(found.startswith(error) for found in point.errors)
    assert point.ttft_ms.n == 16
    assert any("4 of 20 requests failed" in reason for reason in point.invalid_reasons)
    bad = [row for row in lines(tmp_path) if not row["ok"]]
    assert len(bad) == 4
    assert all(row["error"] for row in bad)


def test_a_hanging_request_times_out(tmp_path, tokenizer_folder):
    with plain_server(Manners(fault="hang", fault_every=4)) as server:
        spec = {
            "dataset": RANDOM,
            "concurrency": [2],
            "requests_per_point": 4,
            "request_timeout_s": 0.5,
        }
        point = measure(server.url, tmp_path, tokenizer_folder, spec).points[0]
    assert point.errors == {"no end of the answer within 0.5 s": 1}


def test_no_server(tmp_path, tokenizer_folder):
    spec = {"dataset": RANDOM, "concurrency": [2], "requests_per_point": 4}
    point = measure("http://127.0.0.1:9", tmp_path, tokenizer_folder, spec).points[0]
    assert point.completed == 0
    assert not point.valid
    assert point.ttft_ms.mean is None
    assert "no connection to the server" in point.invalid_reasons[0]


def test_warm_up_is_sent_and_not_counted(tmp_path, tokenizer_folder):
    with plain_server() as server:
        spec = {"dataset": RANDOM, "concurrency": [2], "requests_per_point": 4}
        result = measure(server.url, tmp_path, tokenizer_folder, {**spec, "warmup_requests": None})
    assert len(server.seen.requests) == 4 + 4
    assert result.points[0].sent == 4
    assert result.warmup["requests"] == 4
    prompts = [body["prompt"] for body in server.seen.requests]
    assert len(set(prompts)) == 8  # varied, and none of the measured ones


def test_request_bodies(tmp_path, tokenizer_folder):
    with plain_server() as server:
        spec = {"dataset": RANDOM, "concurrency": [1], "requests_per_point": 1}
        measure(server.url + "/v1", tmp_path, tokenizer_folder, {**spec, "ignore_eos": True})
        measure(server.url, tmp_path, tokenizer_folder, {**spec, "endpoint": "chat"})
    plain, chat = server.seen.requests
    assert server.seen.paths == ["/v1/completions", "/v1/chat/completions"]
    assert plain["model"] == "m"
    assert plain["max_tokens"] == 6
    assert plain["stream"] is True
    assert plain["ignore_eos"] is True
    assert plain["temperature"] == 0
    assert plain["stream_options"] == {"include_usage": True}
    assert chat["messages"][0]["content"] == plain["prompt"]
    assert "ignore_eos" not in chat


def test_open_loop_counts_from_the_intended_time(tmp_path, tokenizer_folder):
    with plain_server(Manners(ttft_s=0.05, tpot_s=0.01)) as server:
        spec = {
            "dataset": RANDOM,
            "rate": [50],
            "arrival": {"process": "constant"},
            "requests_per_point": 40,
            "max_concurrency": 2,
        }
        point = measure(server.url, tmp_path, tokenizer_folder, spec).points[0]
    rows = lines(tmp_path)
    gaps = np.diff([row["intended_s"] for row in rows])
    assert gaps == pytest.approx(0.02, abs=1e-4)
    assert server.seen.peak_in_flight == 2
    assert point.peak_in_flight == 2
    assert point.rate == 50
    assert point.achieved_rate is not None
    assert point.achieved_rate < 25
    waited = [row["sent_s"] - row["intended_s"] for row in rows]
    assert waited[-1] > 0.3  # the cap made it queue here, and its latency says so
    assert point.ttft_ms.mean == pytest.approx(
        1000 * np.mean([r["first_token_s"] - r["intended_s"] for r in rows]), abs=0.01
    )
    assert any("did not keep up" in warning for warning in point.warnings)


def test_open_loop_without_cap_sends_on_time(tmp_path, tokenizer_folder):
    spec = {"dataset": RANDOM, "rate": [100], "requests_per_point": 60}
    lags = []
    for _ in range(3):  # a busy test machine may hold the client up, but not each time
        with plain_server(Manners(ttft_s=0.3)) as server:
            point = measure(server.url, tmp_path, tokenizer_folder, spec).points[0]
        assert point.completed == 60
        assert server.seen.peak_in_flight > 15
        lags.append(point.client.send_lag_p99_ms)
        if lags[-1] < 20:
            break
    assert min(lags) < 20


def test_ramp_and_trace(tmp_path, tokenizer_folder):
    trace = tmp_path / "trace.jsonl"
    rows = [
        {"timestamp_s": 100.2, "input_tokens": 5, "output_tokens": 3},
        {"timestamp_s": 100.0, "prompt": "the server answers", "output_tokens": 4},
        {"timestamp_s": 100.35, "input_tokens": 7, "output_tokens": 2},
    ]
    trace.write_text("\n".join(map(json.dumps, rows)))
    with plain_server() as server:
        result = measure(
            server.url, tmp_path, tokenizer_folder, {"dataset": {"trace": "trace.jsonl"}}
        )
        times = [row["intended_s"] for row in lines(tmp_path)]
        ramp = {"start_rate": 20, "end_rate": 200, "requests": 30}
        ramped = measure(server.url, tmp_path, tokenizer_folder, {"dataset": RANDOM, "ramp": ramp})
    assert [body["max_tokens"] for body in server.seen.requests[:3]] == [4, 3, 2]
    assert np.diff(times) == pytest.approx([0.2, 0.15], abs=1e-5)
    assert result.points[0].rate is None
    assert ramped.points[0].completed == 30


def test_fewer_prompts_than_requests(tmp_path, tokenizer_folder):
    file = tmp_path / "own.jsonl"
    file.write_text('{"prompt": "a b c"}\n{"prompt": "d e f", "output_tokens": 3}\n')
    with plain_server() as server:
        spec = {
            "dataset": {"jsonl": "own.jsonl"},
            "concurrency": [1],
            "requests_per_point": 5,
            "max_output_tokens": 8,
        }
        result = measure(server.url, tmp_path, tokenizer_folder, spec)
    assert [b["prompt"] for b in server.seen.requests] == ["a b c", "d e f"] * 2 + ["a b c"]
    assert [b["max_tokens"] for b in server.seen.requests] == [8, 3, 8, 3, 8]
    assert result.dataset["distinct_prompts"] == 2
    assert "in cycles" in str(result.dataset["warning"])


class Histograms:
    """What a server's /metrics would say, with a knob to make it lie."""

    def __init__(self, ttft_s: float, tpot_s: float, foreign: int = 0) -> None:
        self.calls = 0
        self.ttft_s, self.tpot_s, self.foreign = ttft_s, tpot_s, foreign

    def __call__(self) -> dict:
        self.calls += 1
        done = 0 if self.calls % 2 else 10 + self.foreign
        return {
            "preemptions": 3,
            "prefix_cache_queries": done * 8,
            "prefix_cache_hits": done * 4,
            "histograms": {
                "ttft": {"count": done, "sum_s": done * self.ttft_s},
                "tpot": {"count": done, "sum_s": done * self.tpot_s},
                "itl": {"count": None, "sum_s": None},
            },
        }


@pytest.mark.parametrize(
    ("histograms", "reason"),
    [
        (Histograms(0.01, 0.02), "client and server disagree: mean TTFT"),
        (Histograms(0.1, 0.002), "client and server disagree: mean TPOT"),
        (Histograms(0.1, 0.02, foreign=5), "somebody else was using it"),
    ],
)
def test_the_servers_own_histograms_are_compared(histograms, reason, tmp_path, tokenizer_folder):
    with plain_server(Manners(ttft_s=0.1, tpot_s=0.02)) as server:
        spec = {"dataset": RANDOM, "concurrency": [2], "requests_per_point": 10}
        point = measure(server.url, tmp_path, tokenizer_folder, spec, histograms).points[0]
    assert point.server is not None
    assert point.server.preemptions == 0
    assert point.server.itl_mean_ms is None
    assert point.server.prefix_cache_hits == 4 * (10 + histograms.foreign)
    assert any("50.0% of the prompt tokens came from the prefix cache" in w for w in point.warnings)
    assert any("VLLM_SERVER_DEV_MODE" in warning for warning in point.warnings)
    assert not point.valid
    assert any(reason in found for found in point.invalid_reasons)


@pytest.mark.parametrize("reset", [True, False])
def test_prompts_are_reused_only_if_the_cache_was_reset(reset, tmp_path, tokenizer_folder):
    with plain_server(Manners(reset=reset)) as server:
        spec = {
            "dataset": RANDOM,
            "concurrency": [1, 2],
            "requests_per_point": 3,
            "repetitions": 2,
            "warmup_requests": 2,
        }
        result = measure(server.url, tmp_path, tokenizer_folder, spec)
    prompts = [body["prompt"] for body in server.seen.requests]
    assert len(prompts) == 2 + 4 * 3
    assert len(set(prompts)) == (2 + 3 if reset else 2 + 4 * 3)
    assert result.dataset["distinct_prompts"] == (3 if reset else 12)


def test_a_broken_scrape_is_no_server_view(tmp_path, tokenizer_folder):
    def scrape() -> dict:
        raise RuntimeError("connection refused")

    with plain_server(Manners(reset=True)) as server:
        spec = {"dataset": RANDOM, "concurrency": [1, 2], "requests_per_point": 2}
        result = measure(server.url, tmp_path, tokenizer_folder, spec, scrape)
    assert result.points[0].server is None
    assert server.seen.resets == 2


def test_boundary_search_adds_points(tmp_path, tokenizer_folder, monkeypatch):
    """The server answers one request at a time, so TTFT grows with the concurrency."""
    monkeypatch.setattr("scripts.lib.load.points.client_reasons", lambda *_, **__: [])

    with plain_server(Manners(ttft_s=0.0, tpot_s=0.0)) as server:
        gate = None

        async def answer(body, path, writer, real=server.answer):
            import asyncio

            nonlocal gate
            gate = gate or asyncio.Lock()
            async with gate:
                await asyncio.sleep(0.01)
                return await real(body, path, writer)

        server.answer = answer
        spec = {"dataset": RANDOM, "concurrency": [1, 16], "requests_per_point": [6, 32]}
        result = measure(
            server.url,
            tmp_path,
            tokenizer_folder,
            spec,
            slo=Slo(ttft_mean_ms=75),
            slo_search=SloSearch(resolution=2, max_points=6),
        )
    planned = [p.concurrency for p in result.points if p.origin == "plan"]
    added = [p.concurrency for p in result.points if p.origin == "slo_search"]
    assert planned == [1, 16]
    assert added[0] == 8
    assert 2 <= len(added) <= 4
    kept = [p.concurrency for p in result.points if (p.ttft_ms.mean or 0) <= 75]
    missed = [p.concurrency for p in result.points if (p.ttft_ms.mean or 0) > 75]
    assert min(missed) - max(kept) <= 2


def test_several_processes_share_a_point(tmp_path, tokenizer_folder, monkeypatch):
    monkeypatch.setattr("scripts.lib.load.session.processes_needed", lambda *_: 2)
    with plain_server() as server:
        spec = {"dataset": RANDOM, "concurrency": [5, 1], "requests_per_point": [20, 3]}
        result = measure(server.url, tmp_path, tokenizer_folder, spec)
    assert [p.client.processes for p in result.points] == [2, 1]
    assert [p.completed for p in result.points] == [20, 3]
    assert server.seen.peak_in_flight == 5
    assert len({body["prompt"] for body in server.seen.requests}) == 23


def test_clients_end_with_the_session(tmp_path, tokenizer_folder, monkeypatch):
    monkeypatch.setattr("scripts.lib.load.session.ClientProcesses", ClientProcesses)
    workload = Workload.model_validate({"dataset": RANDOM, "concurrency": [1]})
    session = LoadSession(
        workload,
        model="m",
        tokenizer=tokenizer_folder,
        project=tmp_path,
        output=tmp_path,
        progress=Silent(),
    )
    session.prepare()
    assert session._clients is not None
    pids = [process.pid for process in session._clients._processes]
    session.close()
    session.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"dataset": {"sharegpt": "none.json"}}, "none.json: no such file"),
        ({"dataset": {"jsonl": "bad.jsonl"}}, "line 2 is not JSON"),
    ],
)
def test_dataset_errors_are_sentences(spec, sentence, tmp_path, tokenizer_folder):
    (tmp_path / "bad.jsonl").write_text('{"prompt": "x"}\n{"prompt": \n')
    with pytest.raises(DatasetError, match=sentence):
        measure("http://127.0.0.1:9", tmp_path, tokenizer_folder, {**spec, "concurrency": [1]})


def test_missing_tokenizer(tmp_path):
    spec = {"dataset": RANDOM, "concurrency": [1]}
    with pytest.raises(DatasetError, match=r"tokenizer\.json: no such file"):
        measure("http://127.0.0.1:9", tmp_path, tmp_path, spec)
