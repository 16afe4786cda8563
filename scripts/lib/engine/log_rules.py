"""The sentences of vLLM 0.4 to 0.33 that carry a fact, each as one row.

How a row is written: ``log_sentence``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from scripts.lib.engine.log_sentence import Sentence


@dataclass(frozen=True)
class Rule(Sentence):
    """One sentence that carries a fact (``key``)."""

    key: str
    word: str
    text: str

    @property
    def subject(self) -> str:
        """The key."""
        return self.key


_NUMBER = r"-?\d+(?:\.\d+)?"
_NAMES = r"[\w\x20-]{1,60}?"
_END = r"(?=[\s|\u2502\u2503]*(?:$|(?:INFO|WARNING|ERROR|DEBUG|CRITICAL)\b))"
"""The end of a message, where a terminal's frame or the next message may follow."""
_VERSION = r"v?(\d+\.\d+(?:\.\w+)?[\w.+-]*|dev)"
"""``dev`` is what a build from source without tags calls itself."""

# Where a start begins: only at the start of a message, never inside a quoted prompt.
API_VERSION = Rule(
    "api_version", "vLLM API server version", rf"vLLM API server version {_VERSION}(?![\w.+…-])"
)
BANNER = Rule(
    "api_version",
    " version ",
    rf"(?:\u2588\s*|\[(?:api_)?utils\.py:\d+\][^\w]*)version {_VERSION}(?![\w.+…-])",
)
ENGINE = Rule(
    "engine",
    "Initializing a",
    rf"Initializing an? (?:V[01] )?LLM engine(?: \({_VERSION}\)(?: with config:)?| with config:)",
)

READY = (
    Rule("ready", "Application startup complete", r"Application startup complete\."),
    Rule("ready", "Uvicorn running on", r"Uvicorn running on (?:http|socket|unix)"),
)
STOPS = (
    Rule("stopping", "Shutting down", r"Shutting down"),
    Rule("stopping", "[shutdown]", r"\[shutdown\]"),
    Rule("stopping", "KeyboardInterrupt", r"KeyboardInterrupt"),
    Rule("stopping", "eceived SIG", r"[Rr]eceived SIG(?:TERM|INT)"),
    Rule("stopping", "eceived signal", r"[Rr]eceived signal"),
    Rule("stopping", "signal=SIG", r"signal=SIG(?:TERM|INT)"),
)
BIND_FAILED = Rule(
    "bind_failed",
    "error while attempting to bind on address",
    r"error while attempting to bind on address",
)
"""The web server says so after "Application startup complete."."""

