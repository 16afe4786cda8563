"""The teaching load model: from its rows and its SLO, its verdicts."""

import json

import pandas as pd
import pytest

from scripts.lib.analysis.analyse import analyse_study
from scripts.lib.study.models import Study
from tests import factories

EMPTY = factories.UNKNOWN.model_copy(update={"n": 200})


@pytest.fixture(scope="module")
def model():
    return json.loads(factories.reference("load_model.json").read_text())


@pytest.fixture(scope="module")
def analysis(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    study = Study.model_validate(
        {
            "study": "model",
            "baseline": "model",
            "engine": {"address": "http://127.0.0.1:8000"},
            "checkpoints": {"model": {"path": "model"}},
            "variants": {"model": {"checkpoint": "model"}},
            "workloads": {
                "rows": {
                    "dataset": {"sharegpt": "x.json"},
                    "concurrency": [row["concurrency"] for row in model["rows"]],
                }
            },
            "slo": {"success_rate": None, **model["slo"]},
            "quality": None,
        }
    )
    points = [point_of(row, start_s=10 * i) for i, row in enumerate(model["rows"])]
    path = factories.write_run(
        folder, "model", "rows", [(p, []) for p in points], with_requests=False, series=False
    )
    usage = [
        {"t_s": p.start_s + 5, "kv_cache_usage": row["kv_usage"]}
        for p, row in zip(points, model["rows"], strict=True)
    ]
    pd.DataFrame(usage).to_csv(path.parent / "metrics.csv.gz", index=False)
    return analyse_study(study, folder)


def point_of(row, start_s):
    done = factories.record(
        sent_s=start_s,
        first_token_s=start_s + 1,
        last_token_s=start_s + 9,
        input_tokens=1,
        output_tokens=2,
    )
    oom = row["oom"]
    return factories.make_point(
        [done] * 200,
        concurrency=row["concurrency"],
        completed=200 - oom,
        failed=oom,
        errors={"CUDA out of memory": oom} if oom else {},
        valid=not oom,
        invalid_reasons=[f"{oom} of 200 requests failed"] if oom else [],
        output_throughput_tok_s=row["output_tok_s"],
        ttft_ms=EMPTY.model_copy(update={"p95": row["ttft_p95_ms"]}),
        tpot_ms=EMPTY.model_copy(update={"p95": row["tpot_p95_ms"]}),
        e2el_ms=EMPTY,
        server=None,
    )


def test_which_points_pass(analysis, model):
    passed = [row.level for row in analysis.points if row.slo_pass]
    assert passed == model["verdict"]["passes"]


def test_which_limits_fail(analysis, model):
    failed = {
        f"{row.level:g}": [sentence.split(":")[0] for sentence in row.slo_failed]
        for row in analysis.points
        if row.slo_pass is False
    }
    assert {k: sorted(v) for k, v in failed.items()} == {
        k: sorted(v) for k, v in model["verdict"]["fails"].items()
    }


def test_the_boundary(analysis, model):
    (boundary,) = analysis.boundaries
    assert boundary.last_pass == model["verdict"]["last_passing_concurrency"]
    assert boundary.words == "passes up to 32, fails at 64"


def test_raw_throughput_peaks_where_nothing_counts(analysis, model):
    raw = {row.level: row.metrics["output_throughput_tok_s"].value for row in analysis.points}
    counts = {
        row.level: row.metrics["throughput_within_slo_tok_s"].value for row in analysis.points
    }
    assert max(raw, key=raw.get) == model["verdict"]["highest_raw_throughput"]
    assert counts[64] == model["verdict"]["goodput_at_64"] == 0
    assert max(counts, key=counts.get) == 32


def test_goodput_of_requests_needs_requests(analysis):
    for row in analysis.points:
        assert row.metrics["goodput_share"].value is None
        assert row.metrics["goodput_share"].missing == "no per-request records"
