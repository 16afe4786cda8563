"""No value whatsoever of a study file leads to anything but a study or sentences."""

import copy
import datetime
from pathlib import Path

import pytest
import yaml

from scripts.lib.study.load import StudyError, check_study, load_study
from scripts.lib.study.specs import write_specs

PROJECT = Path(__file__).parents[2]
NONSENSE = [
    None, "", "\u202eünï😀\x00", "x" * 5000, "a\nb\tc", 10**30, float("inf"), [], {1: 2}, b"\xff",
    datetime.date(2020, 1, 1),
]  # fmt: skip


@pytest.fixture
def raw() -> dict:
    study = yaml.safe_load((PROJECT / "config/config.yaml").read_text())
    study["workloads"]["open"] = {
        "dataset": {"jsonl": "config/probes/json.jsonl"},
        "rate": [1.0],
        "requests_per_point": [8],
    }
    study["slo"] = {"ttft_mean_ms": 1, "tpot_p95_ms": 2}
    first = next(iter(study["variants"].values()))
    first |= {"env": {"A": 1}, "engine_args": {"a": [1]}, "speculative_config": {"a": 1}}
    return study


def places(value: object, path: tuple = ()):
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, key))


def with_value(raw: dict, path: tuple, value: object) -> dict:
    changed = copy.deepcopy(raw)
    here = changed
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = value
    return changed


@pytest.mark.parametrize("value", NONSENSE, ids=lambda value: repr(value)[:12])
def test_nonsense_anywhere_is_a_sentence_or_a_study_that_can_be_written(raw, value, tmp_path):
    refused = 0
    for path in places(raw):
        try:
            loaded = check_study(with_value(raw, path, value), PROJECT)
        except StudyError as error:
            refused += 1
            for problem in error.problems:
                assert "\n" not in problem, problem
                assert len(problem) < 500, problem
        else:
            write_specs(loaded.study, tmp_path)
    assert refused > 20


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (("workloads", "open", "rate", 0), float("inf"), "workloads.open.rate.0 is inf; give a"),
        (("workloads", "open", "rate", 0), 10**30, "no load test is so large"),
        (("workloads", "open", "dataset", "jsonl"), "x" * 5000, "there is no such file"),
        (("workloads", "open", "requests_per_point"), [-0.0], "send at least 1 request"),
        (("workloads", "open", "sessions"), 10**6, "workloads.open.sessions is 1000000; it must"),
        (("quality", "probes"), [""], 'quality.probes holds "", which matches no file'),
        (("quality", "probes"), [], "quality.probes is empty; give at least one"),
        (("engine",), {"address": "gpu:8000"}, "give a URL such as http://127.0.0.1:8000"),
        (("variants", "x"), {"checkpoint": "a\nb"}, 'variants.x.checkpoint is "a\\nb", which'),
        ((1,), 2, "1: a key must be text; put it in quotes"),
        (
            ("checkpoints", "h"),
            {"hub": {"repo": "llama", "revision": "a" * 40}},
            'checkpoints.h.hub.repo is "llama"; give owner/name',
        ),
        (
            ("title",),
            datetime.date(2020, 1, 1),
            "title is datetime.date(2020, 1, 1), which YAML reads as a date; put it in quotes",
        ),
    ],
)
def test_the_sentence_names_key_value_and_fix(raw, path, value, expected):
    with pytest.raises(StudyError) as caught:
        check_study(with_value(raw, path, value), PROJECT)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("? [a]\n: 1\n", "line 1: a key is list; give plain text"),
        ("a: " + "[" * 3000 + "]" * 3000, "is nested too deeply"),
        ("study: &a [*a]\n", "study is [[...]]; it must be a valid string"),
        ("a:\n\tb: 1\n", "line 2: not valid YAML"),
        ("", "holds no keys"),
    ],
)
def test_yaml_that_is_no_study(tmp_path, text, expected):
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(StudyError) as caught:
        load_study(tmp_path / "s.yaml", PROJECT)
    assert str(tmp_path / "s.yaml") in str(caught.value)
    assert expected in str(caught.value)


def test_a_problem_of_an_override_says_so(tmp_path, raw):
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(raw))
    with pytest.raises(StudyError, match=r"s\.yaml with --config: baseline is"):
        load_study(tmp_path / "s.yaml", PROJECT, {"baseline": "none"})