FACTS: tuple[Rule, ...] = (
    Rule("collect_env_version", "vLLM Version", rf"vLLM Version\s*: {_VERSION}(?![\w.+…-])"),
    Rule("platform", "detected platform", r"Automatically detected platform (\w+)\."),
    Rule("arguments", "args: Namespace(", r"\bargs: Namespace\((.*)"),
    Rule("arguments", "non-default args: ", r"non-default args: \{(.*)"),
    # Weights, in GiB whatever the unit printed.
    Rule("weights", "weights took", rf"Loading model weights took (?:in total )?({_NUMBER}) ?Gi?B"),
    Rule(
        "weights",
        "Model loading took",
        rf"Model loading took ({_NUMBER}) ?Gi?B(?: memory)? and ({_NUMBER}) seconds",
    ),
    Rule("profiled_weights", "model weights take", rf"model weights take ({_NUMBER}) ?GiB"),
    # KV cache and how many requests it holds.
    Rule("kv_tokens", "KV cache size", r"KV cache size: ([\d,]+) tokens"),
    Rule(
        "concurrency",
        "Maximum concurrency for",
        rf"Maximum concurrency for ([\d,]+) tokens per request: ({_NUMBER})x",
    ),
    Rule(
        "gpu_blocks",
        " blocks: ",
        r"# (?:GPU|HPU|TPU|XPU|cuda|rocm|hip|xpu|hpu|tpu|neuron|npu|gpu) blocks: (\d+)(?![\d….])",
    ),
    Rule("kv_gib", "Available KV cache memory", rf"Available KV cache memory: ({_NUMBER}) ?GiB"),
    Rule(
        "kv_gib",
        "reserved for KV Cache",
        rf"memory reserved for KV Cache is ({_NUMBER}) ?GiB",
    ),
    Rule("kv_gib", "kv_cache_size=", rf"kv_cache_size=({_NUMBER}) ?GiB"),
    Rule("kv_gib", "GiB for KV cache", rf"set \(({_NUMBER})/{_NUMBER}\) GiB for KV cache"),
    Rule(
        "fitted_length",
        "Auto-fit max_model_len",
        r"Auto-fit max_model_len: reduced from \d+ to (\d+) ",
    ),
    # Time.
    Rule("compile", "torch.compile t", rf"torch\.compile (?:takes|took) ({_NUMBER}) s in total"),
    Rule(
        "graphs",
        "Graph capturing finished",
        rf"Graph capturing finished in ({_NUMBER}) secs?(?:, took ({_NUMBER}) GiB)?",
    ),
    Rule("engine_init", "init engine (", rf"init engine \([^)]{{0,200}}\) took ({_NUMBER}) s"),
    # Kernels.
    Rule("kernel", "Kernel for ", r"(?:Using|Selected) (\w*Kernel\w*) for (?:(\w+)(?![\w…-])|\w*)"),
    Rule(
        "convertible",
        "convertible to",
        r"is convertible to (gptq_marlin|awq_marlin) during runtime",
    ),
    Rule(
        "moe_backend",
        " MoE backend",
        r"Using '?([\w\x20]{1,60}?)'? "
        r"(Fp8|FP8|NvFp4|NVFP4|MxFp4|Mxfp4|MXFP4|MxFp8|Mxfp8|MXFP8|WNA16|Int8|INT8|W4A8"
        r"|W4A8 Int8|Unquantized|Humming) MoE backend",
    ),
    Rule("moe_method", "MoEMethod", r"Using (\w+MoEMethod)\b"),
    Rule("mxfp4_backend", "mxfp4.py", r"\[\w*mxfp4\.py:\d+\] Using ([\w\x20]{1,60}?) backend"),
    Rule(
        "mxfp4_backend",
        "Using Marlin backend",
        rf"Using (Marlin) backend(?:\.|{_END}|\s*[\[<(\"\\]| for mxfp4)",
    ),
    Rule("mxfp4_backend", "MXFP4 BF16", r"Using (FlashInfer MXFP4 BF16) backend"),
    Rule(
        "wna16_backend",
        "backend for WNA16 MoE",
        r"Using (\w+) backend for WNA16 MoE \(group_size=-?\d+, num_bits=(\d)\)",
    ),
    Rule(
        "fp8_backend",
        " FP8 MoE ",
        r"Using (FlashInfer) FP8 MoE (?:TRTLLM|CUTLASS) backend for SM",
    ),
    Rule("fp8_backend", " MoE FP8 kernels", r"Using (FlashInfer) MoE FP8 kernels for"),
    Rule("fp4_backend", "backend for NvFp4 MoE", r"Using ([\w\x20]{1,60}?) backend for NvFp4 MoE"),
    *(
        Rule("fp4_backend", word, rf"Using ({_NAMES})(?: kernels)? for {word}")
        for word in ("ModelOptNvFp4FusedMoE", "CompressedTensorsW4A4Nvfp4M", "NVFP4 path")
    ),
    Rule("fp4_backend", "Marlin FP4 MoE kernel", r"Falling back to (Marlin) FP4 MoE kernel"),
    Rule("fp4_backend", " for FP4", r"Using ([a-z][\w-]+|FGBEMM\S*) for FP4(?!\w)"),
    Rule("fp8_backend", "backend for FP8 MoE", r"Using ([\w\x20]{1,60}?) backend for FP8 MoE"),
    Rule("fp8_backend", "kernels for Fp8MoEMethod", r"Using (\w+) kernels for Fp8MoEMethod"),
    Rule(
        "fp4_backend", " GEMM", r"Using (?:NvFp4LinearBackend\.)?([\w-]+)(?<!Kernel) for NVFP4 GEMM"
    ),
    Rule("mxfp4_backend", "MXFP4 M", r"Using (FlashInfer MXFP4 MXFP8 \w+) backend"),
    Rule(
        "mxfp4_backend",
        " MXFP4 MoE",
        r"Using (\w+)(?: \([^)]{0,60}\))? for (?:[\w-]+ ){0,3}MXFP4 MoE\b",
    ),
    Rule("mxfp4_backend", "CK MXFP4", r"Using (CK) MXFP4 MoE backend"),
    Rule("attention", "backend", r"Using (\S+) attention backend out of potential"),
    Rule(
        "attention",
        "backend",
        r"Using (?:AttentionBackendEnum\.|_Backend\.)?([\w/.-]+(?:\x20[\w/.-]+){0,3}?) backend"
        rf"(?:\.(?!\w)|{_END}|(?=\s*[\"'\\\[<(])| on (?:V1 engine|XPU)| out of potential backends: "
        r"| with \w+ KV cache layout| for \w+ on V1 engine)",
    ),
    Rule("kv_dtype", "store kv cache", r"Using (\w+) data type to store kv cache"),
    Rule("capability", "compute capability", r"with compute capability (\d+\.\d+)"),
    Rule("capability", "Device capability", r"Device capability (\d+\.\d+) not supported"),
)

