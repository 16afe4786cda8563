from __future__ import annotations

import json
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.lib.load.stream import parse_answer, parse_head

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
CLOSE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def text_event(text: str, finish: str | None = None, end: bytes = b"\n\n") -> bytes:
    choice = {"index": 0, "text": text, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}, ensure_ascii=False).encode() + end


def delta_event(delta: dict, finish: str | None = None) -> bytes:
    return (
        b"data: "
        + json.dumps({"choices": [{"delta": delta, "finish_reason": finish}]}).encode()
        + b"\n\n"
    )


def usage_event(completion: int, prompt: int = 5) -> bytes:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    return b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def whole(events: list[bytes], head: bytes = HEAD) -> bytes:
    return head + b"".join(chunk(event) for event in events) + b"0\r\n\r\n"


def parse(events: list[bytes], *, closed: bool = False):
    """Parse with one piece an event; event k comes at time k + 1, the head at 0."""
    pieces = [HEAD, *(chunk(event) for event in events), b"0\r\n\r\n"]
    return parse_answer(pieces, [float(t) for t in range(len(pieces))], closed=closed)


def test_plain_completion():
    record = parse([text_event(" a"), text_event(" b", "length"), usage_event(2), DONE])
    assert record.ok
    assert record.error is None
    assert record.token_times == [1.0, 2.0]
    assert (record.input_tokens, record.output_tokens, record.tokens_from) == (5, 2, "usage")
    assert record.finish_reason == "length"


def test_role_only_first_event_is_no_token():
    record = parse(
        [
            delta_event({"role": "assistant", "content": ""}),
            delta_event({"content": "a"}),
            delta_event({"content": "b"}, "stop"),
            usage_event(2),
            DONE,
        ]
    )
    assert record.token_times == [2.0, 3.0]


def test_role_and_text_in_one_event_is_a_token():
    record = parse([delta_event({"role": "assistant", "content": "a"}, "stop"), DONE])
    assert record.token_times == [1.0]


@pytest.mark.parametrize(
    "delta",
    [{"reasoning_content": "hm"}, {"reasoning": "hm"}, {"tool_calls": [{"index": 0}]}],
)
def test_reasoning_and_tool_calls_are_tokens(delta: dict):
    record = parse([delta_event(delta), delta_event({"content": "x"}, "stop"), DONE])
    assert record.token_times == [1.0, 2.0]


def test_end_token_counts_when_usage_says_so():
    events = [text_event("a"), text_event("b"), text_event("", "stop")]
    assert parse([*events, usage_event(3), DONE]).token_times == [1.0, 2.0, 3.0]
    assert parse([*events, usage_event(2), DONE]).token_times == [1.0, 2.0]
    without_usage = parse([*events, DONE])
    assert without_usage.token_times == [1.0, 2.0]
    assert (without_usage.output_tokens, without_usage.tokens_from) == (2, "events")


def test_half_characters_are_tokens_when_usage_has_room():
    events = [text_event(""), text_event("한"), text_event("a", "length")]
    assert parse([*events, usage_event(3), DONE]).token_times == [1.0, 2.0, 3.0]
    assert parse([*events, usage_event(2), DONE]).token_times == [2.0, 3.0]


def test_only_an_end_token():
    record = parse([text_event("", "stop"), usage_event(1), DONE])
    assert record.ok
    assert record.token_times == [1.0]


def test_merged_tokens_keep_the_servers_count():
    record = parse([text_event(" a b c"), text_event(" d", "length"), usage_event(4), DONE])
    assert record.output_tokens == 4
    assert record.token_times == [1.0, 2.0]


def test_continuous_usage_takes_the_last():
    event = {"choices": [{"text": "a"}], "usage": {"completion_tokens": 1, "prompt_tokens": 3}}
    last = {
        "choices": [{"text": "b", "finish_reason": "stop"}],
        "usage": {"completion_tokens": 2, "prompt_tokens": 3},
    }
    record = parse([f"data: {json.dumps(e)}\n\n".encode() for e in (event, last)] + [DONE])
    assert record.output_tokens == 2


def test_null_usage_is_no_usage():
    event = {"choices": [{"text": "a", "finish_reason": "stop"}], "usage": None}
    record = parse([f"data: {json.dumps(event)}\n\n".encode(), DONE])
    assert record.tokens_from == "events"


def test_comments_other_fields_and_joined_data_lines():
    odd = b": ping\n\n" + b'event: message\ndata: {"choices":\ndata: [{"text": "a"}]}\nid: 1\n\n'
    record = parse([odd, text_event("b", "stop"), DONE])
    assert record.token_times == [1.0, 2.0]
    assert record.ok


@pytest.mark.parametrize("end", [b"\r\n\r\n", b"\n\n", b"\r\r"])
def test_line_ends(end: bytes):
    record = parse([text_event("a", end=end), text_event("b", "stop", end), b"data: [DONE]" + end])
    assert record.ok
    assert record.token_times == [1.0, 2.0]


