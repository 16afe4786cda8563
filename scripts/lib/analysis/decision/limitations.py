"""What a reader must know before trusting the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from scripts.lib.analysis.decision.operating import judged_rows
from scripts.lib.analysis.decision.ranking import Ranking, noise_of
from scripts.lib.analysis.diagnosis.study_rules import starved_baseline
from scripts.lib.analysis.material import Material
from scripts.lib.analysis.points.remarks import cut_words, fold_remarks
from scripts.lib.analysis.summary import PointRow
from scripts.lib.analysis.thresholds import ASSUMED_NOISE
from scripts.lib.analysis.wording import at, listed, number, percent
from scripts.lib.engine.flags import asks_for_random_weights
from scripts.lib.study.slo import PERCENTILE_FLOORS
from scripts.lib.study.workload import REQUESTS_PER_CONCURRENCY

SAID_ELSEWHERE = (
    "few requests:",
    "cut short:",
    "requests are fewer than",
    *(f"needs {floor} requests, there are" for floor in PERCENTILE_FLOORS.values()),
)
"""Warnings of a load point that a limitation of the whole study repeats."""


def limitations(material: Material, chosen: str | None, ranking: Ranking) -> list[str]:
    """Return the limitations of the measurements behind a decision, one sentence each."""
    found = []
    for source in SOURCES:
        found += list(source(material))
    if chosen is not None:
        rows = ranking.rows.get(chosen, {})
        found += [*_about_rows(rows), *_about_boundary(material, chosen)]
    several = ranking.metric is not None and len(ranking.scores) > 1
    if several and noise_of(material, ranking.metric or "") is None:
        found.append(
            "The noise between repeats was not measured: differences up to "
            f"{percent(ASSUMED_NOISE)} count as ties."
        )
    return list(dict.fromkeys(found))


def _host(material: Material) -> Iterator[str]:
    if material.host is None:
        yield "The machine is not recorded."
    elif not material.host.gpus:
        reason = material.host.no_gpu_reason or ""
        if "not recorded" in reason:
            yield f"The machine's GPU is not known: {reason}"
        else:
            yield (
                "Measured on a CPU: neither speeds nor ratios carry over to a GPU, where other "
                "kernels run."
            )


def _kernels(material: Material) -> Iterator[str]:
    for variant, verdict in material.verdicts.items():
        if verdict.verdict == "degraded":
            yield f"{variant} ran degraded, as {verdict.real_scheme}: {verdict.summary}"
        elif verdict.verdict == "unknown":
            yield f"What {variant} really ran is not proven: {verdict.summary}"
    unknown = [v for v in material.study.variants if v not in material.verdicts]
    if unknown:
        yield f"No kernel verdict for {listed(unknown)}."


def _dummy_weights(material: Material) -> Iterator[str]:
    for variant, spec in material.study.variants.items():
        manifest = material.manifests.get(spec.checkpoint)
        asked = asks_for_random_weights(spec, material.study.engine_of(variant))
        if asked or (manifest and manifest.dummy_weights):
            yield (
                f"{variant} has random weights: speed and memory are real, answers, their lengths "
                "and its quality are not."
            )


def _other_inputs(material: Material) -> Iterator[str]:
    """Say where equal prompts were not the same tokens for a variant and the baseline."""
    study = material.study
    base = material.manifests.get(study.variants[study.baseline].checkpoint)
    for variant, spec in study.variants.items():
        own = material.manifests.get(spec.checkpoint)
        if own is None or base is None:
            continue
        if differ(own.tokenizer_fingerprint, base.tokenizer_fingerprint):
            yield (
                f"{variant} has another tokenizer than {study.baseline}: equal texts are other "
                "tokens, so token counts and rates do not compare like with like."
            )
        if differ(own.chat_template_fingerprint, base.chat_template_fingerprint):
            yield (
                f"{variant} has another chat template than {study.baseline}: it was asked the "
                "quality probes in other words."
            )


def differ(own: str | None, reference: str | None) -> bool:
    """Return whether two fingerprints are known and not the same."""
    return None not in (own, reference) and own != reference


def _repetitions(material: Material) -> Iterator[str]:
    rows = [row for row in material.points if row.valid]
    if rows and all(row.runs == 1 for row in rows):
        yield (
            "Each load point was run once: there is no spread between repeats, and no difference "
            "is backed by statistics."
        )
    elif any(row.runs == 1 for row in rows):
        count = sum(row.runs == 1 for row in rows)
        yield f"{count} of {len(rows)} load points were run only once."


def _few_requests(material: Material) -> Iterator[str]:
    short = [
        row
        for row in material.points
        if row.kind == "concurrency"
        and row.sent
        and row.sent < REQUESTS_PER_CONCURRENCY * row.level * row.runs
    ]
    if short:
        yield (
            f"Fewer than {REQUESTS_PER_CONCURRENCY} requests per stream: {_where(short)}; start "
            "and end of the run weigh heavily."
        )


def _where(rows: list[PointRow]) -> str:
    """Say of which variants at which concurrency rows are; variants alike together."""
    levels: dict[str, set[float]] = {}
    for row in rows:
        levels.setdefault(row.variant, set()).add(row.level)
    alike: dict[tuple[float, ...], list[str]] = {}
    for variant, found in levels.items():
        alike.setdefault(tuple(sorted(found)), []).append(variant)
    return "; ".join(
        f"{listed(variants)} at concurrency {listed([number(level) for level in found])}"
        for found, variants in alike.items()
    )


def _cut(material: Material) -> Iterator[str]:
    """Say which variants' points were ended by the time limit of a point."""
    cut: dict[tuple[str, str], list[str]] = {}
    for row in material.points:
        if words := cut_words(row):
            short = words.removeprefix("cut: ")
            cut.setdefault((row.variant, row.workload), []).append(f"{short} at {at(row)}")
    for (variant, workload), places in cut.items():
        yield (
            f"point_time_limit_s cut {variant} short on {workload} ({listed(places)}, each run): "
            "it is compared over fewer requests, and other prompts, than a whole run has."
        )


