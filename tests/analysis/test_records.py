import gzip
import json

import numpy as np
import pytest

from scripts.lib.analysis.points.records import find_runs, load_run, read_requests
from scripts.lib.analysis.points.wholeness import RecordError
from scripts.lib.base.files import read_json, write_json
from tests import factories


@pytest.fixture
def folder(tmp_path):
    return factories.write_study(tmp_path, factories.Recipe(gpus=1, sessions=2))


@pytest.fixture
def session(folder):
    return folder / "runs" / "bf16" / "chat" / "session1"


@pytest.fixture
def unnoted(session):
    """The same session as a former version left it: load.json has no hashes."""
    raw = read_json(session / "load.json")
    write_json(session / "load.json", {k: v for k, v in raw.items() if k != "records"})
    return session


def test_runs_come_one_by_one_in_order(folder):
    runs = find_runs(folder)
    assert next(runs).source == "runs/bf16/chat/session1/load.json"
    assert [(r.variant, r.session) for r in runs] == [
        ("bf16", 2),
        ("int4-w4a16", 1),
        ("int4-w4a16", 2),
        ("int8-w8a8", 1),
        ("int8-w8a8", 2),
    ]


def test_session_10_comes_after_session_9(tmp_path):
    for number in (10, 9):
        factories.write_run(tmp_path, "a", "w", [], session=number)
    assert [run.session for run in find_runs(tmp_path)] == [9, 10]


def test_unwanted_runs_are_not_even_read(folder):
    (folder / "runs" / "int4-w4a16" / "chat" / "session1" / "load.json").write_text("{")
    runs = list(find_runs(folder, lambda variant, *_: variant == "bf16"))
    assert {run.variant for run in runs} == {"bf16"}


def test_columns_and_types(session):
    run = load_run(session)
    assert len(run.requests) == sum(point.sent for point in run.load.points)
    assert run.requests["ok"].dtype == bool
    assert run.requests["sent_s"].dtype == np.float64
    assert run.gpu["energy_j"].is_monotonic_increasing
    assert run.startup.ready


def test_null_is_nan_and_not_zero(tmp_path):
    path = tmp_path / "requests.jsonl.gz"
    factories.write_requests(
        path, [factories.record(point=0, index=0, sent_s=1.0, ok=False, input_tokens=3)]
    )
    table = read_requests(path)
    assert np.isnan(table.loc[0, "first_token_s"])
    assert np.isnan(table.loc[0, "output_tokens"])


def test_a_failed_start_is_a_run_without_points(tmp_path):
    factories.write_run(tmp_path, "a", "w", [], failure=factories.OOM)
    (run,) = find_runs(tmp_path)
    assert run.failure.kind == "oom"
    assert run.load.points == []


def test_the_shortest_failure_record_is_read(tmp_path):
    folder = tmp_path / "runs" / "a" / "w" / "session1"
    write_json(
        folder / "load.json",
        {"schema_version": 1, "points": [], "failure": factories.OOM.model_dump()},
    )
    assert load_run(folder).failure == factories.OOM


def test_a_cut_file_is_a_sentence(unnoted):
    path = unnoted / "requests.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(RecordError, match=r"requests\.jsonl\.gz: cut off or not gzip"):
        load_run(unnoted)


def test_a_bad_line_is_named(unnoted):
    path = unnoted / "requests.jsonl.gz"
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    lines[41] = lines[41].replace('"sent_s"', '"sent"')
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    with pytest.raises(RecordError, match="line 42: not a request .*sent_s"):
        load_run(unnoted)


def test_a_line_that_is_no_json_is_named(tmp_path):
    path = tmp_path / "requests.jsonl.gz"
    good = json.dumps(factories.record(point=0, index=0, sent_s=1.0, ok=False))
    path.write_bytes(gzip.compress(f"{good}\nnot json\n".encode()))
    with pytest.raises(RecordError, match="line 2"):
        read_requests(path)


def test_requests_of_a_point_that_is_not_listed(session):
    raw = read_json(session / "load.json")
    write_json(session / "load.json", {**raw, "points": raw["points"][:-1]})
    with pytest.raises(RecordError, match=r"a point that load\.json does not list"):
        load_run(session)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"first_token_s": 0.5}, "ends before it begins"),
        ({"last_token_s": 1.5}, "ends before it begins"),
        ({"last_token_s": None}, "completed request has no last_token_s"),
    ],
)
def test_records_that_contradict_themselves_are_refused(tmp_path, change, words):
    good = {"point": 0, "index": 0, "sent_s": 1.0, "first_token_s": 2.0, "last_token_s": 3.0}
    path = tmp_path / "requests.jsonl.gz"
    factories.write_requests(path, [factories.record(**good, output_tokens=4) | change])
    with pytest.raises(RecordError, match=words):
        read_requests(path)


def test_a_broken_load_result_names_the_key(session):
    raw = read_json(session / "load.json")
    raw["points"][0]["sent"] = "many"
    write_json(session / "load.json", raw)
    with pytest.raises(RecordError, match=r"load\.json: points\.0\.sent"):
        load_run(session)


def test_a_series_without_times_is_refused(unnoted):
    (unnoted / "metrics.csv.gz").write_bytes(gzip.compress(b"running\n1\n"))
    with pytest.raises(RecordError, match="no column t_s"):
        load_run(unnoted)


def test_columns_an_engine_does_not_report_are_unknown(unnoted):
    (unnoted / "metrics.csv.gz").write_bytes(gzip.compress(b"t_s,running\n2,5\n1,4\n"))
    metrics = load_run(unnoted).metrics
    assert list(metrics["running"]) == [4, 5]
    assert metrics["preemptions"].isna().all()


def test_no_requests_at_all(tmp_path):
    path = tmp_path / "requests.jsonl.gz"
    path.write_bytes(gzip.compress(b""))
    assert len(read_requests(path)) == 0
