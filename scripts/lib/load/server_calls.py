"""The few calls to the server beside the load itself."""

from __future__ import annotations

import httpx


def reset_prefix_cache(url: str) -> str | None:
    """Ask the engine to drop its prefix cache.

    vLLM has this route only with ``VLLM_SERVER_DEV_MODE=1``.

    Returns:
        None when it did; otherwise why not, as a sentence.
    """
    try:
        answer = httpx.post(f"{url}/reset_prefix_cache", timeout=30, trust_env=False)
    except httpx.HTTPError as problem:
        return f"the prefix cache could not be reset ({type(problem).__name__})"
    if answer.is_success:
        return None
    return (
        f"the server cannot reset its prefix cache (POST /reset_prefix_cache: HTTP "
        f"{answer.status_code}; vLLM needs VLLM_SERVER_DEV_MODE=1)"
    )
