"""The reference tables: every row has a source, names are found, facts agree with one another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_cases import machine

from scripts.lib.checkpoints.manifest import Scheme, Shape
from scripts.lib.plan.gpus import device_of, find_gpu, gpu_table, named_gpu
from scripts.lib.plan.memory import engine_constant
from scripts.lib.plan.rules import kernel_rules
from scripts.lib.plan.shapes import count
from scripts.lib.plan.tables import PlanError, parse_version, reference
from scripts.lib.study.models import Engine, HostOverride


def test_every_row_of_every_table_has_a_source():
    known = reference("known_models")
    rows = [*reference("gpus"), *reference("kernel_rules"), *reference("engine_memory")]
    rows += [*known["architectures"].values(), *known["checkpoints"]]
    assert len(rows) > 100
    assert all(len(row["source"]) > 10 for row in rows)
    assert all(gpu.engine_memory_source for gpu in gpu_table() if gpu.engine_memory_gib)


def test_rule_ids_are_unique_and_ranges_are_not_empty():
    rules = kernel_rules()
    assert len({rule.id for rule in rules}) == len(rules)
    for rule in rules:
        since, until = parse_version(rule.since), parse_version(rule.until)
        assert not (since and until) or since < until, rule.id


def test_no_gpu_name_stands_for_two_rows():
    owners: dict[str, str] = {}
    for gpu in gpu_table():
        for name in (gpu.name, *gpu.aliases):
            found = find_gpu(name)
            assert found is not None
            assert found.name == gpu.name, name
            assert owners.setdefault(name.lower(), gpu.name) == gpu.name


def test_what_the_engine_sees_is_less_than_nvml_and_throughput_doubles_with_half_the_bits():
    for gpu in gpu_table():
        if gpu.engine_memory_gib:
            assert 0.97 < gpu.engine_memory_gib * 1024 / gpu.memory_mib < 1, gpu.name
        flops = gpu.dense_tflops
        if "fp8" in flops and "bf16" in flops:
            assert flops["fp8"] / flops["bf16"] == pytest.approx(2, rel=0.03), gpu.name


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("NVIDIA L40S", "L40S"),
        ("L40S", "L40S"),
        ("nvidia-l40s", "L40S"),
        ("NVIDIA L40", "L40"),
        ("Tesla T4", "T4"),
        ("NVIDIA A100-SXM4-80GB", "A100-80GB-SXM"),
        ("NVIDIA A100 80GB PCIe", "A100-80GB-PCIe"),
        ("NVIDIA A100-PCIE-40GB", "A100-40GB-PCIe"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM"),
        ("NVIDIA H100 PCIe", "H100-PCIe"),
        ("H100", "H100-SXM"),
        ("NVIDIA H100 NVL", "H100-NVL"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA GH200 480GB", "GH200-96GB"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("rtx4090", "RTX 4090"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Blackwell Server"),
        ("AMD Instinct MI300X", "MI300X"),
        ("Tesla V100-SXM2-16GB", "V100-16GB"),
        ("NVIDIA A10G", "A10G"),
        ("NVIDIA A10", "A10"),
    ],
)
def test_names_are_matched_as_people_and_nvml_spell_them(spelling, name):
    assert named_gpu(spelling).name == name


@pytest.mark.parametrize("name", ["L400", "", "RTX", "A1000", "NVIDIA"])
def test_a_name_that_is_not_in_the_table_is_not_guessed(name):
    assert find_gpu(name) is None
    with pytest.raises(PlanError, match="host.gpu is"):
        named_gpu(name)


def test_an_ambiguous_name_lists_its_candidates():
    with pytest.raises(PlanError, match=r"stands for several.*A100-40GB-PCIe.*A100-80GB-SXM"):
        named_gpu("A100")


@given(st.text(max_size=40))
def test_any_text_is_found_or_refused(text):
    find_gpu(text)


def test_parameters_counted_from_the_shape_are_those_published():
    for name, row in reference("known_models")["architectures"].items():
        counted = count(Shape.model_validate(row["shape"]))
        assert counted is not None
        assert counted.total == row["parameters"], name


def test_known_checkpoints_name_known_architectures_and_schemes():
    known = reference("known_models")
    for row in known["checkpoints"]:
        assert row["architecture"] in known["architectures"]
        Scheme.model_validate(known["schemes"][row["scheme"]])
        assert len(row.get("revision") or "0" * 40) == 40


@pytest.mark.parametrize(
    ("key", "version", "value"),
    [
        ("gpu_memory_utilization", "0.8.5.post1", 0.9),
        ("gpu_memory_utilization", "0.25.1", 0.92),
        ("gpu_memory_utilization", None, 0.92),
        ("context_gib", "0.7.3", 0.0),
        ("context_gib", "0.9.0", 0.6),
        ("context_gib", "0.9.1", 0.0),
        ("graphs_counted", "0.20.0", 0),
        ("graphs_counted", "0.21.0", 1),
        ("graphs_counted", "0.25.1", 0),
        ("graphs_counted", "0.32.0", 1),
        ("sampler_bytes", "0.17.0rc1", 6),
        ("cpu_kv_gib", "0.11.0", 4),
        ("cpu_kv_share", "0.15.0", 0.5),
        ("cpu_kv_share", "0.32.0", 0),
    ],
)
def test_engine_constants_follow_the_version(key, version, value):
    assert engine_constant(key, version) == value


def test_every_engine_constant_is_known_for_every_version():
    keys = {row["key"] for row in reference("engine_memory")}
    for version in ("0.4.0", "0.8.5", "0.12.0", "0.20.2", "0.22.0", "0.30.0", "0.40.0", None):
        for key in keys:
            engine_constant(key, version)


def test_the_device_is_the_named_gpu_then_the_hosts_then_its_cpu():
    gpu_host, any_engine = machine("NVIDIA L40S", 46068, "8.9"), Engine(python="python3")
    cpu_engine = Engine(environment="envs/vllm-cpu.txt")
    assert device_of(gpu_host, HostOverride(gpu="L4"), any_engine).name == "L4"
    assert device_of(gpu_host, None, any_engine).name == "NVIDIA L40S"
    assert device_of(gpu_host, None, cpu_engine).kind == "cpu"
    assert device_of(machine(), None, Engine(environment="envs/vllm-cuda.txt")).kind == "none"


def test_an_unknown_gpu_is_planned_with_what_nvml_says():
    device = device_of(machine("NVIDIA X9000", 50000, "13.0"), None, Engine(python="python3"))
    assert device.capability == "13.0"
    assert device.bandwidth_gb_s is None
    assert device.memory_bytes == int(50000 * 2**20 * 0.985)
