"""The CPU engine's own logs (vLLM 0.32.0), kept whole as fixtures."""

import json
from pathlib import Path

import pytest

from scripts import inspect_server_log
from scripts.lib.engine.log_reader import read_log

LOGS = Path(__file__).parents[1] / "fixtures" / "logs"


@pytest.mark.parametrize(
    ("name", "kernels", "scheme", "family", "degradations"),
    [
        ("bf16", [], "bf16", [], []),
        ("int8", ["CPUInt8ScaledMMLinearKernel"], "w8a8-int8", ["cpu"], []),
        ("int4", ["CPUWNA16LinearKernel"], "w4a16", ["cpu"], []),
        (
            "fp8",
            ["ChannelWiseTorchFP8ScaledMMLinearKernel"],
            "w8a8-fp8",
            ["torch"],
            ["fp8-emulated-on-cpu"],
        ),
    ],
)
def test_variants_of_the_default_study(name, kernels, scheme, family, degradations):
    facts = read_log(LOGS / f"cpu_032_{name}.log")
    assert facts.vllm_version == "0.32.0"
    assert facts.device == "cpu"
    assert (facts.kernels, facts.scheme, facts.kernel_family) == (kernels, scheme, family)
    assert [degradation.kind for degradation in facts.degradations] == degradations
    assert facts.quantization == ("compressed-tensors" if kernels else None)
    assert (facts.kv_cache_tokens, facts.max_concurrency) == (93184, 45.5)
    assert facts.max_concurrency_tokens == facts.max_model_len == 2048
    assert facts.kv_cache_gib == 2.0
    assert facts.weights_gib is None  # the CPU engine does not print it
    assert (facts.ready, facts.failure) == (True, None)


@pytest.mark.parametrize(
    ("name", "kind", "in_hint"),
    [
        ("port", "port-in-use", "--port"),
        ("length", "max-model-len-exceeds-model", "8192"),
        ("absent", "model-not-found", "HF_HUB_OFFLINE"),
    ],
)
def test_starts_that_failed(name, kind, in_hint):
    facts = read_log(LOGS / f"cpu_032_fail_{name}.log")
    assert not facts.ready
    assert facts.failure.kind == kind
    assert in_hint in facts.failure.hint


def test_command_line(tmp_path, capsys):
    assert inspect_server_log.main([str(LOGS / "cpu_032_int8.log")]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["scheme"] == "w8a8-int8"
    assert "Selected CPUInt8ScaledMMLinearKernel" in printed["evidence"]["kernels"]


@pytest.mark.parametrize(
    "data",
    [b"", b" \n\n", b"\x7fELF\x02\x01\x01\x00", bytes(range(256)) * 40, b"\x1f\x8b\x08\x00\x00"],
    ids=["empty", "blank", "program", "bytes", "gzip"],
)
def test_what_is_no_log_is_refused_in_one_sentence(tmp_path, capsys, data):
    file = tmp_path / "server.log"
    file.write_bytes(data)
    assert inspect_server_log.main([str(file)]) == 2
    message = capsys.readouterr().err
    assert str(file) in message
    assert message.count("\n") == 1


def test_a_file_that_is_not_there(tmp_path, capsys):
    assert inspect_server_log.main([str(tmp_path / "absent.log")]) == 2
    assert "absent.log" in capsys.readouterr().err
