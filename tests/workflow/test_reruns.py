"""What a change makes Snakemake do again, and what it does not."""

import json
import os
import time

AFTER_SERVING = {
    "judge_kernels",
    "grade_quality",
    "build_tables",
    "summarise_study",
    "render_report",
}


def touch_all(root) -> None:
    for path in root.rglob("*"):
        if path.is_file() and ".snakemake" not in path.parts and "results" not in path.parts:
            path.touch()


def append(path, text: str) -> None:
    path.write_text(path.read_text() + text)


def test_nothing_to_do_after_a_run(finished):
    assert finished.planned() == {}


def test_touching_files_plans_nothing(finished):
    touch_all(finished.root)
    assert finished.planned() == {}


def test_a_variants_flag_measures_that_variant_only(finished):
    finished.change(variants__two__max_model_len=256)
    jobs = finished.planned()
    assert jobs.pop("measure_load") == 1
    assert jobs.pop("probe_quality") == 1
    assert set(jobs) <= AFTER_SERVING | {"plan_variant", "check_machine"}


def test_a_new_variant_measures_the_new_one_only(finished):
    finished.change(variants__three={"checkpoint": "tiny", "max_model_len": 1024})
    jobs = finished.planned()
    assert jobs.pop("measure_load") == 1
    assert jobs.pop("probe_quality") == 1


def test_what_only_judges_starts_no_server(finished):
    study = finished.study()
    finished.change(
        slo__ttft_mean_ms=1.0,
        price__usd_per_hour=2.0,
        title="Changed",
        baseline="two",
        host={"gpu": "L4"},
        on_degraded="skip",
        quality__non_inferiority_margin=0.2,
        variants={name: {**given, "label": "L"} for name, given in study["variants"].items()},
    )
    jobs = finished.planned()
    assert {"build_tables", "summarise_study", "render_report"} <= set(jobs)
    assert not {"measure_load", "probe_quality", "make_checkpoint"} & set(jobs)


def test_a_template_only_renders(finished):
    template = next((finished.root / "scripts/templates").glob("*.j2"))
    append(template, "{# changed #}\n")
    assert finished.planned() == {"render_report": 1}


def test_editing_the_load_code_measures_all_load_again(finished):
    append(finished.root / "scripts/lib/load/session.py", "\n# changed\n")
    jobs = finished.planned()
    assert jobs["measure_load"] == 2
    assert "probe_quality" not in jobs


def test_a_load_level_measures_that_workload(finished):
    finished.change(workloads__short__concurrency=[1, 4, 8])
    jobs = finished.planned()
    assert jobs["measure_load"] == 2
    assert "probe_quality" not in jobs


def test_another_session_keeps_those_there_are(finished):
    finished.change(workloads__short__sessions=2)
    assert finished.planned()["measure_load"] == 2  # a second one for each of two variants


def test_a_flag_of_one_engine_serves_its_variants_again_only(finished):
    study = finished.study()
    engine = {**study["engine"], "args": {"seed": 1}}
    finished.change(variants__two__engine=engine)
    jobs = finished.planned()
    assert jobs["inspect_engine"] == jobs["measure_load"] == jobs["probe_quality"] == 1
    assert "make_checkpoint" not in jobs


def test_a_variant_taken_out_measures_nothing(finished):
    variants = finished.study()["variants"]
    finished.change(variants={"one": variants["one"]})
    assert set(finished.planned()) <= AFTER_SERVING | {"plan_variant"}


def test_code_that_judges_starts_no_server(finished):
    judging = ("plan/rules.py", "analysis/formulas.py", "quality/compare.py", "judging/slo.py")
    for name in judging:
        append(finished.root / "scripts/lib" / name, "\n# changed\n")
    append(finished.root / "config/reference/gpus.yaml", "# changed\n")
    jobs = finished.planned()
    assert set(jobs) == AFTER_SERVING - {"grade_quality"} | {"plan_variant"}


def test_a_better_grader_grades_what_was_answered(finished):
    append(finished.root / "scripts/lib/quality/graders/number.py", "\n# changed\n")
    jobs = finished.planned()
    assert jobs.pop("grade_quality") == 2
    assert set(jobs) == {"build_tables", "summarise_study", "render_report"}


def test_a_probe_file_asks_the_probes_again_only(finished):
    probes = finished.root / "config/probes/tiny.jsonl"
    probes.write_text(probes.read_text().replace("1 + 3", "0 + 4"))
    jobs = finished.planned()
    assert jobs["probe_quality"] == 2
    assert "measure_load" not in jobs


def test_a_change_taken_back_plans_nothing(finished):
    before = finished.config.read_text()
    finished.change(variants__two__max_model_len=256)
    assert finished.planned() != {}
    time.sleep(1.1)
    finished.config.write_text(before)
    os.utime(finished.config)
    assert finished.planned() == {}


def test_a_dry_run_of_a_finished_study_is_quick(finished):
    started = time.monotonic()
    finished.planned()
    assert time.monotonic() - started < 15, "the bar is 4 s on an idle machine"


def test_a_large_study_is_planned_quickly(workspace):
    variants = {f"v{i}": {"checkpoint": "tiny", "max_model_len": 100 + i} for i in range(40)}
    load = workspace.study()["workloads"]["short"] | {"sessions": 3}
    workspace.change(baseline="v0", variants=variants, workloads={f"w{i}": load for i in range(5)})
    started = time.monotonic()
    assert workspace.planned()["measure_load"] == 600
    assert time.monotonic() - started < 40, "the bar is 20 s on an idle machine"


def test_a_path_that_is_not_native_can_be_refused(workspace):
    """``skip`` keeps it as a row, ``fail`` stops; neither spends a request."""
    target = "results/fake/runs/two/short/session1/load.json"
    trap = {"FAKE_KERNEL": "Your GPU does not have native support for FP8 computation but FP8 "
            "quantization is being used. Weight-only FP8 compression will be used leveraging the "
            "Marlin kernel. This may degrade performance for compute-heavy workloads.",
            "FAKE_QUANTIZATION": "fp8"}  # fmt: skip
    workspace.change(on_degraded="skip", variants__two__env=trap)
    done = workspace.snakemake(target)
    assert done.returncode == 0, done.stdout + done.stderr
    load = json.loads((workspace.root / target).read_text())
    assert load["points"] == []
    assert load["failure"]["kind"] == "degraded"
    workspace.change(on_degraded="fail")
    done = workspace.snakemake(target, "--forcerun", "measure_load")
    assert done.returncode != 0, done.stdout + done.stderr
    assert "on_degraded: fail" in done.stdout + done.stderr