DEGRADATIONS: tuple[Rule, ...] = (
    Rule(
        "fp8-weight-only",
        "native support for FP8",
        r"does not have native support for FP8 computation",
    ),
    Rule(
        "fp4-weight-only",
        "native support for FP4",
        r"does not have native support for (?:NV|MX)?FP4 computation",
    ),
    Rule(
        "fp4-weight-only",
        "weight-only FP4",
        r"lacks native FP4 compute; using weight-only FP4",
    ),
    Rule(
        "fp4-weight-only",
        "with BF16 activations",
        r"(?i:No Mxfp4 MoE backend supports .{0,200}falling back to .{0,60}with BF16 activations)",
    ),
    Rule(
        "forced-unoptimized-method", "so forcing", r"explicitly, so forcing (?P<forced>gptq|awq)\b"
    ),
    Rule(
        "unoptimized-kernel",
        "not fully optimized yet",
        r"\b\w+ quantization is not fully optimized yet",
    ),
    Rule("unoptimized-kernel", "unoptimized AWQ", r"Falling back to unoptimized AWQ kernels"),
    Rule("unoptimized-kernel", "Moe WNA16 kernels", r"Falling back to Moe WNA16 kernels"),
    Rule(
        "unoptimized-kernel",
        "fast path not eligible",
        r"fast path not eligible for this layer.{0,200}falling back to \w*Kernel",
    ),
    Rule("unoptimized-kernel", "slow implementation", r"Falling back to slow implementation"),
    Rule(
        "not-quantized",
        "UnquantizedLinearMethod",
        # "Acceleration for non-quantized schemes ..." speaks of layers stored in 16 bits.
        r"(?:not implemented -|disabled for this case\.) [Ff]alling back to UnquantizedLinear",
    ),
    Rule("attention-fallback", "Cannot use F", r"Cannot use Flash-?Attention"),
    Rule(
        "attention-fallback",
        "higher-priority backend",
        r"precluded higher-priority backend.{0,200}which may result in reduced performance",
    ),
    Rule("attention-fallback", "flash_attn is not found", r"flash_attn is not found"),
    # FA 3 is for Hopper alone: where another GPU takes FA 2 or 4 instead, nothing was lost.
    Rule("attention-fallback", "Cannot use FA", r"Cannot use FA version \d is not supported"),
    Rule(
        "dtype-fallback",
        "Falling back to torch.",
        r"Your device .* doesn't support torch\.\w+\. Falling back to torch\.\w+",
    ),
    Rule("untuned-moe", "default MoE config", r"Using default (?:FlyDSL )?MoE config"),
    Rule(
        "requested-kernel-not-used",
        "--linear-backend=",
        r"--linear-backend=\S+ (?:was requested, but no \S+ kernel exists|has no kernel for)"
        r"|overrides --linear-backend=",
    ),
    Rule(
        "requested-kernel-not-used",
        "available MoE backends",
        r"Falling back to try the remaining available MoE backends",
    ),
    Rule(
        "untuned-fp8-block-kernel",
        "Block FP8 kernel config",
        r"Using default W8A8 Block FP8 kernel config",
    ),
    Rule(
        "untuned-int8-block-kernel",
        "Block INT8 kernel config",
        r"Using default W8A8 Block INT8 kernel config",
    ),
    Rule(
        "emulated",
        "imulated weight dequantization",
        r"not (?:support native MXFP4|yet integrated).*[Ss]imulated weight dequantization",
    ),
    Rule(
        "emulated",
        "emulation backend",
        r"falling back to (?:MXFP8|the slow and unoptimized) emulation backend",
    ),
    Rule(
        "emulated",
        "slow and unoptimized",
        r"falling back to the slow and unoptimized backend=\w+\.EMULATION",
    ),
    Rule("emulated", "emulation mode", r"Falling back to emulation mode"),
    Rule("emulated", "to emulation", r"[Ff]alling back to emulation for deterministic execution"),
    Rule("emulated", "emulation backend", r"using the emulation backend for deterministic"),
    Rule("emulated", "load-time dequant", r"MXFP8\s*->\s*BF16 load-time dequant complete"),
    Rule("emulated", "EmulationTritonExperts", r"Using \w*EmulationTritonExperts MO?o?E backend"),
    Rule("emulated", "emulation mode", r"Using emulation mode"),
)

_PATH = r"[^,'\s()…]+"
_WORD = r"[\w.-]+"
ENGINE_SETTINGS: dict[str, Rule] = {
    key: Rule(key, key, rf"(?<![\w.]){key}='?({_PATH if key == 'model' else _WORD})'?[,)\s]")
    for key in (
        "model",
        "dtype",
        "max_seq_len",
        "load_format",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "data_parallel_size",
        "quantization",
        "kv_cache_dtype",
        "device_config",
    )
}
SPECULATIVE = re.compile(r"(?<!\w)speculative_config=(?!None)(\w+)")
ARGUMENT_TP = re.compile(r"'?tensor_parallel_size'?[:=]\s*(\d+)(?![\d…])")
WORLD_OF_ONE = Rule(
    "world_of_one",
    "in world size 1 ",
    r"rank 0 in world size 1 is assigned as .*TP rank 0(?![\d…])",
)

# Names of attention backends; `Using Marlin backend` is about experts.
ATTENTION_NAME = re.compile(
    r"(?i)flash|xformers|sdpa|attn|attention|pallas|\bmla\b|_mla|flex|triton|rocm|ipex|turboquant"
)
NOT_ATTENTION = re.compile(
    r"(?i)mxfp4|marlin|quark_moe|MoE|MLA "
    r"prefill|all-?reduce|sampling|guided|structured|all2all|vit\b|encoder"
    r"|profiler|communicat|grammar|cudagraph"
)
