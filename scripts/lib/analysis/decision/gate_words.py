"""What a gate is called in a sentence, and what one that nobody could judge leaves open."""

from __future__ import annotations

from scripts.lib.analysis.decision.gates import blocks
from scripts.lib.analysis.material import Material
from scripts.lib.analysis.summary import Gate

NOUNS = {
    "starts": "start",
    "fits": "fit in memory",
    "kernel": "kernel path",
    "valid": "measurement",
    "quality": "quality",
    "slo": "SLO",
    "cost": "cost",
}
_OPEN = {
    "starts": "not started",
    "fits": "not known whether it fits in memory",
    "kernel": "what ran is not known",
    "valid": "not measured soundly",
    "quality": "quality not proven",
    "slo": "SLO not judged",
    "cost": "cost not known",
}


def open_gates(material: Material, gates: list[Gate]) -> list[Gate]:
    """Return the unjudged gates that keep a variant from being recommended.

    That no SLO was judged follows where no load point is valid, and is not said again.
    """
    found = [g for g in gates if g.passed is None and blocks(material, g)]
    unsound = any(g.gate == "valid" for g in found)
    return [g for g in found if not (unsound and g.gate == "slo")]


def against(material: Material, gates: list[Gate]) -> list[str]:
    """Return why a variant is out or, when nothing failed, what keeps it undecided."""
    failed = [f"{NOUNS[g.gate]}: {g.why}" for g in gates if g.passed is False]
    return failed or [f"{_OPEN[g.gate]}: {g.why}" for g in open_gates(material, gates)]
