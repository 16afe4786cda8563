"""What a job does when the engine took another path than the checkpoint promises."""

from __future__ import annotations

from scripts.lib.base.console import JobError
from scripts.lib.engine.startup import Failure, Startup
from scripts.lib.jobs.serving import ServedVariant
from scripts.lib.plan.judge_study import judge_variant
from scripts.lib.study.models import Study
from scripts.lib.telemetry.host import Host

REFUSED = ("degraded", "not what the checkpoint says")


def refusal(study: Study, served: ServedVariant, host: Host, startup: Startup) -> Failure | None:
    """Judge a server that has just started, before a single request is spent.

    Returns:
        Why it is not measured (``on_degraded: skip``), or None: measure it.

    Raises:
        JobError: with ``on_degraded: fail``.
    """
    if study.on_degraded == "warn":
        return None
    verdict = judge_variant(study, served.name, host, served.manifest, [startup], [])
    if verdict.verdict not in REFUSED:
        return None
    line = next((item.line for item in verdict.evidence if item.line), None)
    if study.on_degraded == "fail":
        raise JobError(
            f"variant {served.name} is {verdict.verdict}: {verdict.summary} The study says "
            "on_degraded: fail; take the variant out, or say warn to measure it all the same"
        )
    return Failure(
        kind="degraded",
        line=line or verdict.summary,
        hint=f"{verdict.summary} Not measured, since the study says on_degraded: skip",
    )
