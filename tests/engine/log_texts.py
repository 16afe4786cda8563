"""Short logs for tests: a configuration line, and all that a reader says of a text."""

from scripts.lib.engine.log_reader import read_log_text

FACTS = (
    "vllm_version",
    "quantization",
    "kernels",
    "scheme",
    "kernel_family",
    "weights_gib",
    "kv_cache_tokens",
    "gpu_blocks",
    "max_concurrency",
    "max_concurrency_tokens",
    "tensor_parallel_size",
    "dtype",
    "kv_cache_dtype",
    "attention_backend",
    "ready",
)
NOTHING = (None, [], False, "unknown")
BF16 = {"dtype": "torch.bfloat16", "tensor_parallel_size": 1, "scheme": "bf16"}
QUANTIZED = {"dtype": "torch.bfloat16", "tensor_parallel_size": 1}


def config(version="0.10.2", engine="V1 ", before="", **changes):
    """Return an engine's configuration line."""
    settings = {
        "model": "'org/model'",
        "speculative_config": "None",
        "tokenizer": "'org/model'",
        "dtype": "torch.bfloat16",
        "max_seq_len": "8192",
        "load_format": "auto",
        "tensor_parallel_size": "1",
        "pipeline_parallel_size": "1",
        "quantization": "None",
        "enforce_eager": "False",
        "kv_cache_dtype": "auto",
        "device_config": "cuda",
        "seed": "0",
    } | changes
    text = ", ".join(f"{key}={value}" for key, value in settings.items())
    return (
        f"{before}INFO 01-02 03:04:05 [core.py:76] Initializing a {engine}LLM engine (v{version}) "
        f"with config: {text}, served_model_name=org/model, use_cached_outputs=True, \n"
    )


def said(text):
    """Return every fact that the reader takes from a text: nothing else may be in it."""
    found = read_log_text(text)
    facts = {key: getattr(found, key) for key in FACTS if getattr(found, key) not in NOTHING}
    if found.degradations:
        facts["degradations"] = [degradation.kind for degradation in found.degradations]
    if found.failure:
        facts["failure"] = found.failure.kind
    return facts
