"""What the plan does not know of a model is said; it never counts as nothing."""

import pytest

from scripts.lib.checkpoints.manifest import Shape, TensorSummary
from scripts.lib.plan.facts import Facts
from scripts.lib.plan.flags import Settings
from scripts.lib.plan.gpus import GIB, Device
from scripts.lib.plan.memory import Room, gpu_room, weights_of
from scripts.lib.plan.roofline import tpot_floor
from scripts.lib.study.models import Engine, Variant
from tests.plan.plan_cases import scheme

DENSE = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "layers": 32,
    "attention_heads": 32,
    "kv_heads": 8,
    "head_dim": 128,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": False,
}
DEVICE = Device(kind="cuda", name="L40S", memory_bytes=44 * GIB, bandwidth_gb_s=864)


def settings(**engine_args):
    variant = Variant(checkpoint="c", engine_args=engine_args)
    return Settings(variant, Engine(python="python3"))


def room(version="0.32.0", **changes):
    return gpu_room(DEVICE, 16 * GIB, Shape(**{**DENSE, **changes}), settings(), version)


def test_a_shape_that_is_known_leaves_room():
    assert isinstance(room(), Room)
    assert isinstance(room("0.7.0"), Room)


@pytest.mark.parametrize(
    ("missing", "version", "words"),
    [
        ({"hidden_size": None}, "0.32.0", "sizes that the activations' peak"),
        ({"intermediate_size": None}, "0.32.0", "sizes that the activations' peak"),
        ({"vocab_size": None}, "0.32.0", "sizes that the activations' peak"),
        ({"experts": 8, "moe_intermediate_size": 64}, "0.32.0", "activations' peak"),
        ({"layers": None}, "0.32.0", "number of layers"),
        ({"max_position_embeddings": None}, "0.7.0", "longest request is not known"),
    ],
)
def test_a_size_that_is_not_known_leaves_no_guess(missing, version, words):
    assert words in room(version, **missing)


def test_memory_that_is_not_known_is_said():
    device = DEVICE.model_copy(update={"memory_bytes": None})
    found = gpu_room(device, 0, Shape(**DENSE), settings(), "0.32.0")
    assert found == "the size of the memory is not known"


def test_scales_of_an_unknown_number_are_not_none():
    shape = Shape(**DENSE)
    known = scheme("w4a16", method="gptq", weight_bits=4, strategy="group", group_size=128)
    unknown = scheme("w4a16", method="gptq", weight_bits=4)
    counted = weights_of(Facts(shape=shape, scheme=known, source="here"))
    assert counted is not None
    assert counted.real > counted.ideal
    assert weights_of(Facts(shape=shape, scheme=unknown, source="here")) is None


@pytest.mark.parametrize(
    ("changes", "embedding"),
    [
        ({}, 128256 * 4096 * 2),
        ({"tie_word_embeddings": True}, 0),
        ({"tie_word_embeddings": None}, None),
        ({"vocab_size": None}, None),
    ],
)
def test_an_embedding_of_unknown_size_gives_no_floor_of_tpot(changes, embedding):
    """Of a model whose parameters cannot be counted: read as a whole it were no lower bound."""
    shape = Shape(**{**DENSE, "model_type": "gemma2", **changes})
    tensors = TensorSummary(
        parameters=8 * 10**9, quantized_parameters=0, bytes_by_dtype={}, total_bytes=16 * 10**9
    )
    weights = weights_of(Facts(shape=shape, scheme=scheme("bf16"), tensors=tensors, source="here"))
    assert weights.embedding == embedding
    floor = tpot_floor(DEVICE, weights, settings(), shape)
    if embedding is None:
        assert "input embedding" in floor
    else:
        assert floor.value == pytest.approx((16e9 - embedding) / 864e9 * 1e3, abs=0.01)
