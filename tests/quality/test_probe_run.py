"""Asking a server, and comparing two variants' answers."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from grading_helpers import item

from scripts.lib.quality.asking import ask_probes
from scripts.lib.quality.compare import compare_to_baseline, similarity
from scripts.lib.quality.completions import load_completions, write_completions
from scripts.lib.quality.grading import grade_all, grade_records
from scripts.lib.quality.results import AskedProbes, ItemResult, QualityResult
from scripts.lib.study.models import Quality

WEATHER = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object"}},
}


class Server(ThreadingHTTPServer):
    """An OpenAI-compatible server that answers each prompt as told, and remembers all."""

    def __init__(self, answers):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.bodies = answers, []
        self.running = self.most_running = 0
        self.lock = threading.Lock()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.bodies.append(body)
            self.server.running += 1
            self.server.most_running = max(self.server.most_running, self.server.running)
        time.sleep(0.02)
        status, answer = self.server.answers[body["messages"][-1]["content"]]
        data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
        with self.server.lock:
            self.server.running -= 1
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


def said(text, calls=None, reason="stop"):
    message = {"role": "assistant", "content": text, "tool_calls": calls or []}
    usage = {"prompt_tokens": 9, "completion_tokens": 4}
    return 200, {"choices": [{"message": message, "finish_reason": reason}], "usage": usage}


def asking(name, grader, tools=None, max_tokens=None):
    made = item(grader, tools=tools)
    messages = [{"role": "user", "content": name}]
    return made.model_copy(update={"id": name, "messages": messages, "max_tokens": max_tokens})


ASKED = AskedProbes(variant="v", probe_files={}, settings={})
NUMBER = {"kind": "number", "expected": 42}
TOOL = {"kind": "tool", "expected": [{"name": "get_weather"}]}
CALL = {"id": "1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
ANSWERS = {
    "right": said("It is 42."),
    "wrong": said("41", reason="length"),
    "call": said(None, [CALL]),
    "no parser": (
        400,
        {
            "error": {
                "message": '"auto" tool choice requires --enable-auto-tool-choice',
                "code": 400,
            }
        },
    ),
    "broken": (500, "Internal Server Error"),
    "odd": (200, {"choices": []}),
}


@pytest.fixture
def server():
    server = Server(ANSWERS)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_answers_are_graded_and_errors_are_kept(server, tmp_path):
    items = [
        asking("right", NUMBER, max_tokens=7),
        asking("wrong", NUMBER),
        asking("call", TOOL, [WEATHER]),
        asking("no parser", TOOL, [WEATHER]),
        asking("broken", NUMBER),
        asking("odd", NUMBER),
    ]
    quality = Quality(seed=7, max_tokens=99)
    records = ask_probes(server.url, "m", items, quality, progress=False)
    results = grade_records(ASKED, items, records).items
    assert [r.id for r in results] == [i.id for i in items]
    assert [r.passed for r in results] == [True, False, True, None, None, None]
    assert results[0].output_tokens == 4
    assert results[1].reason == "found 41, expected 42 (cut at max_tokens)"
    assert results[2].tool_calls == [CALL]
    assert "--tool-call-parser" in results[3].error
    assert results[3].reason.startswith("no answer: HTTP 400")
    assert results[4].error == "HTTP 500: Internal Server Error"
    assert results[5].error.startswith("not a chat completion")
    _same_grades_from_the_file(items, results, records, tmp_path)


def _same_grades_from_the_file(items, results, records, folder):
    path = folder / "completions.jsonl.gz"
    write_completions(path, records)
    first = path.read_bytes()
    write_completions(path, records)
    assert path.read_bytes() == first
    assert [p.name for p in folder.iterdir()] == [path.name]
    graded = list(grade_all(items, load_completions(path)))
    assert [(g.id, g.task_success, g.reason) for g in graded] == [
        (r.id, r.task_success, r.reason) for r in results
    ]


def test_what_is_sent(server):
    items = [asking("right", NUMBER, max_tokens=7), asking("call", TOOL, [WEATHER])]
    ask_probes(server.url, "m", items, Quality(seed=7, max_tokens=99), progress=False)
    first, second = server.bodies
    assert first == {
        "model": "m",
        "messages": [{"role": "user", "content": "right"}],
        "max_tokens": 7,
        "temperature": 0.0,
        "top_p": 1.0,
        "seed": 7,
    }
    assert second["max_tokens"] == 99
    assert second["tools"] == [WEATHER]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_at_once_than_asked_for(server, concurrency):
    items = [asking("right", NUMBER).model_copy(update={"id": str(i)}) for i in range(9)]
    quality = Quality(concurrency=concurrency)
    ask_probes(server.url, "m", items, quality, progress=False)
    assert server.most_running <= concurrency
    assert len(server.bodies) == 9


def test_a_server_that_is_gone():
    items = [asking("right", NUMBER)]
    records = ask_probes("http://127.0.0.1:9", "m", items, Quality(), progress=False)
    (result,) = grade_records(ASKED, items, records).items
    assert result.passed is None
    assert records[0]["error"].startswith("ConnectError")


def test_answers_to_other_probes_are_not_graded(server):
    records = ask_probes(server.url, "m", [asking("right", NUMBER)], Quality(), progress=False)
    with pytest.raises(ValueError, match="not those of the probe files"):
        grade_records(ASKED, [asking("wrong", NUMBER)], records)


def test_what_was_not_asked_has_no_grades():
    asked = ASKED.model_copy(update={"not_applicable": "its weights are random"})
    result = grade_records(asked, [asking("right", NUMBER)], [])
    assert (result.items, result.not_applicable) == ([], "its weights are random")


def test_progress_tells_what_is_left(server, capsys):
    ask_probes(server.url, "m", [asking("right", NUMBER)], Quality(), progress=True)
    assert "1/1" in capsys.readouterr().err


def result(name, text, passed, **more):
    return ItemResult(
        id=name,
        axis="a",
        task_success=passed,
        format_ok=None,
        tool_success=None,
        degenerate=False,
        reason="",
        text=text,
        **more,
    )


def study(variant, *items):
    return QualityResult(variant=variant, items=list(items), probe_files={}, settings={})


def test_comparison_with_the_baseline():
    baseline = study(
        "bf16",
        result("same", "Paris", True),
        result("lost", "Rome", True),
        result("gained", "x", False),
        result("both wrong", "41939", False),
        result("failed", "", None, error="HTTP 500"),
        result("not asked of the variant", "x", True),
    )
    variant = study(
        "int4",
        result("same", "Paris", True),
        result("lost", "Roma", False),
        result("gained", "y", True),
        result("both wrong", "41905", False),
        result("failed", "x", True),
    )
    compared = {c.id: c for c in compare_to_baseline(variant, baseline)}
    assert list(compared) == [item.id for item in variant.items]
    assert {i: c.outcome for i, c in compared.items()} == {
        "same": "both right",
        "lost": "lost",
        "gained": "gained",
        "both wrong": "both wrong",
        "failed": "not comparable",
    }
    assert compared["both wrong"].baseline_wrong_too
    assert not compared["lost"].baseline_wrong_too
    assert (compared["same"].identical, compared["same"].similarity) == (True, 1.0)
    assert compared["lost"].similarity == 0.75
    assert (compared["failed"].similarity, compared["failed"].identical) == (None, None)


def test_tool_calls_are_part_of_what_is_said():
    def calling(arguments, call_id):
        call = {"id": call_id, "function": {"name": "f", "arguments": arguments}}
        return result("x", "", True, tool_calls=[call])

    baseline = study("bf16", calling('{"a": 1, "b": 2}', "1"))
    (same,) = compare_to_baseline(study("v", calling('{"b":2,"a":1}', "2")), baseline)
    (other,) = compare_to_baseline(study("v", calling('{"a": 3, "b": 2}', "2")), baseline)
    assert same.identical
    assert not other.identical
    assert 0.5 < other.similarity < 1


def test_similarity_is_that_of_the_formula():
    assert similarity("41,939", "41,905") == pytest.approx(2 * 4 / 12)  # 66.7 %, as published
    assert similarity("", "") == 1.0
    assert similarity("abc", "xyz") == 0.0
    assert similarity("a" * 500 + "b", "a" * 500 + "c") == pytest.approx(1000 / 1002)
