"""The boundary search and the tables judge the same point alike, for every kind of limit."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts.lib.analysis.points.digest import digest_run
from scripts.lib.analysis.points.records import Run
from scripts.lib.analysis.points.rows import rows_from_digests
from scripts.lib.load.requests import Requests
from scripts.lib.load.results import LoadResult, ServerView
from scripts.lib.load.search import BoundarySearch
from scripts.lib.study.models import SloSearch
from scripts.lib.study.slo import LATENCY_METRICS, STATISTICS, Slo
from scripts.lib.telemetry.sampler import Sampler
from scripts.lib.telemetry.series import METRIC_COLUMNS
from tests import factories

BOTH = ["1 of 12 requests failed", "the client sent late"]
ENDS = {
    "sound": {},
    "late": {"valid": False, "invalid_reasons": ["the client sent late"]},
    "failing": {},
    "both": {"invalid_reasons": BOTH},
}
PLACES = [f"{metric}_{statistic}_ms" for metric, statistic in product(LATENCY_METRICS, STATISTICS)]
LIMITS = {
    **dict.fromkeys(PLACES, st.sampled_from([18.0, 20.0, 100.0, 110.0, 2000.0, 2500.0])),
    "success_rate": st.sampled_from([0.9, 1.0]),
    "kv_usage_max": st.sampled_from([0.4, 0.6]),
    "preemptions_max": st.sampled_from([0, 1]),
    "oom": st.sampled_from([0, 1]),
}


@st.composite
def slos(draw):
    """Return one to three limits of any kind, and nothing else."""
    chosen = draw(st.lists(st.sampled_from(sorted(LIMITS)), min_size=1, max_size=3, unique=True))
    return Slo.model_validate(
        {"success_rate": None, "oom": None, **{key: draw(LIMITS[key]) for key in chosen}}
    )


@st.composite
def repetitions(draw):
    """Return the records, the point and the KV-cache samples of one to four repetitions."""
    found, clock = [], 5.0
    for number in range(draw(st.integers(1, 4))):
        end = draw(st.sampled_from(sorted(ENDS)))
        records = factories.simulate_records(
            np.random.default_rng(draw(st.integers(0, 9))),
            concurrency=4,
            requests=12,
            ttft_ms=draw(st.sampled_from([80.0, 105.0])),
            tpot_ms=19.0,
            start_s=clock,
            point=number,
            failed=end in ("failing", "both"),
        )
        preemptions = draw(st.sampled_from([0.0, 1.0]))
        point = factories.make_point(
            records,
            concurrency=4,
            repetition=number + 1,
            itl_ms=factories.latency([draw(st.sampled_from([19.0, 110.0]))] * 9),
            server=ServerView(preemptions=preemptions),
            **ENDS[end],
        )
        kv = draw(st.sampled_from([None, 0.3, 0.5, 0.7]))
        found.append((records, point, kv))
        clock = point.end_s + 1
    return found


def series_of(found):
    """Return ``metrics.csv.gz`` as read, with one sample of KV usage inside each point."""
    rows = [{"t_s": point.start_s + 0.5, "kv_cache_usage": kv} for _, point, kv in found]
    return pd.DataFrame(rows, columns=list(METRIC_COLUMNS)).astype(float)


@settings(max_examples=60)
@given(slo=slos(), found=repetitions())
def test_both_views_agree(slo, found):
    metrics = series_of(found)
    study = factories.make_study(
        factories.Recipe(
            speeds={"bf16": factories.Speed()},
            levels=[4],
            study={"slo": slo.model_dump()},
        )
    )
    run = Run(
        folder=Path("runs/bf16/chat/session1"),
        variant="bf16",
        workload="chat",
        session=1,
        load=LoadResult(points=[p for _, p, _ in found], model="bf16", origin_unix_s=0.0),
        requests=pd.DataFrame([r for records, _, _ in found for r in records]),
        metrics=metrics,
        gpu=None,
        startup=None,
    )
    (row,) = rows_from_digests(study, digest_run(study, run), {})

    sampler = Sampler("http://127.0.0.1:9", Path(), origin=0.0, gpus=[])
    sampler._kv_usage = [
        (t, kv) for t, kv in zip(metrics["t_s"], metrics["kv_cache_usage"], strict=True) if kv == kv
    ]
    search = BoundarySearch(slo, SloSearch())
    for records, point, _ in found:
        columns = pd.DataFrame(records)
        search.remember(4, point, Requests.from_columns(columns, open_loop=False))
    assert search.verdicts(sampler.kv_usage_peak) == {4: row.slo_pass}


def test_the_search_sees_a_full_kv_cache():
    """A search blind to it would take the point for a pass and add nothing below it."""
    records = factories.simulate_records(np.random.default_rng(1), 8, 80, 100, 20)
    search = BoundarySearch(Slo(kv_usage_max=0.9), SloSearch(resolution=2))
    for level in (2, 8):
        point = factories.make_point(records, concurrency=level, start_s=float(level))
        columns = pd.DataFrame(records)
        search.remember(level, point, Requests.from_columns(columns, open_loop=False))

    def peak(start_s, _end_s):
        return 0.95 if start_s == 8 else 0.2

    assert search.verdicts(peak) == {2: True, 8: False}
    assert search.next_level(peak) in (4, 6)
