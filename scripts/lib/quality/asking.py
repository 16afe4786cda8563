"""Asks a server the probes and keeps what it answers; grading is another job."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import httpx
from tqdm import tqdm

from scripts.lib.quality.probes import ProbeItem
from scripts.lib.study.models import Quality

REQUEST_TIMEOUT_S = 300.0
TOOL_FLAGS = "--enable-auto-tool-choice --tool-call-parser NAME (hermes for Qwen and SmolLM2)"

Records = list[dict[str, Any]]


def ask_probes(
    url: str,
    model: str,
    items: Sequence[ProbeItem],
    quality: Quality,
    *,
    progress: bool = True,
) -> Records:
    """Ask every item once, at ``quality.concurrency``.

    Nothing is asked twice: a failed request is a record with its ``error`` and no text.

    Args:
        url: The server's address, e.g. ``http://127.0.0.1:8000``.
        model: The name it serves the model under.
        items: The probe items.
        quality: Seed, concurrency and the ``max_tokens`` of items that set none.
        progress: Whether to show a bar with the time left on standard error.

    Returns:
        ``{id, messages, text, tool_calls, finish_reason, usage, duration_s, error}`` of each
        item, in the order of ``items``; ``duration_s`` from sending to the last byte.
    """
    return asyncio.run(_ask_all(url, model, items, quality, progress=progress))


def request_body(item: ProbeItem, model: str, quality: Quality) -> dict[str, Any]:
    """Return the body of an item's request: greedy decoding, so that it can be repeated."""
    body: dict[str, Any] = {
        "model": model,
        "messages": item.messages,
        "max_tokens": item.max_tokens or quality.max_tokens,
        **settings(quality),
    }
    return body | ({"tools": item.tools} if item.tools else {})


def settings(quality: Quality) -> dict[str, Any]:
    """Return how every probe is decoded."""
    return {"temperature": 0.0, "top_p": 1.0, "seed": quality.seed}


async def _ask_all(
    url: str, model: str, items: Sequence[ProbeItem], quality: Quality, *, progress: bool
) -> Records:
    places = asyncio.Semaphore(quality.concurrency)
    limits = httpx.Limits(max_connections=quality.concurrency)
    with tqdm(
        total=len(items), desc="probes", unit="probe", disable=not progress, mininterval=1
    ) as bar:
        async with httpx.AsyncClient(
            base_url=url, timeout=REQUEST_TIMEOUT_S, limits=limits, trust_env=False
        ) as client:

            async def ask(item: ProbeItem) -> dict[str, Any]:
                async with places:
                    record = await _ask(client, item, request_body(item, model, quality))
                bar.update()
                return record

            return await asyncio.gather(*(ask(item) for item in items))


async def _ask(client: httpx.AsyncClient, item: ProbeItem, body: dict[str, Any]) -> dict[str, Any]:
    """Return the raw completion of one item, or its error."""
    record: dict[str, Any] = {
        "id": item.id,
        "messages": item.messages,
        "text": None,
        "tool_calls": [],
        "finish_reason": None,
    }
    begin = time.perf_counter()
    try:
        response = await client.post("/v1/chat/completions", json=body)
        record |= _answer(response, item)
    except httpx.HTTPError as error:
        record["error"] = f"{type(error).__name__}: {error}".rstrip(": ")
    return record | {"duration_s": round(time.perf_counter() - begin, 4)}


def _answer(response: httpx.Response, item: ProbeItem) -> dict[str, Any]:
    if response.status_code != httpx.codes.OK:
        return {"error": _refusal(response, item)}
    try:
        answer = response.json()
        choice = answer["choices"][0]
        message = choice["message"]
        return {
            "text": message.get("content") or "",
            "tool_calls": message.get("tool_calls") or [],
            "finish_reason": choice.get("finish_reason"),
            "usage": answer.get("usage"),
        }
    except (ValueError, LookupError, TypeError, AttributeError):
        return {"error": f"not a chat completion: {response.text[:200]}"}


def _refusal(response: httpx.Response, item: ProbeItem) -> str:
    """Return why the server refused, with the fix where it is known."""
    try:
        body = response.json()
        message = (body.get("error") or body).get("message") or response.text
    except (ValueError, AttributeError):
        message = response.text
    reason = f"HTTP {response.status_code}: {' '.join(str(message).split())[:300]}"
    if item.tools and response.status_code == httpx.codes.BAD_REQUEST and "tool" in reason:
        return f"{reason}; for tool calls start the server with {TOOL_FLAGS}"
    return reason
