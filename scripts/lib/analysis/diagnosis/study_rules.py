"""Rules about the study as a whole; each yields (variant, workload, where, evidence)."""

from __future__ import annotations

from collections.abc import Iterator

from scripts.lib.analysis import thresholds as limits
from scripts.lib.analysis.diagnosis.point_rules import raw_points
from scripts.lib.analysis.material import Material
from scripts.lib.analysis.summary import PointRow
from scripts.lib.analysis.wording import at, load_words, number, percent
from scripts.lib.base.counts import share, total

Observation = tuple[str | None, str | None, str, list[str]]


def server_failed(material: Material) -> Iterator[Observation]:
    """A server that did not start, or died."""
    for row in material.failures:
        if row.failure.kind == "degraded":
            continue  # it ran; the study did not want it measured
        evidence = [f"{row.failure.kind}: {row.failure.line}"]
        if row.failure.hint:
            evidence.append(f"hint: {row.failure.hint}")
        yield row.variant, None, f"stage: {row.stage}", evidence


def kv_tokens(material: Material, variant: str) -> float | None:
    """Return the KV-cache tokens that the engine printed for a variant."""
    for row in material.ledger:
        if row.variant == variant and row.kv_cache_tokens.value is not None:
            return row.kv_cache_tokens.value
    startup = material.startups.get(variant)
    return startup.facts.kv_tokens if startup else None


def tokens_per_request(material: Material, row: PointRow) -> float | None:
    """Return the mean input + output tokens of the completed requests behind a row."""
    points = raw_points(material, row)
    tokens = total(count for p in points for count in (p.input_tokens, p.output_tokens))
    return share(tokens, total(p.completed for p in points))


def starved_baseline(material: Material) -> Iterator[Observation]:
    """The baseline's KV cache cannot hold a tested concurrency that another's can."""
    baseline = material.study.baseline
    held = kv_tokens(material, baseline)
    roomier = {
        v: tokens
        for v in material.study.variants
        if (tokens := kv_tokens(material, v)) is not None and v != baseline
    }
    if held is None or not roomier:
        return
    for workload in material.study.workloads:
        for row in material.rows(baseline, workload):
            each = tokens_per_request(material, row)
            if row.kind != "concurrency" or each is None:
                continue
            needed = row.level * each
            winners = [v for v, tokens in roomier.items() if held < needed <= tokens]
            if winners:
                yield baseline, workload, at(row), _starved_words(row, each, held, roomier, winners)


def _starved_words(
    row: PointRow, each: float, held: float, roomier: dict[str, float], winners: list[str]
) -> list[str]:
    return [
        f"tokens in flight, {at(row)}: {number(row.level)} requests x {number(each)} tokens = "
        f"{number(row.level * each)}",
        f"KV-cache tokens of {row.variant}: {number(held)}",
        *(f"KV-cache tokens of {v}: {number(roomier[v])}" for v in winners),
    ]


def smaller_but_slower(material: Material) -> Iterator[Observation]:
    """Fewer bytes of weights than the baseline, and yet slower tokens beyond the noise."""
    sizes = {r.variant: r.weights_gib.value for r in material.ledger}
    for variant in material.study.variants:
        smaller = _size_words(material, variant, sizes)
        if smaller is None:
            continue
        for workload in material.study.workloads:
            slower = [
                c
                for c in material.comparisons
                if (c.variant, c.workload, c.metric) == (variant, workload, "tpot_mean_ms")
                and c.outcome == "worse"
            ]
            if slower:
                kinds = {r.level: r.kind for r in material.rows(variant, workload)}
                words = [load_words(kinds.get(c.level, "concurrency"), c.level) for c in slower]
                lines = [
                    f"mean TPOT against {material.study.baseline}, {where}: x {number(c.ratio)}"
                    for where, c in zip(words, slower, strict=True)
                ]
                yield variant, workload, ", ".join(words), [smaller, *lines]


def _size_words(material: Material, variant: str, sizes: dict[str, float | None]) -> str | None:
    """Return how much smaller the weights are: as loaded, else as stored; None: not smaller."""
    baseline = material.study.baseline
    if variant == baseline:
        return None
    own, base = sizes.get(variant), sizes.get(baseline)
    where = "loaded weights"
    if own is None or base is None:
        own, base, where = _stored(material, variant), _stored(material, baseline), "weight files"
    if own is None or base is None or own >= base:
        return None
    return f"{where}: {number(own)} GiB, {baseline}: {number(base)} GiB"


def _stored(material: Material, variant: str) -> float | None:
    manifest = material.manifests.get(material.study.variants[variant].checkpoint)
    return share(manifest.real_bytes, 2**30) if manifest else None


def other_lengths(material: Material) -> Iterator[Observation]:
    """Answers clearly longer or shorter than the baseline's at the same load."""
    baseline = material.study.baseline
    for workload in material.study.workloads:
        base = {r.level: _mean_output(material, r) for r in material.rows(baseline, workload)}
        for variant in material.study.variants:
            if variant == baseline:
                continue
            hits = [
                (row, own, reference)
                for row in material.rows(variant, workload)
                if (own := _mean_output(material, row)) and (reference := base.get(row.level))
                if abs(own / reference - 1) >= limits.LENGTH_CHANGE
            ]
            if hits:
                evidence = [
                    f"mean output tokens, {at(row)}: {number(own)}, {baseline}: "
                    f"{number(reference)} ({'+' if own > reference else '-'}"
                    f"{percent(abs(own / reference - 1))})"
                    for row, own, reference in hits
                ]
                yield variant, workload, ", ".join(at(row) for row, *_ in hits), evidence


def _mean_output(material: Material, row: PointRow) -> float | None:
    points = raw_points(material, row)
    return share(total(p.output_tokens for p in points), total(p.completed for p in points))