def test_missing_done_with_a_finish_reason_is_regular():
    assert parse([text_event("a"), text_event("b", "stop")]).ok


def test_stream_without_any_end_is_not_ok():
    record = parse([text_event("a"), text_event("b")])
    assert not record.ok
    assert "without a finish reason" in str(record.error)


def test_last_event_without_blank_line():
    record = parse([text_event("a"), text_event("b", "stop", end=b"")])
    assert record.ok
    assert record.token_times == [1.0, 2.0]


@pytest.mark.parametrize(
    "event",
    [
        b'data: {"error": {"message": "CUDA out of memory", "code": 500}}\n\n',
        b'data: {"object": "error", "message": "CUDA out of memory"}\n\n',
        b'data: {"error": "CUDA out of memory"}\n\n',
    ],
)
def test_error_event(event: bytes):
    record = parse([text_event("a"), event, DONE])
    assert not record.ok
    assert record.error == "the server sent an error: CUDA out of memory"
    assert record.token_times == [1.0]


def test_cut_stream():
    record = parse_answer([HEAD, chunk(text_event("a")), chunk(text_event("b"))[:9]], [0, 1, 2])
    assert not record.ok
    assert record.error == "the connection ended in the middle of the stream"
    assert record.token_times == [1]


def test_done_but_cut_terminator_is_ok():
    record = parse_answer([HEAD, chunk(text_event("a", "stop")) + chunk(DONE)], [0, 1])
    assert record.ok


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"", "the connection ended before an answer came"),
        (b"HTTP/1.1 200 O", "the connection ended before an answer came"),
        (b"SSH-2.0-x\r\n\r\n", "the server's answer is not HTTP: SSH-2.0-x"),
        (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "HTTP 404"),
        (
            b'HTTP/1.1 400 Bad\r\ncontent-length: 31\r\n\r\n{"error": {"message": "too big"}}',
            'HTTP 400: {"error": {"message": "too big"',
        ),
        (
            b'HTTP/1.1 400 Bad\r\ncontent-length: 33\r\n\r\n{"error": {"message": "too big"}}',
            "HTTP 400: too big",
        ),
        (b"HTTP/1.1 502 X\r\ncontent-length: 6\r\n\r\n<html>", "HTTP 502: <html>"),
    ],
)
def test_no_stream(raw: bytes, error: str):
    record = parse_answer([raw] if raw else [], [0.0] if raw else [])
    assert not record.ok
    assert record.error == error
    assert record.token_times == []


def test_interim_answer_is_skipped():
    head = parse_head(b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD)
    assert head is not None
    assert head.status == 200
    assert head.chunked


def test_chunk_extensions_and_trailers():
    body = b"".join(b"%X;x=1\r\n%s\r\n" % (len(e), e) for e in (text_event("a", "stop"), DONE))
    record = parse_answer([HEAD + body + b"0\r\nX-Sum: 1\r\n\r\n"], [1.0])
    assert record.ok


EVENTS = st.lists(
    st.one_of(
        st.text(max_size=8).map(text_event),
        st.text(min_size=1, max_size=8).map(lambda t: text_event(t, end=b"\r\n\r\n")),
        st.just(b": ping\n\n"),
        st.sampled_from(["a", ""]).map(lambda t: delta_event({"role": "assistant", "content": t})),
    ),
    max_size=12,
)


@given(data=st.data(), events=EVENTS, chunked=st.booleans(), with_usage=st.booleans())
def test_any_split_of_the_bytes_gives_the_same_record(data, events, chunked, with_usage):
    events = [*events, text_event("z", "length")]
    if with_usage:
        events.append(usage_event(len(events)))
    events.append(DONE)
    raw = whole(events) if chunked else CLOSE_HEAD + b"".join(events)
    cuts = data.draw(st.lists(st.integers(0, len(raw)), max_size=40).map(sorted))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True) if a < b]
    times = [float(end) for end in accumulate(len(piece) for piece in pieces)]
    single = [raw[i : i + 1] for i in range(len(raw))]
    exact = parse_answer(single, [float(i + 1) for i in range(len(raw))], closed=True)
    record = parse_answer(pieces, times, closed=True)
    assert exact.ok
    for name in ("status", "input_tokens", "output_tokens", "finish_reason", "ok", "error"):
        assert getattr(record, name) == getattr(exact, name)
    # Each event's time is the end of the piece that holds its last byte.
    expected = [next(t for t in times if t >= moment) for moment in exact.token_times]
    assert record.token_times == expected


@given(raw=st.binary(max_size=300), head=st.sampled_from([b"", HEAD, CLOSE_HEAD]))
def test_any_bytes_give_a_record(raw: bytes, head: bytes):
    record = parse_answer([head + raw], [1.0])
    assert record.ok or record.error
