"""Rules about one load point of one variant.

Each returns its evidence, or an empty list when it does not hold or cannot be judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from scripts.lib.analysis import thresholds as limits
from scripts.lib.analysis.material import Material
from scripts.lib.analysis.summary import PointRow
from scripts.lib.analysis.wording import at, number, percent, value_of
from scripts.lib.load.results import Point

WHOLE_LIFE = "over all points the client's mean"
"""How a warning begins that compares the client with one scrape of the engine's histograms."""


def requests_fail(material: Material, row: PointRow) -> list[str]:
    """Requests that did not complete, or out-of-memory errors."""
    evidence = []
    if row.sent is not None and row.completed is not None and row.completed < row.sent:
        failed = row.sent - row.completed
        evidence.append(
            f"failed requests, {at(row)}: {failed:,} of {row.sent:,}{_errors(material, row)}"
        )
    oom = value_of(row, "oom")
    if oom:
        evidence.append(f"out-of-memory errors, {at(row)}: {number(oom)}")
    return evidence


def _errors(material: Material, row: PointRow) -> str:
    counts: dict[str, int] = {}
    for point in _every_run(material, row):
        for message, count in point.errors.items():
            counts[message] = counts.get(message, 0) + count
    if not any(counts.values()):
        return ""
    message = max(counts, key=lambda m: counts[m])
    return f', most often "{message[:160]}" ({counts[message]:,} times)'


def kv_cache_full(_: Material, row: PointRow) -> list[str]:
    """KV cache full while requests wait (with or without preemption)."""
    usage, waiting = value_of(row, "kv_usage_peak"), value_of(row, "waiting_peak")
    if usage is None or waiting is None or usage < limits.KV_FULL or waiting < 1:
        return []
    return [
        f"peak KV-cache usage, {at(row)}: {percent(usage)}",
        f"peak waiting requests, {at(row)}: {number(waiting)}",
    ]


def client_bound(material: Material, row: PointRow) -> list[str]:
    """The client was busy, or sent late."""
    points = raw_points(material, row)
    cpu = _highest(points, lambda p: p.client.cpu_share)
    lag = _highest(points, lambda p: p.client.send_lag_p99_ms)
    evidence = [f"{at(row)}: {r}" for r in row.invalid_reasons if r.startswith("the client ")]
    if evidence:
        return evidence
    if cpu is not None and cpu > limits.CLIENT_CPU_SHARE:
        evidence.append(f"CPU of the busiest client process, {at(row)}: {percent(cpu)} of a core")
    if lag is not None and lag > limits.CLIENT_LAG_MS:
        evidence.append(f"client's send lag p99, {at(row)}: {number(lag)} ms")
    return evidence


def api_server_bound(material: Material, row: PointRow) -> list[str]:
    """Client and engine disagree about latency though the client had time to spare."""
    if client_bound(material, row) or not _client_known(material, row):
        return []
    evidence = [*_ttft_gap(material, row), *_tpot_gap(material, row)]
    utilisation = value_of(row, "gpu_utilisation_mean")
    if evidence and utilisation is not None:
        if utilisation >= limits.IDLE_UTILISATION:
            return []
        evidence.append(f"mean GPU utilisation, {at(row)}: {percent(utilisation)}")
    return evidence


def client_and_engine_disagree(material: Material, row: PointRow) -> list[str]:
    """Client and engine disagree about latency, and what the client did was not recorded."""
    if _client_known(material, row):
        return []
    told = [f"{at(row)}: {w}" for w in row.warnings if w.startswith(WHOLE_LIFE)]
    return [*_ttft_gap(material, row), *_tpot_gap(material, row), *told]


def _client_known(material: Material, row: PointRow) -> bool:
    points = raw_points(material, row)
    return bool(points) and all(point.client.cpu_share is not None for point in points)


