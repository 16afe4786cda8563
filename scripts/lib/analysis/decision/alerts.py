"""The rollback conditions as a Prometheus rule file (``alerts.yaml``)."""

from __future__ import annotations

import re
import shlex
from typing import Any

import yaml

from scripts.lib.analysis.summary import Decision, Rollback


def alert_name(condition: str) -> str:
    """Return a Prometheus alert name, e.g. ``ServingTtftP95OverTheSlo``."""
    words = re.findall(r"[A-Za-z0-9]+", condition)
    return "Serving" + "".join(word[0].upper() + word[1:].lower() for word in words)


def alert_rules(study: str, decision: Decision) -> dict[str, Any]:
    """Return the content of a Prometheus rule file for a decision.

    Conditions that no metric tells are left out; without a recommendation there are no groups.
    """
    if decision.variant is None:
        return {"groups": []}
    rules = [_rule(study, decision, c) for c in decision.rollback if c.expression]
    return {"groups": [{"name": f"{study}-rollback", "rules": rules}]} if rules else {"groups": []}


def _rule(study: str, decision: Decision, condition: Rollback) -> dict[str, Any]:
    rule: dict[str, Any] = {"alert": alert_name(condition.name), "expr": condition.expression}
    if condition.for_:
        rule["for"] = condition.for_
    rule["labels"] = {"severity": "rollback", "study": study, "variant": decision.variant}
    annotations = {
        "summary": _literal(condition.words),
        "threshold_from": _literal(condition.from_),
    }
    if decision.rollback_command:
        annotations["rollback_command"] = _literal(shlex.join(decision.rollback_command))
    rule["annotations"] = annotations
    return rule


def _literal(text: str) -> str:
    """Keep Prometheus from reading ``{{`` in a command (JSON flags) as its template language."""
    return text.replace("{{", "{{ `{{` }}")


def alerts_text(study: str, decision: Decision) -> str:
    """Return ``alerts.yaml`` as text, with a head that says what it is."""
    head = [
        f"# Rollback conditions of the study {study}, as Prometheus alerting rules.",
        "# Check with: promtool check rules alerts.yaml",
    ]
    if decision.variant is None:
        head.append(
            f"# No variant is recommended, so there is nothing to roll back: {decision.outcome}."
        )
    rules = yaml.safe_dump(
        alert_rules(study, decision), sort_keys=False, allow_unicode=True, width=100
    )
    return "\n".join(head) + "\n" + rules
