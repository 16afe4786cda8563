"""The headline and the reasons of a decision, each said once and in a reader's words."""

from __future__ import annotations

from scripts.lib.analysis.summary import Decision, Summary
from scripts.lib.report.numbers import sentence


def headline(made: Decision) -> str:
    """Return the headline's first sentence; the reasons say the rest."""
    return sentence(made.headline.partition(". ")[0])


def reasons(summary: Summary) -> list[str]:
    """Return each reason of the decision once, as sentences.

    What follows the headline's first sentence stands first, unless it only joins the reasons.
    Without a recommendation and without reasons, those of the rejected variants stand here.
    """
    made = summary.decision
    told = made.reasons or _rejections(summary)
    rest = made.headline.partition(". ")[2]
    joined = made.variant is None and bool(told)
    if not rest or joined or any(rest.rstrip(".") in reason for reason in made.reasons):
        return [sentence(reason) for reason in told]
    return [sentence(rest), *[sentence(reason) for reason in told]]


def _rejections(summary: Summary) -> list[str]:
    if summary.decision.variant is not None:
        return []
    labels = {view.name: view.label for view in summary.variants}
    return [
        f"{labels.get(variant) or variant}: {' '.join(map(sentence, whys))}"
        for variant, whys in summary.decision.rejected.items()
    ]
