"""What each variant's start-up cost and left room for, beside what was planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scripts.lib.analysis.summary import LedgerRow, Value
from scripts.lib.engine.startup import Startup
from scripts.lib.plan.models import Plan
from scripts.lib.study.models import Study

NOT_IN_LOG = "the server's log does not say"
NO_LOG = "there is no log, and nobody noted it"


@dataclass(frozen=True)
class Start:
    """One start of a variant's server and the file that tells of it."""

    startup: Startup
    source: str


def build_ledger(
    study: Study, starts: Mapping[str, Sequence[Start]], plans: Mapping[str, Plan]
) -> list[LedgerRow]:
    """Return one row per variant that was started, in the study's order.

    Memory is the same at every start, so the first start that became ready speaks (the first
    one at all where none did). Times are those of that start: whether the page cache was warm
    is not known, so they are recorded and never compared.
    """
    rows = [
        _row(name, _speaker(starts[name]), len(starts[name]), plans.get(name))
        for name in study.variants
        if starts.get(name)
    ]
    baseline = next((row for row in rows if row.variant == study.baseline), None)
    return [_with_ratios(row, baseline) for row in rows]


def _speaker(starts: Sequence[Start]) -> Start:
    return next((s for s in starts if s.startup.ready), starts[0])


def _row(name: str, start: Start, starts: int, plan: Plan | None) -> LedgerRow:
    facts = start.startup.facts
    silent = NOT_IN_LOG if facts.evidence else NO_LOG

    def fact(value: float | None) -> Value:
        return Value(value=float(value)) if value is not None else Value(missing=silent)

    def planned(key: str) -> Value:
        if plan is None:
            return Value(missing="no plan was made")
        estimate = getattr(plan, key)
        return Value(missing="not estimated") if estimate is None else Value(value=estimate.value)

    ready_s = start.startup.ready_s
    return LedgerRow(
        variant=name,
        weights_gib=fact(facts.weights_gib),
        kv_cache_tokens=fact(facts.kv_tokens),
        max_concurrency=fact(facts.max_concurrency),
        planned_weights_gib=planned("weights_gib"),
        planned_kv_cache_tokens=planned("kv_cache_tokens"),
        ready_s=Value(missing="it never became ready" if not start.startup.ready else silent)
        if ready_s is None
        else Value(value=ready_s, n=starts),
        model_load_s=fact(facts.model_load_s),
        compile_s=fact(facts.compile_s),
        graph_capture_gib=fact(facts.graph_capture_gib),
        source=start.source,
    )


def _with_ratios(row: LedgerRow, baseline: LedgerRow | None) -> LedgerRow:
    """Add ratios to the baseline to memory; never to loading times."""
    if baseline is None:
        return row
    update = {}
    for name in ("weights_gib", "kv_cache_tokens", "max_concurrency"):
        value, reference = getattr(row, name), getattr(baseline, name).value
        if value.value is not None and reference:
            ratio = value.value / reference
            update[name] = value.model_copy(update={"ratio_to_baseline": ratio})
    return row.model_copy(update=update)
