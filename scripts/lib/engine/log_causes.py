"""The sentences that name why a start failed, each as one row with what to change."""

from __future__ import annotations

from scripts.lib.engine import log_hints as hints
from scripts.lib.engine.log_failures import FailureRule

_N = r"\d+(?:\.\d+)?"
_ASK_FOR_ACCESS = hints.plain(
    "ask for access on the model's page, then give a token that has it: set HF_TOKEN (or run "
    "`hf auth login`) before the start"
)
_CHECK_NAME = hints.plain(
    "check the model's name or path; a private repository also needs a token with access: set "
    "HF_TOKEN (or run `hf auth login`) before the start"
)
_UPDATE_DRIVER = hints.plain("update the NVIDIA driver, or install wheels for its CUDA version")
_SEE_HELP = hints.plain("this vLLM release does not take that argument so: see `vllm serve --help`")
_CHECK_NCCL = hints.plain(
    "the GPUs could not talk to each other: run once with NCCL_DEBUG=INFO, give the container "
    "shared memory (--shm-size or --ipc=host), try NCCL_P2P_DISABLE=1, and check that every rank "
    "has a GPU of its own"
)
_KV = "kv-cache-too-small-for-max-model-len"
_CAPABILITY = "unsupported-compute-capability"

SPECIFIC: tuple[FailureRule, ...] = (
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
        hints.plain(
            "the weights leave no memory for the KV cache: raise gpu_memory_utilization, use a "
            "smaller or more strongly quantized checkpoint, or raise tensor_parallel_size"
        ),
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
        r"|(?:CUDA|HIP|XPU) out of memory occurred|(?:CUDA|HIP)(?: driver)? error: out of memory",
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
        hints.plain(
            "this build of vLLM or PyTorch has no code for this GPU: install the wheel for its "
            "CUDA version and compute capability, or update the NVIDIA driver"
        ),
    ),
    FailureRule("nccl", "NCCL error", r"NCCL error(?: in)?: ", _CHECK_NCCL),
    FailureRule("nccl", "DistBackendError: NCCL", r"DistBackendError: NCCL", _CHECK_NCCL),
    FailureRule(
        "port-in-use",
        "ddress already in use",
        r"(?:\('[^']*', (?P<port>\d+)[^)]*\): )?(?:\[errno \d+\] |\[Errno \d+\] )?[Aa]ddress "
        r"already in use",
        hints.port_in_use,
    ),
    FailureRule("port-in-use", "EADDRINUSE", r"EADDRINUSE", hints.port_in_use),
    FailureRule(
        "gated-repo",
        "gated repo",
        r"(?:Cannot access gated repo|trying to access a gated repo)",
        _ASK_FOR_ACCESS,
    ),
    FailureRule("gated-repo", "GatedRepoError", r"GatedRepoError: ", _ASK_FOR_ACCESS),
    FailureRule(
        "model-not-found",
        "RepositoryNotFoundError",
        r"RepositoryNotFoundError: ",
        _CHECK_NAME,
    ),
    FailureRule(
        "model-not-found",
        "LocalEntryNotFoundError",
        r"LocalEntryNotFoundError: ",
        hints.plain(
            "the model is not in the local cache and nothing may be downloaded: download it "
            "first, or unset HF_HUB_OFFLINE"
        ),
    ),
    FailureRule("gated-repo", "401 Client Error", r"401 Client Error", _ASK_FOR_ACCESS, soft=True),
    FailureRule(
        "gated-repo",
        "is restricted",
        r"Access to model \S+ is restricted",
        _ASK_FOR_ACCESS,
    ),
    FailureRule(
        "disk-quota",
        "Disk quota exceeded",
        r"Disk quota exceeded",
        hints.plain(
            "free space within the quota, or point HF_HOME (downloads) and VLLM_CACHE_ROOT "
            "(compiled graphs) to another file system"
        ),
    ),
    FailureRule(
        "disk-full",
        "No space left on device",
        r"(?:Errno 28\] |Error: )No space left on device|No space left on device \(os error 28\)",
        hints.plain(
            "free space on the disk (or on /dev/shm), or point HF_HOME and VLLM_CACHE_ROOT to "
            "another file system"
        ),
    ),
    FailureRule(
        "transformers-version-mismatch",
        "all_special_tokens_extended",
        r"has no attribute '?all_special_tokens_extended",
        hints.plain(
            "this vLLM (before 0.12) cannot use transformers 5: install transformers below 5 in "
            "the engine's environment, or vLLM 0.12 or newer"
        ),
    ),
    FailureRule(
        "transformers-version-mismatch",
        "does not recognize this architecture",
        r"Transformers does not recognize this architecture",
        hints.plain("install a newer transformers, one that knows this model's type"),
    ),
    FailureRule(
        "transformers-version-mismatch",
        "ImportError: cannot import name",
        r"ImportError: cannot import name '\w+' from "
        r"'(?:transformers|tokenizers|huggingface_hub)\b",
        hints.plain("install the transformers version that this vLLM release was tested with"),
    ),
    FailureRule(
        "transformers-version-mismatch",
        "`rope_scaling` must be",
        r"ValueError: `rope_scaling` must be a dictionary with (?:with )?two fields",
        hints.plain("install a newer transformers, one that knows this model's rope_scaling"),
    ),
    FailureRule(
        "missing-python-module",
        "No module named",
        r"\b(?:ModuleNotFoundError|ImportError): No module named '?(?P<module>[\w.]+)",
        hints.missing_module,
        soft=True,
    ),
    FailureRule(
        "missing-python-module",
        "Please install",
        r"ImportError: Please install `?(?P<module>[\w-]+)",
        hints.missing_module,
        soft=True,
    ),
    FailureRule(
        "unsupported-architecture",
        "are not supported for now",
        r"Model architectures \[[^\]]*\] are not supported for now",
        hints.plain("this vLLM does not know the model: use a newer vLLM release"),
    ),
    FailureRule(
        "unsupported-on-platform",
        "quantization is currently not supported in",
        r"\w+ quantization is currently not supported in \w+",
        hints.plain("use a checkpoint in a format that vLLM supports on this platform"),
    ),
    FailureRule(
        "unsupported-shape",
        "is not divisible by",
        r"(?:ValueError|RuntimeError|AssertionError): "
        r".*(?:size_[nk]|partition|input_size|output_size|"
        r"intermediate|weight).{0,120} is not divisible by",
        hints.plain(
            "the weights cannot be split so: lower tensor_parallel_size, or use a checkpoint with "
            "another group size"
        ),
    ),
    FailureRule(
        "model-not-found",
        "is not a valid model identifier",
        r"is not a local folder and is not a valid model identifier",
        _CHECK_NAME,
    ),
    FailureRule(
        "model-not-found",
        "Repository Not Found",
        r"Repository Not Found for url",
        _CHECK_NAME,
    ),
    FailureRule(
        "max-model-len-exceeds-model",
        "is greater than the derived max_model_len",
        r"max_model_len \(\d+\) is greater than the derived max_model_len \([^)\d]*(?P<most>\d+)",
        hints.length_beyond_model,
    ),
    FailureRule(
        "tensor-parallel-mismatch",
        "must be divisible by tensor parallel size",
        r"[Aa]ttention heads \((?P<heads>\d+)\) must be divisible by tensor parallel size",
        hints.heads_and_ranks,
    ),
    FailureRule(
        "too-few-gpus",
        "is larger than the number of available",
        r"World size \((?P<want>\d+)\) is larger than the number of available GPUs "
        r"\((?P<have>\d+)\)",
        hints.too_few_gpus,
    ),
    FailureRule(
        "no-gpu",
        "No CUDA GPUs are available",
        r"No CUDA GPUs are available",
        hints.plain("no GPU is visible: check nvidia-smi, CUDA_VISIBLE_DEVICES and --gpus all"),
    ),
    FailureRule(
        "no-gpu",
        "Failed to infer device type",
        r"Failed to infer device type",
        hints.plain("no supported device was found: check nvidia-smi, or install vLLM for the CPU"),
    ),
    FailureRule(
        "driver-too-old",
        "NVIDIA driver on your system is too old",
        r"NVIDIA driver on your system is too old",
        _UPDATE_DRIVER,
        soft=True,
    ),
    FailureRule(
        "driver-too-old",
        "driver version is insufficient",
        r"CUDA driver version is insufficient for CUDA runtime version",
        _UPDATE_DRIVER,
    ),
    FailureRule(
        "quantization-mismatch",
        "does not match the quantization",
        r"Quantization method specified in the model config \(\S+\) does not match the "
        r"quantization",
        hints.plain("leave out the quantization argument; the checkpoint says how it is stored"),
    ),
    FailureRule("bad-argument", "error: unrecog", r"error: unrecognized arguments:", _SEE_HELP),
    FailureRule("bad-argument", "error: argument ", r"error: argument -", _SEE_HELP),
)
