import numpy as np
import pytest

from scripts.lib.analysis.points.records import find_runs
from scripts.lib.analysis.points.remarks import thin_samples
from scripts.lib.analysis.points.rows import build_points
from scripts.lib.load.results import Client, SteadyWindow
from tests import factories
from tests.factories import Recipe, Speed


def rows_of(folder, recipe, stamps=None):
    study = factories.make_study(recipe)
    return {(r.variant, r.level): r for r in build_points(study, find_runs(folder), stamps or {})}


@pytest.fixture(scope="module")
def recipe():
    return Recipe(gpus=2, levels=[1, 4, 16], sessions=2)


@pytest.fixture(scope="module")
def rows(recipe, tmp_path_factory):
    return rows_of(factories.write_study(tmp_path_factory.mktemp("points"), recipe), recipe)


def one_point(tmp_path, records, study=None, **values):
    """Return the row of a study of one variant with one point of these records."""
    recipe = Recipe(speeds={"bf16": Speed()}, levels=[4], study=study or {})
    point = factories.make_point(records, **{"concurrency": 4, **values})
    factories.write_run(tmp_path, "bf16", "chat", [(point, records)])
    (row,) = rows_of(tmp_path, recipe).values()
    return row


def simulated(**how):
    return factories.simulate_records(np.random.default_rng(1), 4, 200, 100, 20, **how)


def test_a_row_counts_its_runs_and_names_its_files(rows):
    row = rows["bf16", 4]
    assert row.runs == 6
    assert row.sent == row.completed == 240
    assert row.sources == [f"runs/bf16/chat/session{k}/load.json" for k in (1, 2)]


def test_baseline_comes_first_and_levels_rise(rows):
    assert list(rows)[:3] == [("bf16", 1), ("bf16", 4), ("bf16", 16)]


def test_known_latencies_come_out(rows):
    """The simulation's own mean is 100 and 20 ms at concurrency 1, times the growth."""
    for level in (1, 4, 16):
        factor = 1 + 0.05 * (level - 1)
        metrics = rows["bf16", level].metrics
        assert metrics["ttft_mean_ms"].value == pytest.approx(100 * factor, rel=0.02)
        assert metrics["tpot_p50_ms"].value == pytest.approx(20 * factor, rel=0.02)
        assert metrics["tpot_mean_ms"].low < 20 * factor < metrics["tpot_mean_ms"].high


def test_percentiles_pool_the_requests_of_all_runs(rows):
    assert rows["bf16", 1].metrics["ttft_p90_ms"].missing == "too few: n=60, p90 needs 64"
    assert rows["bf16", 4].metrics["ttft_p95_ms"].n == 240
    assert rows["bf16", 4].metrics["ttft_p99_ms"].missing == "too few: n=240, p99 needs 662"
    assert rows["bf16", 16].metrics["ttft_p99_ms"].value is not None


def test_ratios_are_to_the_baseline_at_the_same_load(rows):
    for level in (1, 4, 16):
        ratio = rows["int8-w8a8", level].metrics["tpot_mean_ms"].ratio_to_baseline
        assert ratio == pytest.approx(0.7, rel=0.03)
        assert rows["bf16", level].metrics["tpot_mean_ms"].ratio_to_baseline == 1
        assert rows["int8-w8a8", level].metrics["kv_usage_peak"].ratio_to_baseline is None


def test_an_invalid_point_is_compared_with_nothing(tmp_path):
    recipe = Recipe(speeds={"bf16": Speed(), "int8-w8a8": Speed()}, levels=[4, 8], repetitions=1)
    for name in recipe.speeds:
        points = factories.simulate_session(recipe, name, np.random.default_rng(0))
        if name == "bf16":
            wrong = {"valid": False, "invalid_reasons": ["late sends"]}
            points[0] = (points[0][0].model_copy(update=wrong), points[0][1])
        factories.write_run(tmp_path, name, "chat", points)
    rows = rows_of(tmp_path, recipe)
    ratios = {k: row.metrics["tpot_mean_ms"].ratio_to_baseline for k, row in rows.items()}
    assert ratios == {
        ("bf16", 4): None,
        ("bf16", 8): 1,
        ("int8-w8a8", 4): None,
        ("int8-w8a8", 8): pytest.approx(1, rel=0.05),
    }


def test_cost_follows_from_throughput(rows):
    metrics = rows["bf16", 4].metrics
    throughput, cost = metrics["output_throughput_tok_s"], metrics["usd_per_million_output_tokens"]
    assert cost.value == pytest.approx(1.861 / 3600 / throughput.value * 1e6)
    assert cost.low == pytest.approx(1.861 / 3600 / throughput.high * 1e6)


def test_energy_of_both_gpus_per_token(rows):
    metrics = rows["bf16", 4].metrics
    assert metrics["power_mean_w"].value == pytest.approx(2 * 104)
    watts_per_rate = 2 * 104 / metrics["output_throughput_tok_s"].value
    assert metrics["joules_per_output_token"].value == pytest.approx(watts_per_rate, rel=0.03)


