"""The headline and the reasons of a decision, each said once and in a reader's words."""

from __future__ import annotations

from scripts.lib.analysis.summary import Candidate, Decision, Summary
from scripts.lib.report.numbers import sentence

_OPEN = {
    "starts": "not started",
    "fits": "not known whether it fits",
    "kernel": "what ran is not known",
    "quality": "quality not proven",
    "slo": "SLO not judged",
}


def headline(made: Decision) -> str:
    """Return the headline's first sentence; the reasons say the rest."""
    return sentence(made.headline.partition(". ")[0])


def reasons(summary: Summary) -> list[str]:
    """Return each reason of the decision once, as sentences.

    What follows the headline's first sentence stands first, unless it only joins the reasons.
    Without a recommendation and without reasons, those of the rejected variants stand here.
    """
    made = summary.decision
    told = _in_words(made) or _rejections(summary)
    rest = made.headline.partition(". ")[2]
    joined = made.variant is None and bool(told)
    if not rest or joined or any(rest.rstrip(".") in reason for reason in made.reasons):
        return [sentence(reason) for reason in told]
    return [sentence(rest), *[sentence(reason) for reason in told]]


def _in_words(made: Decision) -> list[str]:
    told = list(made.reasons)
    for candidate in made.candidates:
        told = _reworded(told, candidate)
    return told


def _reworded(told: list[str], candidate: Candidate) -> list[str]:
    """Name the undecided gates in words; that no SLO was judged follows from no valid point."""
    undecided = {gate.gate: gate.why for gate in candidate.gates if gate.passed is None}
    for name, why in undecided.items():
        raw = f"{name} undecided: {why}"
        if name == "slo" and "valid" in undecided:
            told = [one for one in told if not one.endswith(raw)]
        else:
            words = f"{_OPEN[name]}: {why}" if name in _OPEN else why
            told = [one.replace(raw, words) for one in told]
    return told


def _rejections(summary: Summary) -> list[str]:
    if summary.decision.variant is not None:
        return []
    labels = {view.name: view.label for view in summary.variants}
    return [
        f"{labels.get(variant) or variant}: {' '.join(map(sentence, whys))}"
        for variant, whys in summary.decision.rejected.items()
    ]
