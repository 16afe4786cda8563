"""A whole study on the fake engine, and what an interruption leaves."""

import json
import os
import signal
import time

import pytest

from scripts.lib.analysis.summary import Summary
from tests.workflow.conftest import PROJECT


def wait_for(condition, seconds: float = 60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.05)
    pytest.fail("it never happened")
    return None


def servers(workspace) -> list[int]:
    return [
        pid
        for pid in workspace.processes()
        if b"fakes/engine.py" in (open(f"/proc/{pid}/cmdline", "rb").read())  # noqa: SIM115, PTH123
        and b"keeper.py" not in open(f"/proc/{pid}/cmdline", "rb").read()  # noqa: SIM115, PTH123
    ]


def measuring(workspace) -> list[int]:
    """Return the server's pid while a load measurement is under way."""
    folder = workspace.results / "runs"
    return servers(workspace) if list(folder.rglob("metrics.csv.gz")) else []


def test_the_report_is_made(finished_root):
    results = finished_root / "results/fake"
    html = (results / "report/report.html").read_text()
    for part in ("Environment", "Workload", "SLO", "Results", "Decision"):
        assert part in html
    summary = Summary.model_validate_json((results / "summary.json").read_text())
    assert [variant.name for variant in summary.variants] == ["one", "two"]
    assert {(row.variant, row.level) for row in summary.points} == {
        ("one", 1), ("one", 4), ("two", 1), ("two", 4)
    }  # fmt: skip
    for row in summary.points:  # a busy test machine may hold the client up; nothing else may
        others = [why for why in row.invalid_reasons if not why.startswith("the client ")]
        assert others == []


def test_each_run_keeps_its_raw_records(finished_root):
    for variant in ("one", "two"):
        folder = finished_root / f"results/fake/runs/{variant}/short/session1"
        kept = {path.name for path in folder.iterdir()}
        assert {"load.json", "requests.jsonl.gz", "metrics.csv.gz", "startup.json",
                "server.log"} <= kept  # fmt: skip
        load = json.loads((folder / "load.json").read_text())
        assert [point["completed"] for point in load["points"]] == [8, 8]
        assert "Application startup complete" in (folder / "server.log").read_text()


def test_measurements_take_turns(finished_root):
    """That run had two cores: whatever --cores allows, the machine is one server's."""
    spans = []
    for path in (finished_root / "results/fake/runs").rglob("load.json"):
        load = json.loads(path.read_text())
        start = min(point["start_s"] for point in load["points"])
        end = max(point["end_s"] for point in load["points"])
        spans.append((load["origin_unix_s"] + start, load["origin_unix_s"] + end))
    (_, first_end), (second_start, _) = sorted(spans)
    assert first_end < second_start


@pytest.mark.parametrize(
    "rule", ["make_checkpoint", "measure_load", "probe_quality", "grade_quality"]
)
def test_what_takes_the_machine_claims_it(rule):
    """Quantizing and grading (model-written code runs) take every core as well."""
    text = "".join(path.read_text() for path in (PROJECT / "rules").glob("*.smk"))
    (block,) = [b for b in text.split("\nrule ") if b.startswith(f"{rule}:")]
    assert "measurement=1," in block


def test_a_variant_that_does_not_start_is_a_row_and_the_rest_goes_on(finished):
    finished.change(variants__broken={"checkpoint": "tiny", "env": {"FAKE_FAIL": "oom"}})
    done = finished.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    summary = Summary.model_validate_json((finished.results / "summary.json").read_text())
    failures = {row.variant: row.failure for row in summary.failures}
    assert failures["broken"].kind == "oom"
    assert "Tried to allocate" in failures["broken"].line
    assert "broken" in (finished.results / "report/report.html").read_text()
    assert summary.decision.variant != "broken"


def test_ctrl_c_leaves_nothing_and_the_next_run_goes_on(workspace):
    workspace.change(engine__env__FAKE_TTFT_MS="120")
    target = "results/fake/runs/one/short/session1/load.json"
    running = workspace.start(target)
    wait_for(lambda: measuring(workspace))
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to the whole foreground group
    running.communicate(timeout=60)
    wait_for(lambda: not workspace.processes(), 30)
    assert not (workspace.root / target).exists()
    assert workspace.planned(target) == {"measure_load": 1}
    assert workspace.snakemake(target).returncode == 0


def test_sigterm_to_snakemake_lets_the_job_finish_and_leaves_nothing(workspace):
    workspace.change(engine__env__FAKE_TTFT_MS="120")
    target = "results/fake/runs/one/short/session1/load.json"
    running = workspace.start(target, "results/fake/runs/two/short/session1/load.json")
    wait_for(lambda: measuring(workspace))
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=60)
    wait_for(lambda: not workspace.processes(), 30)
    assert workspace.planned()["measure_load"] == 1


def test_a_killed_server_fails_the_job_which_is_repeated(workspace):
    workspace.change(engine__env__FAKE_TTFT_MS="120")
    target = "results/fake/runs/one/short/session1/load.json"
    running = workspace.start(target)
    os.kill(wait_for(lambda: measuring(workspace))[0], signal.SIGKILL)
    output, _ = running.communicate(timeout=60)
    assert running.returncode != 0
    assert "killed" in output
    wait_for(lambda: not workspace.processes(), 30)
    assert not (workspace.root / target).exists()
    assert "Traceback" not in output
    assert workspace.planned(target) == {"measure_load": 1}


def test_wrong_studies_stop_before_any_job(workspace):
    workspace.change(baseline="three", workloads__short__concurrency=[0])
    done = workspace.snakemake()
    assert done.returncode != 0
    output = done.stdout + done.stderr
    assert 'config/study.yaml: baseline is "three"' in output
    assert "config/study.yaml: workloads.short.concurrency.0 is 0" in output
    assert "Traceback" not in output
    assert not workspace.results.exists()


def test_the_plan_loads_nothing(workspace):
    done = workspace.snakemake("plan")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "one" in done.stdout
    assert not (workspace.results / "runs").exists()


def test_a_damaged_archive_fails_the_verification(finished):
    done = finished.snakemake("archive")
    assert done.returncode == 0, done.stdout + done.stderr
    archive = finished.root / (finished.results / "archive/latest.txt").read_text().strip()
    data = bytearray(archive.read_bytes())
    data[len(data) // 2] ^= 0x10
    archive.write_bytes(data)
    done = finished.snakemake("verify")
    assert done.returncode != 0, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
