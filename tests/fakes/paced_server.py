"""An OpenAI-compatible streaming server of known pace, light enough to share two cores.

    python tests/fakes/paced_server.py --port 8123 --ttft-ms 200 --tpot-ms 30

Each request's first token goes out ``ttft`` after the request was read and the others ``tpot``
apart, whatever the load. One timer wheel drives all streams; every token is one prebuilt
chunk written straight to the socket. ``GET /truth`` says what was really kept: the delays
from reading a request to writing its tokens.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import re
import time
from collections import defaultdict

import uvloop

MAX_TOKENS = re.compile(rb'"max_(?:completion_)?tokens": ?(\d+)')
LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


class Pace:
    """Times, what the answers look like, and what was kept."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.ttft_s = options.ttft_ms / 1000
        self.tpot_s = options.tpot_ms / 1000
        self.usage = not options.no_usage
        self.metrics_scale = options.metrics_scale
        self.loop = asyncio.get_running_loop()
        self.wheel: dict[int, list[Stream]] = defaultdict(list)
        self.timer: asyncio.TimerHandle | None = None
        self.timer_tick = 0
        self.ttfts: list[float] = []
        self.tpots: list[float] = []
        self.e2els: list[float] = []
        self.tokens = 0
        self.prompts = 0
        self.running = 0
        self.pieces = {chat: self._piece(chat) for chat in (False, True)}

    def _piece(self, chat: bool) -> bytes:
        return chunk(event(self.message(chat, [self.choice(chat, None)])))

    def message(self, chat: bool, choices: list, **more: object) -> dict[str, object]:
        kind = "chat.completion.chunk" if chat else "text_completion"
        return {
            "id": "c-1",
            "object": kind,
            "created": 1,
            "model": "paced",
            "choices": choices,
        } | more

    def choice(self, chat: bool, finish: str | None) -> dict[str, object]:
        text = {"delta": {"content": " word"}} if chat else {"text": " word"}
        return {"index": 0, "finish_reason": finish} | text

    def last(self, chat: bool, tokens: int) -> bytes:
        text = chunk(event(self.message(chat, [self.choice(chat, "length")])))
        if self.usage:
            usage = {
                "prompt_tokens": 32,
                "completion_tokens": tokens,
                "total_tokens": 32 + tokens,
            }
            text += chunk(event(self.message(chat, [], usage=usage)))
        return text + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"

    def add(self, stream: Stream, due_s: float) -> None:
        tick = round(due_s * 1000)
        self.wheel[tick].append(stream)
        if self.timer is None or tick < self.timer_tick:
            self._arm(tick)

    def _arm(self, tick: int) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer_tick = tick
        self.timer = self.loop.call_later(max(0.0, tick / 1000 - time.monotonic()), self._turn)

    def _turn(self) -> None:
        self.timer = None
        now = round(time.monotonic() * 1000)
        for tick in sorted(tick for tick in self.wheel if tick <= now):
            for stream in self.wheel.pop(tick):
                stream.step()
        if self.wheel:
            self._arm(min(self.wheel))

    def truth(self) -> dict[str, object]:
        def spread(values: list[float]) -> dict[str, float]:
            if not values:
                return {}
            ordered = sorted(values)
            at = min(len(ordered) - 1, int(0.99 * len(ordered)))
            return {
                "mean": 1000 * sum(ordered) / len(ordered),
                "p50": 1000 * ordered[len(ordered) // 2],
                "p99": 1000 * ordered[at],
                "max": 1000 * ordered[-1],
            }

        return {
            "requests": len(self.e2els),
            "ttft_ms": spread(self.ttfts),
            "tpot_ms": spread(self.tpots),
            "e2el_ms": spread(self.e2els),
            "cpu_s": time.process_time(),
        }

    def metrics(self) -> bytes:
        lines = [
            f'vllm:num_requests_running{{engine="0",model_name="paced"}} {self.running}',
            'vllm:num_requests_waiting{engine="0",model_name="paced"} 0',
            'vllm:kv_cache_usage_perc{engine="0",model_name="paced"} 0.1',
            'vllm:num_preemptions_total{engine="0",model_name="paced"} 0',
            'vllm:prefix_cache_queries_total{engine="0",model_name="paced"} 0',
            'vllm:prefix_cache_hits_total{engine="0",model_name="paced"} 0',
            f'vllm:prompt_tokens_total{{engine="0",model_name="paced"}} {self.prompts}',
            f'vllm:generation_tokens_total{{engine="0",model_name="paced"}} {self.tokens}',
        ]
        for name, values in (
            ("time_to_first_token_seconds", self.ttfts),
            ("request_time_per_output_token_seconds", self.tpots),
            ("inter_token_latency_seconds", self.tpots),
            ("e2e_request_latency_seconds", self.e2els),
        ):
            labels = 'engine="0",model_name="paced"'
            total = sum(values) * self.metrics_scale
            lines += [
                f"# TYPE vllm:{name} histogram",
                f'vllm:{name}_bucket{{{labels},le="+Inf"}} {len(values)}',
                f"vllm:{name}_count{{{labels}}} {len(values)}",
                f"vllm:{name}_sum{{{labels}}} {total}",
            ]
        return ("\n".join(lines) + "\n").encode()


class Stream(asyncio.Protocol):
    """One connection; one request at a time."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.buffer = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.fd = transport.get_extra_info("socket").fileno()

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        found = LENGTH.search(self.buffer, 0, end)
        length = int(found.group(1)) if found else 0
        if len(self.buffer) < end + 4 + length:
            return
        head, body = self.buffer[:end], self.buffer[end + 4 : end + 4 + length]
        self.buffer = self.buffer[end + 4 + length :]
        if head.startswith(b"POST /v1/"):
            self.begin(b"chat" in head[:30], body)
        else:
            self.plain(head.split(b" ", 2)[1])

    def begin(self, chat: bool, body: bytes) -> None:
        found = MAX_TOKENS.search(body)
        self.left = self.tokens = int(found.group(1)) if found else 16
        self.chat = chat
        self.read_s = time.monotonic()
        self.first_s = 0.0
        self.due_s = self.read_s + self.pace.ttft_s
        self.pace.running += 1
        self.pace.prompts += 32
        self.pace.add(self, self.due_s)

    def step(self) -> None:
        """Write the token that is due and ask for the next turn."""
        if self.transport is None:
            self.pace.running -= 1
            return
        pace = self.pace
        first = self.left == self.tokens
        self.left -= 1
        data = pace.pieces[self.chat] if self.left else pace.last(self.chat, self.tokens)
        self.write(HEAD + data if first else data)
        now = time.monotonic()
        if first:
            self.first_s = now
            pace.ttfts.append(now - self.read_s)
        if self.left:
            self.due_s += pace.tpot_s
            pace.add(self, self.due_s)
            return
        pace.running -= 1
        pace.tokens += self.tokens
        pace.e2els.append(now - self.read_s)
        if self.tokens > 1:
            pace.tpots.append((now - self.first_s) / (self.tokens - 1))

    def write(self, data: bytes) -> None:
        try:
            sent = os.write(self.fd, data)
        except BlockingIOError:
            sent = 0
        except OSError:
            return
        if sent < len(data) and self.transport is not None:
            self.transport.write(data[sent:])

    def plain(self, path: bytes) -> None:
        assert self.transport is not None
        kind = b"application/json"
        if path == b"/v1/models":
            body = json.dumps({"object": "list", "data": [{"id": "paced"}]}).encode()
        elif path == b"/truth":
            body = json.dumps(self.pace.truth()).encode()
        elif path == b"/metrics":
            body, kind = self.pace.metrics(), b"text/plain"
        else:
            body = b"{}"
        known = path in (b"/v1/models", b"/truth", b"/metrics", b"/health", b"/reset_prefix_cache")
        self.transport.write(
            b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s"
            % (b"200 OK" if known else b"404 Not Found", kind, len(body), body)
        )


async def serve(options: argparse.Namespace) -> None:
    pace = Pace(options)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Stream(pace), "127.0.0.1", options.port, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    gc.freeze()
    gc.disable()
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any free one, printed")
    parser.add_argument("--ttft-ms", type=float, default=200)
    parser.add_argument("--tpot-ms", type=float, default=30)
    parser.add_argument("--no-usage", action="store_true")
    parser.add_argument("--metrics-scale", type=float, default=1.0, help="1: honest histograms")
    uvloop.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
