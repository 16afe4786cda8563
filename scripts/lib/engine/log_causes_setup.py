"""The sentences of starts that failed over access, files, packages, arguments or GPUs absent."""

from __future__ import annotations

from scripts.lib.engine import log_hints as hints
from scripts.lib.engine.log_failures import FailureRule

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

SETUP: tuple[FailureRule, ...] = (
    FailureRule(
        "port-in-use",
        "ddress already in use",
        # NCCL tries further ports by itself after a bind that failed.
        r"(?:\('[^']*', (?P<port>\d+)[^)]*\): )?(?:\[errno \d+\] |\[Errno \d+\] )?"
        r"(?<!failed:\x20)(?<!failed:)[Aa]ddress already in use",
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
        r"(?:ModuleNotFoundError|ImportError): No module named '?(?P<module>[\w.]+)",
        hints.missing_module,
        soft=True,
    ),
    FailureRule(
        "missing-python-module",
        "Please install",
        r"ImportError: Please install `?(?P<module>[\w-]+(?:\[[\w,]+\])?)",
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
        r"\b\w+ quantization is currently not supported in \w+",
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
