"""What to change when a server did not start: one sentence with the numbers of its own log."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

Values = Mapping[str, str | None]
Hint = Callable[[Values], str]

GPUS_BY_CAPABILITY: tuple[tuple[float, str], ...] = (
    (7.0, "V100"),
    (7.5, "T4 or RTX 20"),
    (8.0, "A100 or A30"),
    (8.6, "A10, A40 or RTX 30"),
    (8.9, "L4, L40S or RTX 40"),
    (9.0, "H100, H200 or GH200"),
    (10.0, "B200 or GB200"),
    (12.0, "RTX 50 or RTX PRO 6000 Blackwell"),
)
"""The first GPUs of each compute capability (NVIDIA's CUDA GPU list)."""


def plain(text: str) -> Hint:
    """Return a hint that needs no value of the log."""
    return lambda _: text


def capability_number(text: str | None) -> float | None:
    """Return a capability as printed (75, 7.5, 89) as a number, e.g. 8.9."""
    if text is None:
        return None
    return float(text) if "." in text else int(text) / 10


def needs_capability(values: Values) -> str:
    """Name the GPUs that would do."""
    needed = capability_number(values.get("needed"))
    has = capability_number(values.get("has"))
    what = values.get("method")
    subject = f"{what} quantization" if what else "this quantization"
    if needed is None:
        return (
            f"{subject} has no kernel for this GPU's compute capability; use a GPU that has, or "
            "a checkpoint in another format (a 16-bit one runs on any supported GPU)"
        )
    gpus = next((name for least, name in GPUS_BY_CAPABILITY if least >= needed), "a newer GPU")
    here = "" if has is None else f", this GPU has {has:.1f}"
    return (
        f"{subject} needs compute capability {needed:.1f} or higher{here}: use {gpus} or newer, or "
        "a checkpoint in a format that this GPU supports"
    )


def kv_too_small(values: Values) -> str:
    """Say which length would fit, from the text or in proportion to the memory it names."""
    fits = fitting_length(values)
    length = "" if fits is None else f" to {fits} or less"
    about = " (in proportion to the memory that the message names)" if _estimated(values) else ""
    return (
        f"lower max_model_len{length}{about}, or raise gpu_memory_utilization, use an fp8 KV "
        "cache, or spread the model over more GPUs"
    )


def fitting_length(values: Values) -> int | None:
    """Return the longest request that would fit, None when the text does not say.

    V1 prints its own estimate; where the text was cut before it, the KV cache per token follows
    from the two sizes of the message (models without sliding windows grow linearly).
    """
    printed = values.get("fits")
    if printed is not None:
        return int(printed) or None
    wanted, needed, available = (values.get(key) for key in ("wanted", "needed", "available"))
    if wanted is None or needed is None or available is None or float(needed) <= 0:
        return None
    length = math.floor(int(wanted) * float(available) / float(needed))
    return length if length > 0 else None


def _estimated(values: Values) -> bool:
    return values.get("fits") is None and fitting_length(values) is not None


def out_of_memory(values: Values) -> str:
    """Tell memory that the weights need from memory that requests and graphs need."""
    wanted = values.get("tried")
    tried = f" (it tried to allocate {wanted} more)" if wanted else ""
    if values.get("stage") == "loading":
        return (
            f"the weights do not fit{tried}: use a smaller or more strongly quantized "
            "checkpoint, raise tensor_parallel_size, or take a GPU with more memory"
        )
    if values.get("stage") == "serving":
        return (
            f"memory ran out while requests were served{tried}: lower gpu_memory_utilization, "
            "max_num_seqs or max_num_batched_tokens"
        )
    return (
        f"lower gpu_memory_utilization{tried}, max_num_seqs or max_num_batched_tokens, or set "
        "enforce_eager to save the memory of CUDA graphs; free the GPU of other processes"
    )


def too_little_free(values: Values) -> str:
    """Say which share of the GPU is free now."""
    free, total = values.get("free"), values.get("total")
    if free is None or total is None or float(total) <= 0:
        return "end the other processes on this GPU or lower gpu_memory_utilization"
    share = math.floor(100 * float(free) / float(total)) / 100
    return (
        f"{free} of {total} GiB are free: end the other processes on this GPU (nvidia-smi lists "
        f"them) or set gpu_memory_utilization to {share:.2f} or less"
    )


def missing_module(values: Values) -> str:
    """Name the module to install."""
    name = (values.get("module") or "").split(".")[0]
    what = f"`{name}`" if name else "the module named in the line"
    return f"install {what} into the engine's environment (add it to its lock file)"


def port_in_use(values: Values) -> str:
    """Name the port where the text does."""
    port = values.get("port")
    which = f"port {port}" if port else "the port"
    return f"{which} is taken: end the server that holds it or give another --port"


def length_beyond_model(values: Values) -> str:
    """Say the length that the model was made for."""
    most = values.get("most")
    to = f" to {most} or less" if most else ""
    return f"lower max_model_len{to}; the model was not made for longer texts"


def heads_and_ranks(values: Values) -> str:
    """List the tensor-parallel sizes that divide the number of heads."""
    heads = values.get("heads")
    if heads is None:
        return "choose a tensor_parallel_size that divides the model's number of attention heads"
    sizes = [str(size) for size in range(1, 17) if int(heads) % size == 0]
    return f"set tensor_parallel_size to one that divides {heads}: {', '.join(sizes)}"


def too_few_gpus(values: Values) -> str:
    """Say how many GPUs there are."""
    have = values.get("have")
    count = f"only {have} GPU(s) are visible" if have else "fewer GPUs are visible than asked for"
    return f"{count}: lower tensor_parallel_size x pipeline_parallel_size or use more GPUs"