def _withheld(material: Material) -> Iterator[str]:
    found = [
        (row.variant, metric)
        for row in material.points
        for metric, value in row.metrics.items()
        if value.missing and value.missing.startswith("too few")
    ]
    if found:
        names = listed(sorted({metric for _, metric in found}))
        whose = listed(list(dict.fromkeys(variant for variant, _ in found)))
        yield (
            f"Too few requests of {whose} for some percentiles: {names} are withheld where marked."
        )


def _invalid(material: Material) -> Iterator[str]:
    bad = [row for row in material.points if not row.valid]
    if bad:
        reasons = list(dict.fromkeys(r for row in bad for r in row.invalid_reasons))
        yield (
            f"{len(bad)} of {len(material.points)} load points are invalid and were left out: "
            f"{'; '.join(reasons[:3])}"
        )


def _left_out(material: Material) -> Iterator[str]:
    rows = [row for row in material.points if row.left_out]
    if rows:
        count = sum(len(row.left_out) for row in rows)
        runs = "run was" if count == 1 else "runs were"
        first = f"{rows[0].variant} on {rows[0].workload}, {at(rows[0])}: {rows[0].left_out[0]}"
        yield f"{count} {runs} disturbed and left out of the numbers; the first, {first}"


def _not_measured(material: Material) -> Iterator[str]:
    rows = material.points
    lonely = [v for v in material.study.variants if not any(r.variant == v for r in rows)]
    broken = {f.variant for f in material.failures}
    silent = [v for v in lonely if v not in broken]
    if silent:
        yield f"No load was measured for {listed(silent)}."
    if material.study.quality is None:
        yield "Quality was not measured: the study asks for none."


def _long_context(material: Material) -> Iterator[str]:
    for variant, spec in material.study.variants.items():
        view = material.quality_of(variant)
        axes = {axis.axis for axis in view.axes} if view else set()
        fp8_cache = (spec.kv_cache_dtype or "").startswith("fp8")
        if fp8_cache and not any("long" in axis for axis in axes):
            yield f"{variant} has an FP8 KV cache and no long-context probe looked at it."


def _starved(material: Material) -> Iterator[str]:
    for variant, workload, where, _ in starved_baseline(material):
        yield (
            f"Starved baseline: {variant}'s KV cache cannot hold {workload} at {where}, another's "
            "can; part of the difference is memory, not speed."
        )


def _attached(material: Material) -> Iterator[str]:
    attached = {
        variant: load
        for (variant, _), loads in material.loads.items()
        for load in loads
        if load.url_kind == "attached"
    }
    imported = {str(r.dataset["source"]) for r in attached.values() if "source" in r.dataset}
    if imported:
        yield (
            f"Imported, not measured by this workflow: {listed(sorted(imported))}. How the client "
            "behaved, what else ran and how warm the caches were is not recorded."
        )
    elif attached:
        yield (
            f"{listed(sorted(attached))}: measured on a server that already ran; its flags and "
            "earlier load are not known."
        )


SOURCES: tuple[Callable[[Material], Iterator[str]], ...] = (
    _host,
    _dummy_weights,
    _other_inputs,
    _kernels,
    _repetitions,
    _few_requests,
    _cut,
    _withheld,
    _invalid,
    _left_out,
    _not_measured,
    _long_context,
    _starved,
    _attached,
)


def _about_rows(rows: dict[str, PointRow]) -> Iterator[str]:
    for workload, row in rows.items():
        for warning in fold_remarks(row.warnings):
            if not any(words in warning for words in SAID_ELSEWHERE):
                yield f"{row.variant} on {workload}, {at(row)}: {warning}"


def _about_boundary(material: Material, chosen: str) -> Iterator[str]:
    if not material.study.slo.limits_anything:
        yield "No limits were set: how far each variant may be loaded is not judged."
        return
    for workload in material.study.workloads:
        rows = judged_rows(material, chosen, workload)
        if not rows:
            continue
        failed = next((row for row in rows if row.slo_pass is False), None)
        passed = [row for row in rows if row.slo_pass]
        if failed is None:
            yield (
                f"{workload}: the limit of {chosen} was not found; it still keeps the SLO at "
                f"{at(rows[-1])}, the highest load judged."
            )
        elif passed and failed.level > passed[-1].level > 0:
            yield (
                f"{workload}: the limit of {chosen} lies between {number(passed[-1].level)} and "
                f"{number(failed.level)}; nothing in between was measured."
            )
