"""What a kernel's class name says: its family and the arithmetic it does.

The names are those that vLLM 0.6.2 to 0.33 logs as ``Using K for M`` or ``Selected K for M``.
The method M names the checkpoint's format, K what really runs: K decides.
"""

from __future__ import annotations

import re

FAMILIES: tuple[tuple[str, str], ...] = (
    ("marlin", r"(?i:marlin)"),
    ("machete", r"Machete"),
    ("exllama", r"Exllama"),
    ("allspark", r"AllSpark"),
    ("flashinfer", r"(?i:flash_?infer)"),
    ("cutlass", r"(?i:cutlass)"),
    ("deepgemm", r"(?i:deep_?gemm)"),
    ("triton", r"(?i:triton)"),
    ("torch", r"Torch(?!ao)"),
    ("cpu", r"^CPU|Zentorch|Dynamic4bit"),
    ("aiter", r"(?i:aiter)"),
    ("humming", r"(?i:humming)"),
    ("conch", r"Conch"),
    ("bitblas", r"(?i:bitblas)"),
    ("fbgemm", r"(?i:fbgemm)"),
    ("xpu", r"^XPU"),
    ("rocm", r"^(?:ROCm|Rocm|RDNA)"),
    ("xla", r"^XLA"),
    ("b12x", r"(?i:b12x)"),
    ("emulation", r"(?i:emulation)"),
)

# First match wins. The pattern is searched in "K for M".
SCHEMES: tuple[tuple[str, str], ...] = (
    ("w4a16-nvfp4", r"(?i:marlin|humming)NvFp4|NvFp4W4A16"),
    ("w4a4-nvfp4", r"(?i:nvfp4)"),
    ("w4a16-mxfp4", r"(?i:marlin)MxFp4"),
    ("w4a4-mxfp4", r"(?i:mxfp4)\w* for (?!.*W4A8)"),
    ("w8a16-mxfp8", r"(?i:marlin)Mxfp8"),
    ("w8a8-mxfp8", r"(?i:mxfp8)"),
    # The AMX kernels of the CPU multiply FP8 weights with 16-bit activations.
    ("w8a16-fp8", r"(?i:marlin)FP8|W8A16F[Pp]8|^CPUFp8(?:PerTensor|Block)Scaled"),
    ("w4a8-fp8", r"CutlassW4A8|W4A8Fp8"),
    ("w4a8-int8", r"W4A8Int|Dynamic4bit|WNA8Int"),
    ("w8a8-int8", r"Int8ScaledMM|ScaledMMLinearKernel for \w*(?:W8A8Int8|Int8)"),
    ("w8a8-fp8", r"F[Pp]8\w* for |ScaledMMLinearKernel for \w*F[Pp]8"),
    ("w8a16-int8", r"AllSpark"),
    ("w4a16", r"W4A16"),
)
_WEIGHT_ONLY_INTEGER = re.compile(
    r"^(?:Marlin|Machete|Exllama|Conch|BitBLAS|CPUWNA16|Zentorch(?:WNA16)?|XPUwNa16|Humming"
    r"|Triton(?!\w*ScaledMM)\w*)"
    r"LinearKernel"
)
_HUMMING_FP8 = re.compile(r"HummingF[Pp]8")
_EIGHT_BITS = re.compile(
    r"(?i)(?:^|[^a-z0-9])(?:w8a16|w8g\d+|(?:w|u)?int-?8|8-?bits?|gptq-?8)(?:$|[^a-z0-9])"
)
_FOUR_BITS = re.compile(
    r"(?i)(?:^|[^a-z0-9])(?:w4a16|w4g\d+|(?:w|u)?int-?4|4-?bits?|gptq-?4)(?:$|[^a-z0-9])"
)
_TWO_BITS = re.compile(r"(?i)(?:^|[^a-z0-9])(?:w2a16|w2g\d+|int-?2|2-?bits?)(?:$|[^a-z0-9])")


def families_of(name: str) -> list[str]:
    """Return the families that a kernel's or backend's name proves."""
    return [family for family, pattern in FAMILIES if re.search(pattern, name)]


def scheme_of(kernel: str, method: str | None, model: str | None) -> str | None:
    """Return what a kernel computes, None when its name does not settle it.

    Weight-only integer kernels take 4 and 8 bits and do not print which: 4 unless the model's
    name says otherwise.
    """
    if _HUMMING_FP8.match(kernel):
        return None
    text = f"{kernel} for {method or ''}"
    for scheme, pattern in SCHEMES:
        if re.search(pattern, text):
            return scheme
    if _WEIGHT_ONLY_INTEGER.match(kernel):
        return weight_only_integer(model)
    return None


def weight_only_integer(model: str | None) -> str:
    """Return w4a16, or what the model's name says instead: w8a16-int8 or w2a16."""
    name = (model or "").replace("_", "-")
    if _FOUR_BITS.search(name):
        return "w4a16"
    if _EIGHT_BITS.search(name):
        return "w8a16-int8"
    return "w2a16" if _TWO_BITS.search(name) else "w4a16"


def scheme_of_moe(backend: str, weights: str) -> str | None:
    """Return what a mixture-of-experts backend computes, None when unsettled.

    Args:
        backend: as logged, e.g. ``MARLIN`` or ``FLASHINFER_CUTLASS``.
        weights: the format it serves: ``fp8``, ``nvfp4``, ``mxfp4``, ``mxfp8``, ``int8``, ...
    """
    marlin = "marlin" in backend.lower()
    if weights == "fp8":
        return "w8a16-fp8" if marlin else "w8a8-fp8"
    if weights == "nvfp4":
        return "w4a16-nvfp4" if marlin else "w4a4-nvfp4"
    if weights == "int8":
        return "w8a8-int8"
    if weights in {"w4a16", "w8a16"}:
        return {"w4a16": "w4a16", "w8a16": "w8a16-int8"}[weights]
    if weights == "mxfp4":
        sixteen_bits = re.search(r"(?i)marlin|^triton|bf16", backend)
        return "w4a16-mxfp4" if sixteen_bits and not re.search(r"(?i)mxfp8", backend) else None
    return None
