"""What really ran, in the few words that stand beside a variant's name everywhere."""

from __future__ import annotations

from scripts.lib.plan.models import Verdict

UNKNOWN = "unknown"


def stamp_of(verdict: Verdict | None) -> str:
    """Return e.g. ``W8A8-INT8``, ``W8A16-FP8 (degraded)``; ``unknown`` without proof."""
    if verdict is None or verdict.real_scheme == "unknown":
        return UNKNOWN
    scheme = verdict.real_scheme.upper()
    if verdict.verdict == "as expected":
        return scheme
    if verdict.verdict == "unknown":
        return f"{scheme} (not proven)"
    return f"{scheme} ({verdict.verdict})"
