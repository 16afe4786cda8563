"""Every published log of the shared corpus: all of its facts, and nothing that it does not say."""

import json
import re
from functools import cache
from pathlib import Path

import pytest

from scripts.lib.engine.log_kernels import FAMILIES
from scripts.lib.engine.log_reader import read_log

CORPUS = Path(__file__).parents[3] / "shared" / "corpus" / "logs"
CASES = sorted(CORPUS.glob("*.expect.json"))
FAMILY_NAMES = {name for name, _ in FAMILIES} | {"bitsandbytes", "aqlm"}

SAME = {
    "vllm_version": "vllm_version",
    "quantization_arg": "quantization",
    "dtype": "dtype",
    "weights_gib": "weights_gib",
    "kv_cache_tokens": "kv_cache_tokens",
    "gpu_blocks": "gpu_blocks",
    "max_concurrency": "max_concurrency",
    "max_concurrency_tokens": "max_concurrency_tokens",
    "tensor_parallel": "tensor_parallel_size",
    "kv_cache_dtype": "kv_cache_dtype",
    "attention_backend": "attention_backend",
    "kv_cache_memory_gib": "kv_cache_gib",
    "kv_cache_tokens_from_blocks": "kv_cache_tokens_from_blocks",
    "api_ready": "ready",
    "degraded": "degraded",
    "init_engine_seconds": "engine_init_s",
}
# Keys that the expectations always hold when the text shows them.
NEVER_INVENTED = (
    "vllm_version",
    "quantization_arg",
    "weights_gib",
    "kv_cache_tokens",
    "gpu_blocks",
    "max_concurrency",
    "tensor_parallel",
    "kv_cache_dtype",
)

pytestmark = pytest.mark.skipif(not CASES, reason="the shared corpus is not beside the project")


def name(path: Path) -> str:
    return path.name.removesuffix(".expect.json")


facts_of = cache(read_log)


@pytest.fixture(params=CASES, ids=name)
def case(request):
    expected = json.loads(request.param.read_text())
    return expected, facts_of(request.param.with_name(name(request.param) + ".txt"))


def test_every_fact_is_found(case):
    expected, facts = case
    found = facts.model_dump()
    wanted = {ours: expected[theirs] for theirs, ours in SAME.items() if theirs in expected}
    assert {key: found[key] for key in wanted} == wanted


def test_kernels_are_those_logged(case):
    expected, facts = case
    named = [kernel for kernel in expected.get("kernels", []) if re.fullmatch(r"\w+", kernel)]
    assert facts.kernels == sorted(named)


def test_scheme_and_family_are_those_proven(case):
    expected, facts = case
    scheme = expected.get("quant_scheme_effective")
    if scheme is None:
        assert (facts.scheme, facts.kernel_family) == ("unknown", [])
        return
    parts = re.match(r"(bf16|fp16|mixed|w\d+a\d+(?:-(?:fp8|int8|nvfp4|mxfp4))?)(?:-(.*))?$", scheme)
    assert facts.scheme == parts[1]
    families = set((parts[2] or "").split("-")) & FAMILY_NAMES
    assert families <= set(facts.kernel_family)


def test_failure_is_the_one_expected(case):
    expected, facts = case
    if not expected.get("failed"):
        assert facts.failure is None
        return
    assert facts.failure is not None
    assert facts.failure.kind == expected["failure_kind"].split(" ")[0]
    assert facts.failure.hint
    if "max_model_len" in expected:
        assert facts.max_model_len == expected["max_model_len"]


def test_nothing_is_invented(case):
    expected, facts = case
    found = facts.model_dump()
    absent = [SAME[key] for key in NEVER_INVENTED if key not in expected]
    assert {key: found[key] for key in absent if found[key] is not None} == {}
