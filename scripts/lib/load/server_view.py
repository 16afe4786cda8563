"""What the engine itself counted over a point: the difference of two scrapes of ``/metrics``."""

from __future__ import annotations

from collections.abc import Mapping

from scripts.lib.load.requests import Requests
from scripts.lib.load.results import ServerView


def server_view(before: Mapping[str, object], after: Mapping[str, object]) -> ServerView:
    """Subtract two scrapes: the engine's means and counts over the window between them.

    Args:
        before: Scrape before the point, keys as ``read_metrics`` prints.
        after: Scrape after it.
    """
    return ServerView(
        ttft_mean_ms=_histogram_mean_ms(before, after, "ttft"),
        tpot_mean_ms=_histogram_mean_ms(before, after, "tpot"),
        itl_mean_ms=_histogram_mean_ms(before, after, "itl"),
        e2el_mean_ms=_histogram_mean_ms(before, after, "e2el"),
        queue_mean_ms=_histogram_mean_ms(before, after, "queue_time"),
        prompt_tokens=_difference(before, after, "prompt_tokens"),
        generation_tokens=_difference(before, after, "generation_tokens"),
        preemptions=_difference(before, after, "preemptions"),
        prefix_cache_queries=_difference(before, after, "prefix_cache_queries"),
        prefix_cache_hits=_difference(before, after, "prefix_cache_hits"),
    )


def without_one_token_answers(
    server: ServerView | None, counted: int | None, requests: Requests
) -> ServerView | None:
    """Take answers of one token out of the server's mean TPOT: vLLM counts each as 0 s."""
    if server is None or server.tpot_mean_ms is None or counted is None:
        return server
    single = int((requests.ok & (requests.output_tokens == 1)).sum())
    if not single:
        return server
    left = counted - single
    mean = server.tpot_mean_ms * counted / left if left > 0 else None
    return server.model_copy(update={"tpot_mean_ms": mean})


def requests_counted(before: Mapping[str, object], after: Mapping[str, object]) -> int | None:
    """Return how many first tokens the server counted between two scrapes."""
    counts = [_histogram(scrape, "ttft").get("count") for scrape in (before, after)]
    if counts[0] is None or counts[1] is None:
        return None
    return round(counts[1] - counts[0])


def _histogram(scrape: Mapping[str, object], name: str) -> Mapping[str, float | None]:
    histograms = scrape.get("histograms")
    found = histograms.get(name) if isinstance(histograms, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _histogram_mean_ms(
    before: Mapping[str, object], after: Mapping[str, object], name: str
) -> float | None:
    old, new = _histogram(before, name), _histogram(after, name)
    if new.get("count") is None or new.get("sum_s") is None:
        return None
    count = (new["count"] or 0) - (old.get("count") or 0)
    total_s = (new["sum_s"] or 0) - (old.get("sum_s") or 0)
    return total_s / count * 1000 if count > 0 else None


def _difference(
    before: Mapping[str, object], after: Mapping[str, object], key: str
) -> float | None:
    old, new = before.get(key), after.get(key)
    if not isinstance(new, int | float):
        return None
    return float(new) - (float(old) if isinstance(old, int | float) else 0.0)
