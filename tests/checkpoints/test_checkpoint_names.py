"""Patterns of ignore lists and targets."""

import time

import pytest

from scripts.lib.checkpoints.names import NamePatterns

LAYER = "model.layers.3.mlp.experts.7.down_proj"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (LAYER, True),
        (LAYER + ".weight", True),
        ("model.layers.3", True),
        ("model.layers.30", False),
        ("model.layers", True),
        ("down_proj", True),
        ("proj", False),
        ("experts", True),
        ("experts.7", True),
        ("experts.70", False),
        ("Linear", False),
        ("lm_head", False),
        ("re:.*down_proj", True),
        ("re:.*down_proj$", True),
        ("re:mlp.*", False),
        (r"re:model\.layers\.[0-3]\.", True),
        ("re:(", False),
        ("model.layers.3*", True),
        ("*.experts.*", True),
        ("model.layers.*.self_attn", False),
        ("model.layers.*.mlp", False),
    ],
)
def test_pattern(pattern, expected):
    assert NamePatterns([pattern]).match(LAYER) is expected
    assert NamePatterns(["other", "re:also.*other", pattern]).match(LAYER) is expected


def test_no_patterns():
    assert NamePatterns([]).match(LAYER) is False


def test_as_many_as_a_mixture_of_experts_has():
    names = [f"model.layers.{n}.mlp.experts.{e}.up_proj" for n in range(60) for e in range(256)]
    start = time.perf_counter()
    patterns = NamePatterns(names[::2])
    assert sum(patterns.match(name) for name in names) == len(names) // 2
    assert time.perf_counter() - start < 5
