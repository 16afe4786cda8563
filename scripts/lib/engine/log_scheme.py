"""What arithmetic really runs, as far as the log proves it.

The order of trust: a kernel's own line, then a warning that weights stay compressed, then the
backend of the experts, then settings that leave only one path. A quantization *name* settles
nothing by itself: vLLM 0.25 has served a ``quantization=auto_gptq`` model unquantized.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from scripts.lib.engine.log_kernels import (
    families_of,
    scheme_of,
    scheme_of_moe,
    weight_only_integer,
)

KERNELS_NAMED_SINCE = (0, 15)
"""From here on every quantized dense layer logs its kernel (vLLM #27814, 2026-01-20)."""
GPTQ_KERNELS_NAMED_SINCE = (0, 6, 2)
AUTO_METHODS_SINCE = (0, 22)
"""From here on gptq, gptq_marlin, awq and awq_marlin are other names of auto_gptq / auto_awq."""


@dataclass
class Evidence:
    """What of a log bears on the scheme."""

    version: str | None = None
    configured: bool = False
    """True when the engine's configuration line was read."""
    quantization: str | None = None
    dtype: str | None = None
    device: str | None = None
    model: str | None = None
    loaded: bool = False
    capability: float | None = None
    convertible: str | None = None
    forced: str | None = None
    kernels: list[tuple[str, str | None]] = field(default_factory=list)
    moe: list[tuple[str, str]] = field(default_factory=list)
    degradations: set[str] = field(default_factory=set)
    speculative: bool = False
    died: bool = False
    """True when the start failed: what was announced before the weights were loaded never ran."""


@dataclass
class Inference:
    """A scheme, the kernel families it rests on, and whether its path is a slower one."""

    scheme: str = "unknown"
    families: list[str] = field(default_factory=list)
    unoptimized: bool = False


def version_number(version: str | None) -> tuple[int, ...] | None:
    """Return the release part of a version as numbers: ``0.8.5.post1`` -> (0, 8, 5).

    Builds from source are often called ``0.1.devN`` whatever their age: None.
    """
    if version and version.startswith("0.1.dev"):
        return None
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", version or "")
    return tuple(int(part) for part in match.groups() if part) if match else None


def infer(evidence: Evidence) -> Inference:
    """Say what runs; ``unknown`` wherever the log does not settle it."""
    unquantized = evidence.configured and evidence.quantization is None
    if evidence.died and not evidence.loaded and not unquantized:
        return Inference()
    families = {family for kernel, _ in evidence.kernels for family in families_of(kernel)}
    schemes = {
        scheme
        for kernel, method in evidence.kernels
        if (scheme := scheme_of(kernel, method, evidence.model))
    }
    if any("AllSpark" in kernel for kernel, _ in evidence.kernels):
        # It takes 8 bits only, so the other weight-only kernels beside it do not run 4.
        schemes.discard("w4a16")
    unsettled = len(evidence.kernels) > 0 and not schemes
    for backend, weights in evidence.moe:
        if scheme := scheme_of_moe(backend, weights):
            schemes.add(scheme)
            families.update(families_of(backend))
    if "fp8-weight-only" in evidence.degradations and "w8a16-fp8" not in schemes:
        schemes.add("w8a16-fp8")
        families.add("marlin")
    if "fp4-weight-only" in evidence.degradations and not any("a16-" in s for s in schemes):
        families.add("marlin")
        schemes.add(_fp4_format(evidence))
    if unquantized and evidence.speculative:
        # The kernels are those of the draft model.
        return Inference(_from_settings(evidence).scheme, sorted(families))
    if schemes:
        return Inference(_one_or_mixed(schemes), sorted(families))
    if unsettled:
        return Inference(families=sorted(families))
    return _from_settings(evidence)


def _fp4_format(evidence: Evidence) -> str:
    named = f"{evidence.quantization or ''} {evidence.model or ''}".lower()
    if "mxfp4" in named or "gpt-oss" in named or "gpt_oss" in named:
        return "w4a16-mxfp4"
    if any(word in named for word in ("nvfp4", "modelopt", "compressed-tensors")):
        return "w4a16-nvfp4"
    return "unknown"


def _one_or_mixed(schemes: set[str]) -> str:
    known = schemes - {"unknown"}
    if len(known) == 1 and len(schemes) == 1:
        return known.pop()
    return "mixed" if len(known) > 1 else "unknown"


def _from_settings(evidence: Evidence) -> Inference:
    """Judge a log without a kernel line by settings that leave only one path."""
    forced = evidence.forced
    if not evidence.configured and forced is None and evidence.convertible is None:
        return Inference()
    method, version = evidence.quantization, version_number(evidence.version)
    if evidence.configured and method is None:
        plain = {"torch.bfloat16": "bf16", "torch.float16": "fp16"}
        return Inference(plain.get(_with_torch(evidence.dtype), "unknown"))
    method = method or forced or evidence.convertible
    if evidence.device == "cpu" or (version or (0,)) >= AUTO_METHODS_SINCE:
        return Inference()
    if method in {"fp8", "fbgemm_fp8", "ptpc_fp8", "modelopt"}:
        return _silent_fp8(evidence, version)
    return _by_method(method, evidence, version)


def _silent_fp8(evidence: Evidence, version: tuple[int, ...] | None) -> Inference:
    """FP8 before kernels were named: native unless the Marlin warning was printed."""
    old = version is not None and version < KERNELS_NAMED_SINCE
    capable = evidence.capability is None or evidence.capability >= 8.9  # noqa: PLR2004
    return Inference("w8a8-fp8" if old and evidence.loaded and capable else "unknown")


def _by_method(
    method: str | None, evidence: Evidence, version: tuple[int, ...] | None
) -> Inference:
    """Methods that had one kernel only in the version that logged them."""
    integer = weight_only_integer(evidence.model)
    if method == "gptq":
        return Inference(integer, ["exllama"], unoptimized=True)
    if method == "awq":
        return Inference("w4a16", ["awq"], unoptimized=True)
    if method == "squeezellm":
        return Inference("w4a16")
    if method in {"awq_marlin", "marlin", "gptq_marlin_24", "hqq"}:
        return Inference("w4a16", ["marlin"])
    if method == "gptq_marlin":
        only_marlin = version is not None and version < GPTQ_KERNELS_NAMED_SINCE
        return Inference(integer, ["marlin"] if only_marlin else [])
    if method == "bitsandbytes":
        eight = weight_only_integer(evidence.model) == "w8a16-int8"
        return Inference("unknown" if eight else "w4a16", ["bitsandbytes"])
    if method == "aqlm":
        return Inference("w2a16", ["aqlm"])
    return Inference()


def _with_torch(dtype: str | None) -> str:
    return "torch." + (dtype or "").removeprefix("torch.")
