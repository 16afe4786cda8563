"""The default study, whole and real: vLLM serves four variants of SmolLM2 on this CPU."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts.lib.analysis.summary import Summary
from tests.workflow.conftest import PROJECT, SNAKEMAKE, copy_project

pytestmark = [pytest.mark.engine, pytest.mark.timeout(2400)]
VARIANTS = ["bf16", "int8-w8a8", "int4-w4a16", "fp8-dynamic"]


def run(root: Path, *command: str, seconds: int = 2300) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{SNAKEMAKE.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        command,
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    return done


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A copy of the project in which the default study has run; environments are shared."""
    root = tmp_path_factory.mktemp("default") / "project"
    copy_project(root)
    (PROJECT / "resources").mkdir(exist_ok=True)
    (root / "resources").symlink_to(PROJECT / "resources")
    run(root, str(SNAKEMAKE), "--cores", "1", "archive")
    return root


@pytest.fixture(scope="module")
def summary(root) -> Summary:
    return Summary.model_validate_json((root / "results/smollm2-on-cpu/summary.json").read_text())


def test_every_variant_was_served_and_measured(root, summary):
    assert [variant.name for variant in summary.variants] == VARIANTS
    assert summary.failures == []
    levels = {(row.variant, row.level) for row in summary.points}
    assert levels == {(variant, level) for variant in VARIANTS for level in (1, 4, 8)}
    for row in summary.points:
        assert row.completed == row.sent > 0
        assert row.metrics["tpot_mean_ms"].value > 0
        assert row.metrics["output_throughput_tok_s"].value > 0


def test_what_really_ran_is_told(summary):
    verdicts = {verdict.variant: verdict for verdict in summary.verdicts}
    assert {name: verdicts[name].verdict for name in VARIANTS} == {
        "bf16": "as expected",
        "int8-w8a8": "as expected",
        "int4-w4a16": "as expected",
        "fp8-dynamic": "degraded",
    }
    assert verdicts["int8-w8a8"].kernels == ["CPUInt8ScaledMMLinearKernel"]
    assert verdicts["int4-w4a16"].kernels == ["CPUWNA16LinearKernel"]
    assert verdicts["fp8-dynamic"].kernels == ["ChannelWiseTorchFP8ScaledMMLinearKernel"]


def test_every_variant_was_asked(summary):
    for view in summary.quality:
        assert view.not_applicable is None
        assert sum(axis.items for axis in view.axes) == 96
        assert 0 < sum(axis.passed for axis in view.axes) < 96


def test_there_is_one_answer(summary):
    decision = summary.decision
    assert decision.headline
    assert (decision.variant is not None) == (decision.outcome == "recommended")
    assert {candidate.variant for candidate in decision.candidates} == set(VARIANTS)


def test_nothing_is_left_to_do(root):
    started = time.monotonic()
    done = run(root, str(SNAKEMAKE), "-n", seconds=60)
    assert "Nothing to be done" in done.stdout
    assert time.monotonic() - started < 10, "the bar is 4 s on an idle machine"


def test_the_archive_holds_and_verifies(root):
    latest = (root / "results/smollm2-on-cpu/archive/latest.txt").read_text().strip()
    done = run(root, sys.executable, "-m", "scripts.verify_archive", latest, seconds=300)
    assert done.stdout.startswith("OK")


def test_the_raw_records_stand_behind_the_numbers(root):
    folder = root / "results/smollm2-on-cpu/runs/bf16/chat/session1"
    load = json.loads((folder / "load.json").read_text())
    assert len(load["points"]) == 9
    for name in ("requests.jsonl.gz", "itl.npz", "metrics.csv.gz", "server.log", "startup.json"):
        assert (folder / name).stat().st_size > 0
