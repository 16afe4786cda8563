"""The HTTP requests of a workload, as bytes."""

from __future__ import annotations

import json
import os
from urllib.parse import urlsplit

from scripts.lib.load.samples import Sample
from scripts.lib.load.wire import Target
from scripts.lib.study.models import Workload


def base_url(url: str) -> str:
    """Return the server's address without a trailing ``/v1``.

    Raises:
        ValueError: It is no http(s) address.
    """
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url}: not the address of a server; give e.g. http://127.0.0.1:8000")
    path = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}"


def target_of(url: str, workload: Workload) -> Target:
    """Build the head of every request; ``OPENAI_API_KEY`` is sent if it is set."""
    parts = urlsplit(base_url(url))
    tls = parts.scheme == "https"
    endpoint = "chat/completions" if workload.endpoint == "chat" else "completions"
    lines = [
        f"POST {parts.path}/v1/{endpoint} HTTP/1.1",
        f"Host: {parts.netloc.rpartition('@')[2]}",
        "Content-Type: application/json",
        "Accept: text/event-stream",
    ]
    if key := os.environ.get("OPENAI_API_KEY"):
        lines.append(f"Authorization: Bearer {key}")
    head = "\r\n".join(lines) + "\r\n"
    port = parts.port or (443 if tls else 80)
    return Target(host=parts.hostname or "", port=port, head=head.encode(), tls=tls)


def body_of(sample: Sample, workload: Workload, model: str, *, usage: bool = True) -> bytes:
    """Return one request's JSON.

    Args:
        sample: Prompt or messages; its output tokens become ``max_tokens``.
        workload: Endpoint, temperature, ``ignore_eos``, the cut of long answers.
        model: The served model's name.
        usage: Ask for the token counts at the stream's end.
    """
    tokens = min(sample.output_tokens, workload.max_output_tokens or sample.output_tokens)
    body: dict[str, object] = {"model": model}
    if workload.endpoint == "chat":
        body["messages"] = sample.messages or [{"role": "user", "content": sample.prompt}]
        body["max_tokens"] = tokens  # every server takes the former name
    else:
        body["prompt"] = sample.prompt
        body["max_tokens"] = tokens
    body["temperature"] = workload.temperature
    body["stream"] = True
    if usage:
        body["stream_options"] = {"include_usage": True}
    if workload.ignore_eos:
        body["ignore_eos"] = True
    return json.dumps(body, ensure_ascii=False).encode()
