"""Everything that diagnosis, decision and rollback are judged from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scripts.lib.analysis.summary import (
    Boundary,
    Comparison,
    Crossover,
    FailureRow,
    LedgerRow,
    PointRow,
    QualityView,
    Timeline,
    Value,
)
from scripts.lib.checkpoints.manifest import Manifest
from scripts.lib.engine.startup import Startup
from scripts.lib.load.results import LoadResult
from scripts.lib.plan.models import Plan, Verdict
from scripts.lib.study.models import Study
from scripts.lib.telemetry.host import Host


@dataclass(frozen=True)
class Material:
    """The results of one study, as far as they exist; what is missing is left out, not guessed."""

    study: Study
    host: Host | None = None
    plans: Mapping[str, Plan] = field(default_factory=dict)
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    manifests: Mapping[str, Manifest] = field(default_factory=dict)
    """By checkpoint."""
    startups: Mapping[str, Startup] = field(default_factory=dict)
    """By variant: one of its starts."""
    loads: Mapping[tuple[str, str], Sequence[LoadResult]] = field(default_factory=dict)
    """By (variant, workload): one per session."""
    points: Sequence[PointRow] = ()
    boundaries: Sequence[Boundary] = ()
    comparisons: Sequence[Comparison] = ()
    crossovers: Sequence[Crossover] = ()
    noise_floor: Mapping[str, Value] = field(default_factory=dict)
    ledger: Sequence[LedgerRow] = ()
    quality: Sequence[QualityView] = ()
    failures: Sequence[FailureRow] = ()
    timelines: Sequence[Timeline] = ()

    def rows(self, variant: str, workload: str) -> list[PointRow]:
        """Return the load points of one variant on one workload, by rising load."""
        rows = [r for r in self.points if r.variant == variant and r.workload == workload]
        return sorted(rows, key=lambda row: row.level)

    def label(self, variant: str) -> str:
        """Return the name with what really ran, where that is not what the name says."""
        verdict = self.verdicts.get(variant)
        if verdict is None or verdict.verdict in ("as expected", "unknown"):
            return variant
        return f"{variant} (ran as {verdict.real_scheme})"

    def quality_of(self, variant: str) -> QualityView | None:
        """Return the quality of one variant, if it was looked at."""
        return next((q for q in self.quality if q.variant == variant), None)
