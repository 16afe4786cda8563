"""Random weights: the engine is told to make them, and nobody judges what they answer."""

import json
import struct
from pathlib import Path

import pytest

from scripts.lib.base.console import Console
from scripts.lib.checkpoints.make import Job, make_checkpoint
from scripts.lib.engine.environment import EngineInfo
from scripts.lib.engine.flags import asks_for_random_weights, server_command
from scripts.lib.jobs.preflight import check_machine
from scripts.lib.jobs.quality_job import probe_quality
from scripts.lib.jobs.serving import ServedVariant
from scripts.lib.quality.completions import read_lines
from scripts.lib.study.models import Checkpoint, Engine, Quality, Variant
from scripts.lib.telemetry.host import Cpu, Host

DUMMY = ["--load-format", "dummy"]
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "vocab_size": 300,
    "torch_dtype": "bfloat16",
}


@pytest.fixture
def host():
    cpu = Cpu(model="a CPU", physical_cores=2, logical_cores=2, usable_cores=2)
    return Host(gpus=[], cpu=cpu, memory_gib=0.5, os="Linux", python="3.11")


def make_folder(folder: Path, *, weights: bool) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    if weights:
        header = {"model.norm.weight": {"dtype": "BF16", "shape": [16], "data_offsets": [0, 32]}}
        text = json.dumps(header).encode()
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(32))
    return folder


def served(tmp_path, source, *, variant=None, engine=None, weights=False):
    """A variant of a checkpoint whose folder holds weights, or none."""
    folder = make_folder(tmp_path / "model", weights=weights)
    spec = Checkpoint.model_validate(
        {source: str(folder)} if source == "path" else {source: {"config": str(folder)}}
    )
    return ServedVariant(
        name="v",
        variant=Variant.model_validate({"checkpoint": "c", **(variant or {})}),
        engine=Engine.model_validate({"python": "python3", **(engine or {})}),
        info=EngineInfo(name="e", kind="python", python="python3"),
        manifest=make_checkpoint(Job("c", spec, tmp_path / "resources")),
        folder=tmp_path / "records",
        project=tmp_path,
    )


def command_of(one: ServedVariant) -> list[str]:
    return server_command(
        one.engine,
        one.info,
        one.variant,
        model=Path("m"),
        served_name="v",
        port=1,
        random_weights=one.random_weights,
    )


def test_a_dummy_is_served_with_random_weights(tmp_path):
    assert command_of(served(tmp_path, "dummy"))[-2:] == DUMMY


def test_real_weights_are_served_as_they_are(tmp_path):
    one = served(tmp_path, "path", weights=True)
    assert "--load-format" not in command_of(one)
    assert not one.random_weights


@pytest.mark.parametrize(
    "args", [{"load-format": "dummy"}, {"load_format": "dummy"}, ["--load-format=dummy"], DUMMY]
)
@pytest.mark.parametrize("place", ["variant", "engine"])
@pytest.mark.parametrize("source", ["path", "dummy"])
def test_who_asks_for_it_gets_it_once(tmp_path, host, args, place, source):
    given = {"variant": {"engine_args": args}, "engine": {"args": args}}[place]
    one = served(tmp_path, source, **{place: given})
    assert one.random_weights
    assert sum("load-format" in word for word in command_of(one)) == 1
    assert check_machine(one, host).summary.startswith("no weights; ")


def test_another_load_format_is_left_alone(tmp_path):
    one = served(tmp_path, "dummy", variant={"engine_args": {"load-format": "auto"}})
    assert command_of(one)[-2:] == ["--load-format", "auto"]


def test_another_format_asks_for_no_random_weights():
    variant = Variant(checkpoint="c", engine_args={"load-format": "safetensors"})
    assert not asks_for_random_weights(variant, Engine(python="python3"))


def test_a_folder_without_weights_is_refused_before_a_server_starts(tmp_path, host):
    one = served(tmp_path, "path")
    with pytest.raises(ValueError, match="holds no weights") as error:
        check_machine(one, host)
    assert "load-format: dummy" in str(error.value)


def test_a_server_elsewhere_has_its_own_weights(tmp_path, host):
    one = served(tmp_path, "path", engine={"python": None, "address": "http://127.0.0.1:1"})
    assert check_machine(one, host).weights_gib is None
    assert not one.random_weights


@pytest.mark.parametrize("source", ["path", "dummy"])
def test_random_answers_are_not_judged(tmp_path, source):
    one = served(tmp_path, source, variant={"engine_args": {"load-format": "dummy"}})
    probes = tmp_path / "probes.jsonl"
    probes.write_text(
        '{"id": "a", "axis": "arithmetic", "messages": [{"role": "user", "content": "2 + 2?"}], '
        '"max_tokens": 8, "grader": {"kind": "number", "expected": 4}}\n'
    )
    asked = probe_quality(one, Quality(probes=[str(probes)]), console=Console("test"))
    assert asked.not_applicable == "its weights are random (dummy): nothing to judge"
    assert list(read_lines(one.folder / "completions.jsonl.gz")) == []