def test_goodput_is_zero_and_its_price_has_no_number(tmp_path):
    row = one_point(tmp_path, simulated(), {"slo": {"ttft_p95_ms": 1}})
    assert row.metrics["goodput_req_s"].value == 0
    assert row.metrics["goodput_share"].value == 0
    price = row.metrics["usd_per_million_good_tokens"]
    assert (price.value, price.missing) == (None, "no request met the SLO")


@pytest.mark.parametrize("slo", [{}, {"ttft_mean_ms": 500, "itl_p99_ms": 50}])
def test_goodput_not_evaluated_is_not_zero(tmp_path, slo):
    """A mean says nothing about a single request, and ITL is pooled over them."""
    row = one_point(tmp_path, simulated(), {"slo": slo})
    assert row.metrics["goodput_req_s"].value is None
    assert "limits no percentile of TTFT" in row.metrics["goodput_req_s"].missing


def test_failed_requests_are_bad_ones(tmp_path):
    row = one_point(tmp_path, simulated(failed=20), {"slo": {"e2el_p99_ms": 1e6}})
    assert row.metrics["goodput_share"].value == pytest.approx(0.9)
    assert row.metrics["success_rate"].value == pytest.approx(0.9)
    assert row.metrics["oom"].value == 20
    assert row.slo_pass is False
    assert [s.split(":")[0] for s in row.slo_failed] == ["success_rate", "oom"]
    assert not row.valid


def test_a_point_of_a_slow_client_is_not_judged(tmp_path):
    slow = Client(processes=1, cpu_share=0.99, send_lag_p99_ms=400)
    row = one_point(
        tmp_path,
        simulated(),
        {"slo": {"ttft_p95_ms": 1}},
        valid=False,
        invalid_reasons=["the client was the bottleneck"],
        client=slow,
    )
    assert row.slo_pass is None
    assert row.slo_failed == []
    assert row.metrics["client_cpu_share"].value == 0.99


def three_runs(tmp_path, bad):
    """Return the rows of three repetitions at concurrency 4, of which some are changed."""
    recipe = Recipe(speeds={"bf16": Speed()}, levels=[4])
    points = factories.simulate_session(recipe, "bf16", np.random.default_rng(0))
    points = [
        (point.model_copy(update=change), with_failed(records, change.get("failed", 0)))
        for number, (point, records) in enumerate(points, start=1)
        for change in [bad.get(number, {})]
    ]
    factories.write_run(tmp_path, "bf16", "chat", points)
    return rows_of(tmp_path, recipe)["bf16", 4], [point for point, _ in points]


def with_failed(records, count):
    """Return the records of a point, the first ``count`` of them as failed requests."""
    return [{**record, "ok": record["ok"] and i >= count} for i, record in enumerate(records)]


def late(**values):
    return {"valid": False, "invalid_reasons": ["late sends"], **values}


def test_one_spoiled_run_of_three_is_left_out_and_said_so(tmp_path):
    spoiled = late(output_throughput_tok_s=1.0, output_tokens=1)
    row, points = three_runs(tmp_path, {2: spoiled})
    assert row.valid
    assert row.slo_pass is True
    assert (row.runs, row.sent, row.invalid_reasons) == (2, 80, [])
    assert row.left_out == [
        "2 of 3 repetitions stand behind the numbers, without repetition 2: late sends"
    ]
    rates = [points[i].output_throughput_tok_s for i in (0, 2)]
    assert row.metrics["output_throughput_tok_s"].value == pytest.approx(np.mean(rates))
    assert row.metrics["ttft_p50_ms"].n == 80


def test_two_spoiled_runs_of_three_make_the_row_invalid(tmp_path):
    row, _ = three_runs(tmp_path, {1: late(), 2: late()})
    assert not row.valid
    assert row.slo_pass is None
    assert row.invalid_reasons == ["late sends (in 2 of 3 runs)"]
    assert (row.runs, row.left_out) == (3, [])


def test_a_run_with_failed_requests_is_never_left_out(tmp_path):
    failing = {"failed": 4, "completed": 36, "valid": False}
    reasons = ["4 of 40 requests failed"]
    row, _ = three_runs(tmp_path, {2: {**failing, "invalid_reasons": reasons}})
    assert not row.valid
    assert (row.runs, row.left_out, row.invalid_reasons) == (
        3,
        [],
        ["4 of 40 requests failed (in 1 of 3 runs)"],
    )
    assert row.slo_pass is False


def test_failed_requests_count_where_the_client_was_late_too(tmp_path):
    reasons = ["4 of 40 requests failed", "late sends"]
    failing = {"failed": 4, "completed": 36, "valid": False, "invalid_reasons": reasons}
    row, _ = three_runs(tmp_path, {2: failing})
    assert not row.valid
    assert row.slo_pass is False
    assert (row.runs, row.completed, row.sent) == (2, 116, 120)
    assert "without repetition 2 (its failed requests count all the same)" in row.left_out[0]