def _ttft_gap(material: Material, row: PointRow) -> list[str]:
    client, server = _both_sides(material, row, "ttft")
    if client is None or server is None or server <= 0:
        return []
    gap = client - server
    if gap <= limits.FRONT_END_TTFT_SHARE * server or gap <= limits.FRONT_END_TTFT_MS:
        return []
    return [
        f"mean TTFT, {at(row)}: {number(client)} ms at the client, "
        f"{number(server)} ms in the engine's histogram"
    ]


def _tpot_gap(material: Material, row: PointRow) -> list[str]:
    client, server = _both_sides(material, row, "tpot")
    if client is None or server is None or server <= 0:
        return []
    gap = client - server
    if gap <= limits.FRONT_END_TPOT_SHARE * server or gap <= limits.FRONT_END_TPOT_MS:
        return []
    return [
        f"mean TPOT, {at(row)}: {number(client)} ms at the client, "
        f"{number(server)} ms in the engine's histogram"
    ]


def _both_sides(
    material: Material, row: PointRow, metric: str
) -> tuple[float | None, float | None]:
    pairs = []
    for point in raw_points(material, row):
        client = getattr(point, f"{metric}_ms").mean
        server = getattr(point.server, f"{metric}_mean_ms") if point.server else None
        if client is not None and server is not None:
            pairs.append((client, server))
    if not pairs:
        return None, None
    return sum(c for c, _ in pairs) / len(pairs), sum(s for _, s in pairs) / len(pairs)


def host_bound(material: Material, row: PointRow) -> list[str]:
    """The GPU rests although a closed loop always has a request for it."""
    utilisation, seconds = value_of(row, "gpu_utilisation_mean"), value_of(row, "duration_s")
    if row.kind != "concurrency" or utilisation is None or seconds is None:
        return []
    if utilisation >= limits.HOST_BOUND_UTILISATION or seconds < limits.HOST_BOUND_S:
        return []
    if client_bound(material, row) or api_server_bound(material, row):
        return []
    return [f"mean GPU utilisation, {at(row)}: {percent(utilisation)}"]


def throttled(_: Material, row: PointRow) -> list[str]:
    """The GPU ran with a lowered clock."""
    evidence = []
    for cause in ("", "thermal_", "power_"):
        share = value_of(row, f"{cause}throttled_share")
        if share is not None and share >= limits.THROTTLED_SHARE:
            word = cause.rstrip("_") or "clocks lowered"
            evidence.append(f"GPU throttling ({word}), {at(row)}: {percent(share)} of the time")
    return evidence


def prefix_cache_decisive(_: Material, row: PointRow) -> list[str]:
    """Most prompt tokens came out of the prefix cache."""
    share = value_of(row, "prefix_hit_share")
    if share is None or share < limits.PREFIX_DECISIVE:
        return []
    return [f"prompt tokens found in the prefix cache, {at(row)}: {percent(share)}"]


def prefix_cache_useless(material: Material, row: PointRow) -> list[str]:
    """Prefix caching was asked for and found nothing."""
    variant = material.study.variants.get(row.variant)
    share = value_of(row, "prefix_hit_share")
    if variant is None or not variant.enable_prefix_caching or share is None:
        return []
    if share > limits.PREFIX_USELESS:
        return []
    return [f"prompt tokens found in the prefix cache, {at(row)}: {percent(share)}"]


def raw_points(material: Material, row: PointRow) -> list[Point]:
    """Return the single runs (repetitions, sessions) behind a row's numbers."""
    points = _every_run(material, row)
    return [point for point in points if point.judgeable] if row.left_out else points


def _every_run(material: Material, row: PointRow) -> list[Point]:
    points = []
    for load in material.loads.get((row.variant, row.workload), ()):
        for point in load.points:
            level = point.rate if row.kind == "rate" else point.concurrency
            if row.kind in ("ramp", "trace") or level == row.level:
                points.append(point)
    return points


def _highest(points: Iterable[Point], key: Callable[[Point], float | None]) -> float | None:
    return max((v for v in map(key, points) if v is not None), default=None)
