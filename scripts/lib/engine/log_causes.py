"""The sentences that name why a start failed, each as one row with what to change."""

from __future__ import annotations

from scripts.lib.engine import log_hints as hints
from scripts.lib.engine.log_causes_setup import SETUP
from scripts.lib.engine.log_failures import FailureRule

_N = r"\d+(?:\.\d+)?"
_CHECK_NCCL = hints.plain(
    "the GPUs could not talk to each other: run once with NCCL_DEBUG=INFO, give the container "
    "shared memory (--shm-size or --ipc=host), try NCCL_P2P_DISABLE=1, and check that every rank "
    "has a GPU of its own"
)
_NO_ROOM_FOR_KV = hints.plain(
    "the weights leave no memory for the KV cache: raise gpu_memory_utilization, use a smaller or "
    "more strongly quantized checkpoint, or raise tensor_parallel_size"
)
_BUILD_WITHOUT_GPU = hints.plain(
    "this build of vLLM or PyTorch has no code for this GPU: install the wheel for its CUDA "
    "version and compute capability, or update the NVIDIA driver"
)
_KV = "kv-cache-too-small-for-max-model-len"
_CAPABILITY = "unsupported-compute-capability"

HARDWARE: tuple[FailureRule, ...] = (
    FailureRule(
        _KV,
        "max seq len",
        r"max seq len \((?P<wanted>\d+)\) is larger than the maximum number of tokens that can be "
        r"stored in KV cache \((?P<fits>\d+)\)",
        hints.kv_too_small,
    ),
    FailureRule(
        _KV,
        "To serve at least one request",
        rf"To serve at least one request with the models?'?s? max seq len \((?P<wanted>\d+)\), "
        rf"\(?(?P<needed>{_N}) Gi?B KV cache is needed, which is larger than the available KV "
        rf"cache "
        rf"memory \((?P<available>-?{_N}) Gi?B\)"
        rf"(?:.{{0,80}}?estimated maximum model length is (?P<fits>\d+)(?![\d…]))?",
        hints.kv_too_small,
    ),
    FailureRule(
        "no-memory-for-kv-cache",
        "No available memory for the cache blocks",
        r"No available memory for the cache blocks",
        _NO_ROOM_FOR_KV,
    ),
    FailureRule(
        "no-memory-for-kv-cache",
        "Cannot auto-fit max_model_len",
        r"Cannot auto-fit max_model_len: not enough GPU memory",
        _NO_ROOM_FOR_KV,
    ),
    FailureRule(
        "insufficient-free-gpu-memory",
        "Free memory on device",
        rf"Free memory on device (?:\S{{1,12}} )?\((?P<free>{_N})/(?P<total>{_N}) GiB\) on startup "
        rf"is less "
        rf"than desired GPU memory utilization \((?P<share>{_N}), (?P<desired>{_N}) GiB\)",
        hints.too_little_free,
    ),
    FailureRule(
        "insufficient-free-gpu-memory",
        "Error in memory profiling",
        r"Error in memory profiling\. .{0,200}?(?:other processes|not properly cleaned up)",
        hints.plain(
            "another process used this GPU while memory was measured: end it (nvidia-smi lists "
            "them) and start again"
        ),
    ),
    FailureRule(
        "oom",
        "ut of memory",
        r"Failed to run autotuning code block: CUDA out of memory",
        hints.out_of_memory,
        soft=True,
    ),
    FailureRule(
        "oom",
        "ut of memory",
        rf"(?:CUDA|HIP|XPU) out of memory\. Tried to allocate (?P<tried>{_N} [KMG]iB)",
        hints.out_of_memory,
    ),
    FailureRule(
        "oom",
        "ut of memory",
        r"(?:OutOfMemoryError|RuntimeError): (?:CUDA|HIP|XPU) out of memory"
        r"|(?:CUDA|HIP|XPU) out of memory occurred"
        r"|(?:CUDA|HIP)(?: driver)? [Ee]rror: out of memory",
        hints.out_of_memory,
    ),
    FailureRule(
        "oom",
        "OutOfMemory",
        rf"OutOfMemoryError: .{{0,120}}?Tried to allocate (?P<tried>{_N} [KMG]iB)"
        r"|hipErrorOutOfMemory|UR_RESULT_ERROR_OUT_OF_(?:DEVICE|HOST)_MEMORY",
        hints.out_of_memory,
    ),
    FailureRule(
        "oom",
        "UT_OF_",
        r"UR_RESULT_ERROR_OUT_OF_(?:DEVICE|HOST)_MEMORY",
        hints.out_of_memory,
    ),
    FailureRule(
        "oom",
        "RESOURCE_EXHAUSTED",
        r"RESOURCE_EXHAUSTED: .{0,200}?(?:[Oo]ut of memory|out of memory in memory space)",
        hints.out_of_memory,
    ),
    FailureRule(
        "oom",
        "allocate memory: you tried to allocate",
        r"can't allocate memory: you tried to allocate (?P<tried>\d+ bytes)",
        hints.plain(
            "main memory ran out: use a smaller or more strongly quantized checkpoint, lower "
            "VLLM_CPU_KVCACHE_SPACE on the CPU backend, or take a machine with more memory"
        ),
    ),
    FailureRule(
        _CAPABILITY,
        "is not supported for the current GPU",
        r"(?:quantization method (?P<method>[\w-]+)|Quantization scheme) is not supported for the "
        r"current "
        r"GPU\. Min(?:imum)? capability: (?P<needed>\d+)\.(?: Current capability: "
        r"(?P<has>\d+)(?![\d…]))?",
        hints.needs_capability,
    ),
    FailureRule(
        _CAPABILITY,
        "Quantization scheme is not supported for",
        r"Quantization scheme is not supported for ', 'the current GPU\. Min capability: "
        r"(?P<needed>\d+)\. "
        r"'(?:, 'Current capability: (?P<has>\d+)(?![\d…]))?",
        hints.needs_capability,
    ),
    FailureRule(
        _CAPABILITY,
        "does not support weight_bits",
        r"Marlin does not support weight_bits ?= ?\S+ Only types ?= ?\[\] are supported"
        r"(?: \(for group_size ?= ?-?\d+, min_capability ?= ?(?P<has>\d+))?",
        lambda values: hints.needs_capability({"method": "Marlin", "needed": "80"} | dict(values)),
    ),
    FailureRule(
        _CAPABILITY,
        "not supported in this architecture",
        r"type fp8\w+ not supported in this architecture",
        lambda _: hints.needs_capability({"method": "FP8", "needed": "8.9"}),
    ),
    FailureRule(
        _CAPABILITY,
        "requires capability",
        rf"requires capability (?P<needed>{_N}), current compute capability is "
        rf"(?P<has>{_N})(?![\d…])",
        hints.needs_capability,
        soft=True,
    ),
    FailureRule(
        _CAPABILITY,
        "torch._scaled_mm is only supported",
        r"torch\._scaled_mm is only supported on",
        lambda _: hints.needs_capability({"method": "FP8", "needed": "8.9"}),
    ),
    FailureRule(
        _CAPABILITY,
        "No compiled",
        r"No compiled \w*scaled_mm\w* for a compute capability less than CUDA device capability: "
        r"(?P<has>\d+)(?![\d…])",
        hints.needs_capability,
    ),
    FailureRule(
        _CAPABILITY,
        "only supports Ampere GPUs or newer",
        r"FlashAttention only supports Ampere GPUs or newer",
        hints.plain(
            "FlashAttention needs compute capability 8.0 or higher (A100, A10, L4 or newer): "
            "choose another attention backend (--attention-backend TRITON_ATTN; in releases that "
            "do not know that option VLLM_ATTENTION_BACKEND)"
        ),
    ),
    FailureRule(
        _CAPABILITY,
        "with Compute Capability <",
        r"VLLM_USE_V1=1 is not supported with Compute Capability < (?P<needed>\d\.\d)",
        hints.plain(
            "this release's V1 engine needs compute capability 8.0 or higher: unset VLLM_USE_V1 "
            "(or set it to 0), or use A100, A10, L4 or newer"
        ),
    ),
    FailureRule(
        "dtype-unsupported-on-gpu",
        "is only supported on GPUs with compute capability",
        r"[Bb]float16 is only supported on GPUs with compute capability of at least "
        r"(?P<needed>\d+\.\d)",
        hints.plain(
            "set dtype: float16 (this GPU has no bfloat16), or use a GPU of compute capability "
            "8.0 or higher (A100, A10, L4 or newer)"
        ),
    ),
    FailureRule(
        "kernel-image-invalid",
        "kernel image is",
        r"device kernel image is invalid|no kernel image is available for execution on the device",
        _BUILD_WITHOUT_GPU,
    ),
    FailureRule(
        "kernel-image-invalid",
        "No compiled",
        r"No compiled \w*scaled_mm\w* for CUDA device capability: \d+",
        _BUILD_WITHOUT_GPU,
    ),
    FailureRule(
        "kernel-image-invalid",
        "ptxas fatal",
        r"ptxas fatal .{0,20}Value '(?P<target>sm_\w+)' is not defined for option 'gpu-name'",
        hints.plain(
            "the ptxas that Triton brings does not know this GPU: point TRITON_PTXAS_PATH to the "
            "ptxas of a CUDA toolkit that does, or install a newer Triton"
        ),
    ),
    FailureRule("nccl", "NCCL ", r"NCCL [Ee]rror(?: \d+)?(?: in)?: ", _CHECK_NCCL),
    FailureRule(
        "nccl",
        "Watchdog caught collective",
        r"Watchdog caught collective operation timeout",
        _CHECK_NCCL,
    ),
    FailureRule("nccl", "Duplicate GPU detected", r"Duplicate GPU detected", _CHECK_NCCL),
    FailureRule("nccl", "DistBackendError: NCCL", r"DistBackendError: NCCL", _CHECK_NCCL),
)

SPECIFIC: tuple[FailureRule, ...] = (*HARDWARE, *SETUP)