def test_left_out_runs_are_named_with_their_session(tmp_path):
    recipe = Recipe(speeds={"bf16": Speed()}, levels=[4], sessions=2, repetitions=2)
    for session in (1, 2):
        points = factories.simulate_session(recipe, "bf16", np.random.default_rng(session))
        if session == 2:
            points[0] = (points[0][0].model_copy(update=late()), points[0][1])
        factories.write_run(tmp_path, "bf16", "chat", points, session=session)
    row = rows_of(tmp_path, recipe)["bf16", 4]
    assert row.left_out == [
        "3 of 4 repetitions stand behind the numbers, without session 2, repetition 1: late sends"
    ]
    assert row.sessions == 2


def test_a_session_without_a_sound_run_does_not_stand_behind_the_row(tmp_path):
    recipe = Recipe(speeds={"bf16": Speed()}, levels=[4], sessions=3, repetitions=2)
    for session in (1, 2, 3):
        points = factories.simulate_session(recipe, "bf16", np.random.default_rng(session))
        if session == 2:
            points = [(point.model_copy(update=late()), records) for point, records in points]
        factories.write_run(tmp_path, "bf16", "chat", points, session=session)
    row = rows_of(tmp_path, recipe)["bf16", 4]
    assert (row.valid, row.runs, row.sessions) == (True, 4, 2)


def test_an_unmeasured_limit_is_not_passed(tmp_path):
    records = simulated()
    point = factories.make_point(records, concurrency=4)
    factories.write_run(tmp_path, "bf16", "chat", [(point, records)], series=False)
    recipe = Recipe(speeds={"bf16": Speed()}, levels=[4], study={"slo": {"kv_usage_max": 0.9}})
    row = rows_of(tmp_path, recipe)["bf16", 4]
    assert row.slo_pass is None
    assert "kv_usage_max: not measured, so its limit was not judged" in row.warnings


def test_open_loop_latency_counts_from_the_intended_time(tmp_path):
    """A request that waited 2 s inside the client was 2 s late for its user."""
    records = [
        factories.record(
            index=i,
            point=0,
            intended_s=10.0 + i,
            sent_s=12.0 + i,
            first_token_s=12.1 + i,
            last_token_s=12.5 + i,
            input_tokens=5,
            output_tokens=5,
        )
        for i in range(5)
    ]
    row = one_point(tmp_path, records, concurrency=None, rate=1.0)
    assert row.kind == "rate"
    assert row.metrics["ttft_mean_ms"].value == pytest.approx(2100)
    assert row.metrics["e2el_mean_ms"].value == pytest.approx(2500)
    assert row.metrics["tpot_mean_ms"].value == pytest.approx(100)


def test_records_that_do_not_match_load_json_are_reported(tmp_path):
    row = one_point(tmp_path, simulated(), output_tokens=17)
    assert any(w.startswith("load.json counts 17 output tokens") for w in row.warnings)


def test_points_of_the_slo_search_are_marked(tmp_path):
    assert one_point(tmp_path, simulated(), origin="slo_search").origin == "slo_search"


def test_steady_window_stands_beside_the_whole_run(tmp_path):
    latency = factories.latency([100.0] * 70)
    steady = SteadyWindow(
        start_s=12.0,
        end_s=20.0,
        completed=70,
        ttft_ms=latency,
        tpot_ms=latency,
        output_throughput_tok_s=250.0,
    )
    row = one_point(tmp_path, simulated(), steady=steady)
    assert row.steady["duration_s"].value == 8
    assert row.steady["output_throughput_tok_s"].value == 250
    assert row.steady["ttft_p90_ms"].value == 100
    assert row.steady["ttft_p95_ms"].missing == "too few: n=70, p95 needs 130"


def test_stamps_stand_on_every_row(tmp_path):
    recipe = Recipe(repetitions=1)
    folder = factories.write_study(tmp_path, recipe)
    rows = rows_of(folder, recipe, {"int8-w8a8": "W8A16 (degraded)"})
    assert {r.stamp for r in rows.values() if r.variant == "int8-w8a8"} == {"W8A16 (degraded)"}


def test_a_server_that_died_of_memory_counts_as_out_of_memory(tmp_path):
    records = simulated()
    points = [(factories.make_point(records, concurrency=4), records)]
    factories.write_run(tmp_path, "bf16", "chat", points, failure=factories.OOM)
    row = rows_of(tmp_path, Recipe(speeds={"bf16": Speed()}, levels=[4]))["bf16", 4]
    assert row.metrics["oom"].value == 1
    assert row.slo_pass is False


def test_a_verdict_from_too_few_requests_can_be_read_back_from_the_row(tmp_path):
    study = {"slo": {"ttft_p99_ms": 5000}}
    row = one_point(tmp_path, simulated(), study)
    assert row.slo_pass is True
    assert thin_samples(row) == {"ttft_p99_ms": row.sent}
