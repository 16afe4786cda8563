"""The headline and the reasons of a decision, each said once and in a reader's words."""

from __future__ import annotations

from scripts.lib.analysis.summary import Decision, Summary
from scripts.lib.report.numbers import sentence


def headline(made: Decision) -> str:
    """Return the headline's first sentence; the reasons say the rest."""
    return sentence(made.headline.partition(". ")[0])


def reasons(summary: Summary) -> list[str]:
    """Return each reason of the decision once, as sentences.

    What follows the headline's first sentence stands first: in the words of the reason that says
    the same at length, where there is one, and not at all if it only joins the reasons.
    Without a recommendation and without reasons, those of the rejected variants stand here.
    """
    made = summary.decision
    told = made.reasons or _rejections(summary)
    rest = made.headline.partition(". ")[2]
    joined = made.variant is None and bool(told)
    if not rest or joined or any(rest.rstrip(".") in reason for reason in made.reasons):
        return [sentence(reason) for reason in told]
    alone, at_length = [], []
    for part in rest.split(". "):
        same = next((reason for reason in told if _says_more(reason, part)), None)
        if same is None:
            alone.append(sentence(part))
        elif same not in at_length:
            at_length.append(same)
    first = [" ".join(alone)] if alone else []
    others = [reason for reason in told if reason not in at_length]
    return [*first, *[sentence(reason) for reason in [*at_length, *others]]]


def _says_more(reason: str, short: str) -> bool:
    """Return whether a reason says what a sentence of the headline says in short.

    Of a variant that might be better both begin with what it would gain.
    """
    gain, but, _ = short.partition(", but ")
    return bool(but) and reason.startswith(gain + but)


def _rejections(summary: Summary) -> list[str]:
    if summary.decision.variant is not None:
        return []
    labels = {view.name: view.label for view in summary.variants}
    return [
        f"{labels.get(variant) or variant}: {' '.join(map(sentence, whys))}"
        for variant, whys in summary.decision.rejected.items()
    ]
