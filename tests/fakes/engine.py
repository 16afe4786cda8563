"""An engine that is none: vLLM's command line, log lines, OpenAI API and /metrics, no model.

For tests of the workflow. What it does is set by environment variables:
FAKE_TTFT_MS and FAKE_TPOT_MS (its pace), FAKE_START_S (time to load), FAKE_FAIL (``oom``:
dies while loading with vLLM's words), FAKE_QUANTIZATION and FAKE_KERNEL (what its log says),
FAKE_DIE_AFTER (requests after which it kills itself with SIGKILL).
"""

import argparse
import contextlib
import http.server
import json
import os
import signal
import sys
import threading
import time

TTFT_S = float(os.environ.get("FAKE_TTFT_MS", "20")) / 1000
TPOT_S = float(os.environ.get("FAKE_TPOT_MS", "10")) / 1000
DIE_AFTER = int(os.environ.get("FAKE_DIE_AFTER", "0"))
BUCKETS = (0.001, 0.01, 0.1, 1.0, 10.0)


class State:
    """What /metrics tells."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running = 0
        self.served = 0
        self.prompt_tokens = 0
        self.generation_tokens = 0
        self.histograms: dict[str, list[float]] = {
            "time_to_first_token_seconds": [],
            "request_time_per_output_token_seconds": [],
            "inter_token_latency_seconds": [],
            "e2e_request_latency_seconds": [],
            "request_queue_time_seconds": [],
        }

    def metrics(self, model: str) -> str:
        label = f'{{engine="0",model_name="{model}"}}'
        gauges = {"num_requests_running": self.running, "num_requests_waiting": 0}
        gauges["kv_cache_usage_perc"] = min(1.0, self.running / 100)
        counters = {
            "num_preemptions_total": 0,
            "prompt_tokens_total": self.prompt_tokens,
            "generation_tokens_total": self.generation_tokens,
            "prefix_cache_queries_total": self.prompt_tokens,
            "prefix_cache_hits_total": 0,
        }
        lines = [f"vllm:{name}{label} {value}" for name, value in {**gauges, **counters}.items()]
        for name, values in self.histograms.items():
            lines.append(f"# TYPE vllm:{name} histogram")
            for bound in (*BUCKETS, float("inf")):
                le = "+Inf" if bound == float("inf") else bound
                count = sum(value <= bound for value in values)
                lines.append(
                    f'vllm:{name}_bucket{{engine="0",le="{le}",model_name="{model}"}} {count}'
                )
            lines.append(f"vllm:{name}_count{label} {len(values)}")
            lines.append(f"vllm:{name}_sum{label} {sum(values)}")
        return "\n".join(lines) + "\n"


STATE = State()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # a delayed acknowledgement would hold the first token back
    model = "m"

    def do_GET(self) -> None:
        if self.path == "/metrics":
            self._send(STATE.metrics(self.model).encode(), "text/plain; version=0.0.4")
        elif self.path == "/v1/models":
            self._send(json.dumps({"data": [{"id": self.model}]}).encode())
        else:
            self._send(b"{}")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}")
        if self.path == "/reset_prefix_cache":
            self._send(b"{}")
        elif "messages" in body and not body.get("stream"):
            self._chat(body)
        else:
            self._stream(body)

    def _chat(self, body: dict) -> None:
        asked = str(body["messages"][-1]["content"])
        text = "The answer is 4." if len(asked) % 2 else "Paris"
        message = {"role": "assistant", "content": text, "tool_calls": []}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": len(asked.split()), "completion_tokens": 4}
        self._send(json.dumps({"id": "1", "choices": [choice], "usage": usage}).encode())

    def _stream(self, body: dict) -> None:
        with STATE.lock:
            STATE.running += 1
            STATE.served += 1
            if DIE_AFTER and STATE.served > DIE_AFTER:
                os.kill(os.getpid(), signal.SIGKILL)
        started = time.monotonic()
        tokens = int(body.get("max_tokens") or 16)
        prompt_tokens = len(str(body.get("prompt") or body.get("messages")).split())
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        chat = "messages" in body
        for index in range(tokens):
            due = started + TTFT_S + index * TPOT_S
            time.sleep(max(0.0, due - time.monotonic()))
            if index == 0:
                first = time.monotonic()
            piece = {"delta": {"content": " w"}} if chat else {"text": " w"}
            last = index == tokens - 1
            piece |= {"index": 0, "finish_reason": "length" if last else None}
            self._event({"choices": [piece]})
        ended = time.monotonic()
        self._event(
            {"choices": [], "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": tokens}}
        )
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")
        tpot = (ended - first) / max(1, tokens - 1)
        with STATE.lock:
            STATE.running -= 1
            STATE.prompt_tokens += prompt_tokens
            STATE.generation_tokens += tokens
            found = STATE.histograms
            found["time_to_first_token_seconds"].append(first - started)
            found["request_time_per_output_token_seconds"].append(tpot)
            found["inter_token_latency_seconds"] += [tpot] * (tokens - 1)
            found["e2e_request_latency_seconds"].append(ended - started)
            found["request_queue_time_seconds"].append(0.0)

    def _event(self, data: dict) -> None:
        self._chunk(b"data: " + json.dumps(data).encode() + b"\n\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _send(self, body: bytes, kind: str = "application/json") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def say(process: str, text: str) -> None:
    print(
        f"({process} pid={os.getpid()}) INFO {time.strftime('%m-%d %H:%M:%S')} {text}", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    arguments, _ = parser.parse_known_args()
    Handler.model = arguments.served_model_name
    quantization = os.environ.get("FAKE_QUANTIZATION", "None")
    say("APIServer", "[api_utils.py:339]   █▄█▀ █     █     █     █  version 0.32.0")
    say(
        "EngineCore",
        f"[core.py:114] Initializing a V1 LLM engine (v0.32.0) with config: model='m', "
        f"dtype=torch.bfloat16, max_seq_len=2048, tensor_parallel_size=1, "
        f"quantization={quantization}, enforce_eager=True, kv_cache_dtype=auto, device_config=cpu",
    )
    if kernel := os.environ.get("FAKE_KERNEL"):
        say("EngineCore", f"[__init__.py:500] {kernel}")
    time.sleep(float(os.environ.get("FAKE_START_S", "0")))
    if os.environ.get("FAKE_FAIL") == "oom":
        print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", flush=True)
        sys.exit(1)
    say("EngineCore", "[kv_cache_utils.py:2395] CPU KV cache size: 23,296 tokens, "
        "Maximum concurrency for 2,048 tokens per request: 11.38x")  # fmt: skip
    server = Server((arguments.host, arguments.port), Handler)
    print(f"(APIServer pid={os.getpid()}) INFO:     Application startup complete.", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()


main()
