"""A small streaming server with the manners, good and bad, that servers in the wild have."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Manners:
    """How the server answers. ``fault`` names what every ``fault_every``-th request meets."""

    ttft_s: float = 0.01
    tpot_s: float = 0.002
    chunked: bool = True
    usage: bool = True
    done: bool = True
    role_first: bool = False
    empty_finish: bool = False
    crlf: bool = False
    tokens_per_event: int = 1
    events_per_write: int = 1
    split_writes: bool = False
    close_after: bool = False
    fault: str = ""
    fault_every: int = 0
    metrics: Callable[[], str] | None = None
    reset: bool = False
    stop_after: int | None = None


@dataclass
class Seen:
    requests: list[dict] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    in_flight: int = 0
    peak_in_flight: int = 0
    connections: int = 0
    resets: int = 0


class PlainServer:
    def __init__(self, manners: Manners) -> None:
        self.manners = manners
        self.seen = Seen()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.seen.connections += 1
        try:
            while await self.one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        method, path, _ = head.split(b"\r\n")[0].decode().split(" ")
        length = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        body = await reader.readexactly(length)
        if method == "POST" and path.endswith("completions"):
            self.seen.paths.append(path)
            self.seen.in_flight += 1
            self.seen.peak_in_flight = max(self.seen.peak_in_flight, self.seen.in_flight)
            try:
                return await self.answer(json.loads(body), path, writer)
            finally:
                self.seen.in_flight -= 1
        self.plain(path, writer)
        return True

    def plain(self, path: str, writer: asyncio.StreamWriter) -> None:
        status, text = "404 Not Found", "{}"
        if path == "/metrics" and self.manners.metrics is not None:
            status, text = "200 OK", self.manners.metrics()
        if path == "/reset_prefix_cache" and self.manners.reset:
            self.seen.resets += 1
            status = "200 OK"
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())

    async def answer(self, body: dict, path: str, writer: asyncio.StreamWriter) -> bool:
        manners = self.manners
        number = len(self.seen.requests)
        self.seen.requests.append(body)
        fault = ""
        if manners.fault_every and number % manners.fault_every == manners.fault_every - 1:
            fault = manners.fault
        if fault == "status":
            text = json.dumps({"error": {"message": "model is overloaded", "code": 503}})
            writer.write(f"HTTP/1.1 503 Busy\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
            return True
        if fault == "close":
            return False
        if fault == "hang":
            await asyncio.sleep(60)
        await asyncio.sleep(manners.ttft_s)
        framing = "Transfer-Encoding: chunked\r\n" if manners.chunked else ""
        connection = "Connection: close\r\n" if not manners.chunked or manners.close_after else ""
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{framing}{connection}\r\n"
        writer.write(head.encode())
        pending = b""
        for count, (text, pause) in enumerate(self.events(body, "chat" in path, fault), 1):
            if pause and count > 1:
                await asyncio.sleep(pause)
            pending += self.framed(text)
            if count % manners.events_per_write == 0:
                await self.write(writer, pending)
                pending = b""
            if fault == "reset" and count == 3:
                writer.transport.abort()
                return False
        if manners.chunked:
            pending += b"0\r\n\r\n"
        await self.write(writer, pending)
        return manners.chunked and not manners.close_after

    async def write(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        if not self.manners.split_writes:
            writer.write(data)
            return
        for start in range(0, len(data), 7):
            writer.write(data[start : start + 7])
            await asyncio.sleep(0)

    def framed(self, text: str) -> bytes:
        end = "\r\n" if self.manners.crlf else "\n"
        data = (text + end * 2).encode()
        if not self.manners.chunked:
            return data
        return b"%x\r\n%s\r\n" % (len(data), data)

    def events(self, body: dict, chat: bool, fault: str) -> Iterator[tuple[str, float]]:
        manners = self.manners
        tokens = min(body["max_tokens"], manners.stop_after or body["max_tokens"])

        def event(text: str | None, finish: str | None = None, **delta: str) -> str:
            if chat:
                choice = {"delta": delta | ({"content": text} if text is not None else {})}
            else:
                choice = {"text": text or ""}
            return "data: " + json.dumps({"choices": [{**choice, "finish_reason": finish}]})

        if manners.role_first:
            yield event("", None, role="assistant"), 0
        per_event = manners.tokens_per_event
        for start in range(0, tokens, per_event):
            many = min(per_event, tokens - start)
            last = start + many >= tokens
            if fault == "error_event" and start >= 2:
                yield 'data: {"error": {"message": "engine died", "code": 500}}', 0
                break
            finish = "length" if last and not manners.empty_finish else None
            yield event(" tok" * many, finish), manners.tpot_s * many
        else:
            if manners.empty_finish:
                yield event(None if chat else "", "stop"), 0
            if manners.usage:
                usage = {"prompt_tokens": 7, "completion_tokens": tokens}
                yield "data: " + json.dumps({"choices": [], "usage": usage}), 0
        if manners.done:
            yield "data: [DONE]", 0


@contextmanager
def plain_server(manners: Manners | None = None) -> Iterator[PlainServer]:
    """Run the server in a thread of this process."""
    server = PlainServer(manners or Manners())
    ready, loop = threading.Event(), asyncio.new_event_loop()

    async def main() -> None:
        listening = await asyncio.start_server(server.handle, "127.0.0.1", 0, backlog=512)
        server.port = listening.sockets[0].getsockname()[1]
        ready.set()
        await asyncio.Event().wait()

    def run() -> None:
        asyncio.set_event_loop(loop)
        task = loop.create_task(main())
        server.task = task
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            pass
        finally:
            others = asyncio.all_tasks(loop)
            for other in others:
                other.cancel()
            loop.run_until_complete(asyncio.gather(*others, return_exceptions=True))
            loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(server.task.cancel)
        thread.join(10)
