"""The plan as a table for people."""

from __future__ import annotations

from scripts.lib.plan.gpus import GIB
from scripts.lib.plan.models import Estimate, Plan

MISSING = "not estimated"
HEADER = (
    "variant",
    "expected path",
    "weights GiB (ideal, real)",
    "KV tokens",
    "max requests",
    "fits",
    "TPOT floor ms",
    "compute-bound from",
    "starts",
    "requests",
    "hours",
    "USD",
)


def render_plan(plans: list[Plan]) -> str:
    """Return the plans as an aligned Markdown table, then what to look out for, as sentences."""
    rows = [HEADER, *(_row(plan) for plan in plans)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    lines = [_line(row, widths) for row in rows]
    lines.insert(1, _line(tuple("-" * width for width in widths), widths))
    devices = sorted({plan.device for plan in plans})
    versions = sorted({plan.engine_version or "the latest rules" for plan in plans})
    title = f"Plan for {', '.join(devices)}, vLLM {', '.join(versions)}"
    parts = [title, "\n".join(lines), _totals(plans), *_sections(plans)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _row(plan: Plan) -> tuple[str, ...]:
    return (
        plan.variant,
        _path(plan),
        _weights(plan),
        _number(plan.kv_cache_tokens, "{:,.0f}"),
        _number(plan.max_concurrency, "{:.2f}"),
        {True: "yes", False: "NO", None: "unknown"}[plan.fits],
        _number(plan.tpot_floor_ms, "{:.2f}"),
        _number(plan.compute_bound_from, "{:.0f}"),
        str(plan.server_starts),
        str(plan.requests),
        _number(plan.hours, "{:.2f}"),
        _number(plan.cost_usd, "{:.2f}"),
    )


def _path(plan: Plan) -> str:
    expected = plan.expected
    if expected.kind == "unknown":
        return f"unknown ({plan.promised_scheme})" if plan.promised_scheme else "unknown"
    families = f" via {'/'.join(expected.kernel_families[:2])}" if expected.kernel_families else ""
    return f"{expected.kind}: {expected.scheme}{families}"


def _weights(plan: Plan) -> str:
    if plan.ideal_weight_bytes is None or plan.real_weight_bytes is None:
        return MISSING
    return f"{plan.ideal_weight_bytes / GIB:.2f}, {plan.real_weight_bytes / GIB:.2f}"


def _number(estimate: Estimate | None, form: str) -> str:
    return MISSING if estimate is None else form.format(estimate.value)


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "| " + " | ".join(padded) + " |"


def _totals(plans: list[Plan]) -> str:
    starts = sum(plan.server_starts for plan in plans)
    requests = sum(plan.requests for plan in plans)
    total = f"In all: {starts} server starts, {requests:,} requests"
    hours = [plan.hours.value for plan in plans if plan.hours]
    dollars = [plan.cost_usd.value for plan in plans if plan.cost_usd]
    if len(hours) == len(plans):
        total += f", about {sum(hours):.2f} hours"
    if dollars and len(dollars) == len(plans):
        total += f" and {sum(dollars):.2f} USD"
    if len(hours) == len(plans):
        total += (
            " for starts and load; quality probes, downloads and making checkpoints come on top"
        )
    return total + "."


def _sections(plans: list[Plan]) -> list[str]:
    paths = [f"- {plan.variant}: {plan.expected.why}" for plan in plans]
    lookout = [f"- {plan.variant}: {warning}" for plan in plans for warning in _notes(plan)]
    missing: dict[str, list[str]] = {}
    for plan in plans:
        for key, why in plan.not_estimated.items():
            missing.setdefault(f"{key}: {why}", []).append(plan.variant)
    gaps = [f"- {text} ({', '.join(names)})" for text, names in missing.items()]
    titled = (
        ("Expected paths:", paths),
        ("Look out:", lookout),
        ("Not estimated:", gaps),
    )
    return ["\n".join([title, *lines]) for title, lines in titled if lines]


def _notes(plan: Plan) -> list[str]:
    return ([plan.fits_why] if plan.fits is False else []) + plan.warnings
