"""What one scrape of ``/metrics``, taken after all points, says about them as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from scripts.lib.analysis.diagnosis.point_rules import WHOLE_LIFE
from scripts.lib.analysis.import_points import ImportProblem
from scripts.lib.analysis.thresholds import PREFIX_DECISIVE
from scripts.lib.base.counts import total
from scripts.lib.load import limits
from scripts.lib.load.results import Point
from scripts.lib.telemetry.metrics_text import HistogramTotals, Scrape, parse_metrics


def read_scrape(path: Path) -> Scrape:
    """Read a saved scrape.

    Raises:
        ImportProblem: if it cannot be read.
    """
    try:
        return parse_metrics(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ImportProblem(f"{path}: not a scrape of /metrics: {error}") from None


def scrape_warnings(scrape: Scrape, points: Sequence[Point]) -> list[str]:
    """Return what the engine's own counters say against the client's numbers.

    The counters run over the server's whole life: warm-up and other requests are in them, so
    this warns and never judges a single point.
    """
    return [*_latencies(scrape, points), *_prefix_cache(scrape), *_others(scrape, points)]


def _latencies(scrape: Scrape, points: Sequence[Point]) -> Iterator[str]:
    share_of = {"ttft": limits.SERVER_TTFT_SHARE, "tpot": limits.SERVER_TPOT_SHARE}
    for name, share in share_of.items():
        server = _mean_ms(getattr(scrape.histograms, name))
        client = _pooled_ms(points, name)
        if server is None or client is None or server <= 0:
            continue
        if abs(client - server) > share * server:
            yield (
                f"{WHOLE_LIFE} {name.upper()} is {client:.4g} ms, the "
                f"engine's own histogram says {server:.4g} ms"
            )


def _mean_ms(totals: HistogramTotals | None) -> float | None:
    if totals is None or not totals.count or totals.sum_s is None:
        return None
    return 1000 * totals.sum_s / totals.count


def _pooled_ms(points: Sequence[Point], name: str) -> float | None:
    pairs = [(getattr(p, f"{name}_ms").mean, p.completed) for p in points]
    known = [(mean, n) for mean, n in pairs if mean is not None and n is not None]
    everything = sum(n for _, n in known)
    if len(known) < len(pairs) or not everything:
        return None
    return float(sum(mean * n for mean, n in known)) / everything


def _prefix_cache(scrape: Scrape) -> Iterator[str]:
    asked, found = scrape.prefix_cache_queries, scrape.prefix_cache_hits
    if asked and found is not None and found / asked >= PREFIX_DECISIVE:
        yield (
            f"over the server's whole life {100 * found / asked:.0f} % of prompt tokens came from "
            "the prefix cache: points that repeat prompts of earlier ones have a warm TTFT"
        )


def _others(scrape: Scrape, points: Sequence[Point]) -> Iterator[str]:
    histogram = scrape.histograms.e2el
    sent = total(point.sent for point in points)
    if histogram is None or histogram.count is None or not sent:
        return
    if histogram.count > sent * (1 + limits.FOREIGN_REQUESTS_SHARE) + 1:
        yield (
            f"the engine counted {histogram.count:,.0f} requests, the points {sent:,}: warm-up or "
            "somebody else's are in its counters"
        )
