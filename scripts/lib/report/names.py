"""How variants are called: never by label alone, always with what really ran."""

from __future__ import annotations

from scripts.lib.analysis.summary import Summary, VariantView
from scripts.lib.plan.models import Verdict
from scripts.lib.report.blocks import Tag, Tone

SYMBOLS = "●■▲◆▼✚✖★◀▶⬟⬢"
"""One per series, drawn in tables; plot.py draws the same shapes."""

TEXT_STYLE = "\N{VARIATION SELECTOR-15}"
"""Keeps a browser from drawing a symbol as an emoji."""

_VERDICT_TONES: dict[str, Tone] = {
    "as expected": "good",
    "degraded": "warn",
    "not what the checkpoint says": "bad",
    "unknown": "muted",
}
_OWN_WORDS = ("runs", "did not", "not ", "failed", "kernel")
_FAILED = {
    "checkpoint": "checkpoint failed",
    "start": "did not start",
    "load": "died under load",
    "quality": "died during the probes",
}
UNKNOWN = "what ran is unknown"


def verdict_tone(verdict: Verdict | None) -> Tone:
    """Return the tone of a kernel verdict; without one it is unknown."""
    return _VERDICT_TONES[verdict.verdict] if verdict else "muted"


def stamp_words(stamp: str) -> str:
    """Return a stamp as it stands beside a label: ``runs as W8A16 (degraded)``."""
    stamp = stamp.strip()
    if not stamp or stamp.lower() == "unknown":
        return UNKNOWN
    return stamp if stamp.lower().startswith(_OWN_WORDS) else f"runs as {stamp}"


class Names:
    """The tags of a study's variants, by name."""

    def __init__(self, summary: Summary) -> None:
        """Give the baseline the first series and the others theirs in the study's order."""
        ordered = sorted(summary.variants, key=lambda variant: not variant.is_baseline)
        verdicts = {verdict.variant: verdict for verdict in summary.verdicts}
        failed: dict[str, str] = {}
        for failure in summary.failures:
            failed.setdefault(failure.variant, failure.stage)
        self._tags = {
            variant.name: _tag(
                variant,
                number,
                "bad" if variant.name in failed else verdict_tone(verdicts.get(variant.name)),
                failed.get(variant.name),
            )
            for number, variant in enumerate(ordered)
        }
        self.baseline = summary.baseline
        self.order = [variant.name for variant in ordered]

    def tag(self, variant: str) -> Tag:
        """Return the tag of a variant; one that the study does not list has an unknown stamp."""
        found = self._tags.get(variant)
        if found is not None:
            return found
        return Tag(variant, UNKNOWN, "muted", len(self._tags), "○", False)

    def text(self, variant: str) -> str:
        """Return a variant's name and stamp as one text."""
        return self.tag(variant).text


def _tag(variant: VariantView, number: int, tone: Tone, failed_at: str | None) -> Tag:
    stamp = stamp_words(variant.stamp)
    if failed_at and stamp == UNKNOWN:
        stamp = _FAILED[failed_at]
    symbol = SYMBOLS[number % len(SYMBOLS)] + TEXT_STYLE
    return Tag(
        variant.label or variant.name,
        stamp,
        tone,
        number,
        symbol,
        variant.is_baseline,
    )
