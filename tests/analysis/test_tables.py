import json

import numpy as np
import pandas as pd
import pytest

from scripts import build_tables
from scripts.lib.analysis.analyse import analyse_study
from scripts.lib.analysis.ledger import Start, build_ledger
from scripts.lib.analysis.stamps import stamp_of
from scripts.lib.analysis.tables import (
    Analysis,
    TableError,
    boundaries_table,
    points_table,
    write_tables,
)
from scripts.lib.base.files import read_json, write_json
from scripts.lib.engine.startup import LogFacts, Startup
from tests import factories
from tests.factories import Recipe, Speed

RECIPE = Recipe(
    gpus=1,
    speeds={
        "bf16": Speed(),
        "int8-w8a8": Speed(80, 14),
        "int4-w4a16": Speed(150, 30),
        "fp8-dynamic": Speed(),
    },
    failures={"fp8-dynamic": factories.OOM},
    sessions=2,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return factories.write_study(tmp_path_factory.mktemp("tables"), RECIPE)


@pytest.fixture(scope="module")
def analysis(folder):
    return analyse_study(factories.make_study(RECIPE), folder)


@pytest.fixture(scope="module")
def tables(analysis, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    write_tables(out, analysis)
    return out


def test_every_part_is_there(analysis):
    assert len(analysis.points) == 9
    assert len(analysis.boundaries) == 3
    assert len(analysis.comparisons) == 2 * 3 * 3
    assert [row.variant for row in analysis.ledger] == list(RECIPE.speeds)
    assert len(analysis.timelines) == 6
    assert len(analysis.quality) == 4
    assert {r.stamp for r in analysis.points if r.variant == "int8-w8a8"} == {"W8A8-INT8"}


def test_a_failed_variant_is_one_row_a_stage_and_the_rest_goes_on(analysis):
    rows = [(row.variant, row.stage, row.failure.kind) for row in analysis.failures]
    assert rows == [("fp8-dynamic", "start", "oom"), ("fp8-dynamic", "quality", "oom")]
    assert analysis.failures[0].failure.hint


def test_an_engine_that_prints_blocks_has_kv_tokens_in_the_ledger():
    """V0 prints the number of blocks; a baseline without tokens could not be called starved."""
    facts = LogFacts(ready=True, gpu_blocks=1000, kv_cache_tokens_from_blocks=16_000)
    startup = Startup(
        variant="bf16",
        command=[],
        environment={},
        started_at="",
        ready_s=1,
        ready=True,
        facts=facts,
    )
    study = factories.make_study(RECIPE)
    (row,) = build_ledger(study, {"bf16": [Start(startup, "startup.json")]}, {})
    assert row.kv_cache_tokens.value == 16_000
    assert facts.model_copy(update={"kv_cache_tokens": 15_984}).kv_tokens == 15_984


def test_the_json_gives_the_analysis_back(analysis, tables):
    assert Analysis.model_validate(read_json(tables / "analysis.json")) == analysis


def test_csv_of_points_reads_back(analysis, tables):
    table = pd.read_csv(tables / "points.csv", keep_default_na=False, na_values=[""])
    assert len(table) == 9
    row = table.iloc[0]
    assert row["tpot_mean_ms"] == pytest.approx(analysis.points[0].metrics["tpot_mean_ms"].value)
    assert np.isnan(row["ttft_p99_ms"])
    assert row["ttft_p99_ms_missing"] == "too few: n=60, p99 needs 662"


def test_missing_is_never_zero(tables):
    table = pd.read_csv(tables / "points.csv")
    assert table["itl_mean_ms"].isna().all()
    assert (table["itl_mean_ms_missing"] == "the load result does not say").all()


def test_columns_carry_their_units(tables):
    columns = pd.read_csv(tables / "points.csv").columns
    for name in columns:
        if name.startswith(("ttft", "tpot", "itl", "e2el")):
            assert "_ms" in name
    assert "output_throughput_tok_s" in columns
    assert "joules_per_output_token" in columns


def test_the_same_records_give_the_same_bytes(folder, tables, tmp_path):
    write_tables(tmp_path, analyse_study(factories.make_study(RECIPE), folder))
    for path in tables.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes(), path.name


def test_a_cell_with_neither_value_nor_reason_is_refused(analysis):
    row = analysis.points[0]
    nothing = row.metrics["duration_s"].model_copy(update={"value": None})
    bad = row.model_copy(update={"metrics": {**row.metrics, "duration_s": nothing}})
    with pytest.raises(TableError, match=r"points\.csv: .*duration_s"):
        points_table([bad])


def test_more_answers_than_questions_are_refused(analysis):
    bad = analysis.points[0].model_copy(update={"completed": 10_000})
    with pytest.raises(TableError, match="more requests completed than were sent"):
        points_table([bad])


def test_a_negative_latency_is_refused(analysis):
    row = analysis.points[0]
    negative = row.metrics["ttft_mean_ms"].model_copy(update={"value": -1.0})
    bad = row.model_copy(update={"metrics": {**row.metrics, "ttft_mean_ms": negative}})
    with pytest.raises(TableError, match="ttft_mean_ms"):
        points_table([bad])


def test_a_boundary_that_passes_where_it_fails_is_refused(analysis):
    bad = analysis.boundaries[0].model_copy(update={"last_pass": 8.0, "first_fail": 4.0})
    with pytest.raises(TableError, match=r"boundaries\.csv"):
        boundaries_table([bad])


def test_a_study_in_which_nothing_started_still_has_tables(tmp_path):
    recipe = Recipe(
        speeds={"bf16": Speed(), "int8-w8a8": Speed()},
        failures={"bf16": factories.OOM, "int8-w8a8": factories.OOM},
    )
    folder = factories.write_study(tmp_path, recipe)
    analysis = analyse_study(factories.make_study(recipe), folder)
    files = write_tables(folder / "tables", analysis)
    assert analysis.points == []
    assert len(analysis.failures) == 4
    assert all(path.stat().st_size for path in files)


def test_runs_of_variants_that_left_the_study_are_ignored(tmp_path):
    folder = factories.write_study(tmp_path, Recipe())
    smaller = Recipe(speeds={"bf16": Speed(), "int8-w8a8": Speed()})
    analysis = analyse_study(factories.make_study(smaller), folder)
    assert {row.variant for row in analysis.points} == {"bf16", "int8-w8a8"}


def test_ledger_compares_memory_but_never_loading_times(analysis):
    row = next(row for row in analysis.ledger if row.variant == "int8-w8a8")
    assert row.weights_gib.ratio_to_baseline == pytest.approx(0.14 / 0.25)
    assert row.ready_s.ratio_to_baseline is None
    assert row.planned_kv_cache_tokens.value == 91_000
    failed = next(row for row in analysis.ledger if row.variant == "fp8-dynamic")
    assert failed.ready_s.missing == "it never became ready"
    assert failed.kv_cache_tokens.value is None


def test_timelines_are_thin_and_mark_their_points(analysis):
    line = analysis.timelines[0]
    assert len(line.t_s) <= 120
    assert {len(values) for values in line.series.values()} == {len(line.t_s)}
    assert max(v for v in line.series["running"] if v is not None) == 8
    assert max(v for v in line.series["gpu_power_w"] if v is not None) == pytest.approx(108)
    assert len(line.points) == 9
    assert line.points[0]["level"] == 1


@pytest.mark.parametrize(
    ("name", "verdict", "stamp"),
    [
        ("int8-w8a8", "as expected", "W8A8-INT8"),
        ("fp8-dynamic", "degraded", "W8A8-FP8 (degraded)"),
        ("bf16", "not what the checkpoint says", "BF16 (not what the checkpoint says)"),
        ("bf16", "unknown", "BF16 (not proven)"),
    ],
)
def test_stamps(name, verdict, stamp):
    assert stamp_of(factories.make_verdict(name, verdict)) == stamp


def test_without_a_verdict_what_ran_is_unknown():
    assert stamp_of(None) == "unknown"


def call(monkeypatch, folder):
    arguments = ["build_tables", "--study", f"{folder}/study.json", "--results", str(folder)]
    monkeypatch.setattr("sys.argv", arguments)
    return build_tables.main()


def test_command_line(monkeypatch, capsys, tmp_path):
    folder = factories.write_study(tmp_path, Recipe(repetitions=1))
    assert call(monkeypatch, folder) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["points"] == 9
    assert {path.name for path in (folder / "tables").iterdir()} == set(printed["tables"])


def test_a_malformed_record_is_one_sentence_and_status_2(monkeypatch, capsys, tmp_path):
    folder = factories.write_study(tmp_path, Recipe(repetitions=1))
    path = folder / "kernels" / "bf16.json"
    write_json(path, {**read_json(path), "verdict": "fine"})
    assert call(monkeypatch, folder) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "kernels/bf16.json: verdict" in said
    assert not (folder / "tables").exists()


def test_no_study_is_one_sentence_and_status_2(monkeypatch, capsys, tmp_path):
    assert call(monkeypatch, tmp_path) == 2
    assert "study.json" in capsys.readouterr().err
