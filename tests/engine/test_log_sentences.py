"""The sentences of many vLLM versions, each in the smallest log that holds it."""

# ruff: noqa: E501 - log lines are quoted as they are

import pytest

from scripts.lib.engine.log_reader import read_log_text


def config(version="0.10.2", engine="V1 ", **changes):
    settings = {
        "model": "'org/model'",
        "speculative_config": "None",
        "dtype": "torch.bfloat16",
        "max_seq_len": "8192",
        "load_format": "auto",
        "tensor_parallel_size": "1",
        "quantization": "None",
        "quantization_config": "None",
        "enforce_eager": "False",
        "kv_cache_dtype": "auto",
        "device_config": "cuda",
        "seed": "0",
    } | changes
    text = ", ".join(f"{key}={value}" for key, value in settings.items())
    return f"INFO 01-02 03:04:05 [core.py:76] Initializing a {engine}LLM engine (v{version}) with config: {text})"


LOADED = (
    "INFO 01-02 03:04:09 [gpu_model_runner.py:2392] Model loading took 7.5 GiB and 1.17 seconds"
)
READY = "INFO:     Application startup complete."
FP8_WARNING = (
    "WARNING 01-02 03:04:08 [marlin_utils_fp8.py:103] Your GPU does not have native support for FP8 "
    "computation but FP8 quantization is being used. Weight-only FP8 compression will be used "
    "leveraging the Marlin kernel. This may degrade performance for compute-heavy workloads."
)
FP4_WARNING = FP8_WARNING.replace("FP8", "FP4")


def log(*lines):
    return read_log_text("\n".join(lines) + "\n")


def kernel(name, method, verb="Selected"):
    return f"(EngineCore pid=1) INFO 01-02 03:04:07 [__init__.py:631] {verb} {name} for {method}"


@pytest.mark.parametrize(
    ("lines", "scheme", "families", "degraded"),
    [
        ([config(), LOADED], "bf16", [], False),
        ([config(dtype="torch.float16")], "fp16", [], False),
        ([config(dtype="torch.float32")], "unknown", [], False),
        ([config(quantization="fp8"), LOADED], "w8a8-fp8", [], False),
        ([config(quantization="fp8")], "unknown", [], False),
        ([config("0.25.1", quantization="fp8"), LOADED], "unknown", [], False),
        ([config(quantization="fp8"), FP8_WARNING, LOADED], "w8a16-fp8", ["marlin"], True),
        ([config(quantization="compressed-tensors"), LOADED], "unknown", [], False),
        (
            [config(quantization="compressed-tensors"), FP8_WARNING],
            "w8a16-fp8",
            ["marlin"],
            True,
        ),
        ([config("0.25.1", quantization="auto_gptq"), LOADED, READY], "unknown", [], False),
        ([config("0.25.1", quantization="gptq"), LOADED, READY], "unknown", [], False),
        ([config("0.6.3", quantization="gptq")], "w4a16", ["exllama"], True),
        ([config(quantization="awq")], "w4a16", ["awq"], True),
        ([config(quantization="awq_marlin")], "w4a16", ["marlin"], False),
        ([config("0.8.5", quantization="gptq_marlin"), LOADED], "w4a16", [], False),
        ([config("0.5.4", quantization="gptq_marlin"), LOADED], "w4a16", ["marlin"], False),
        ([config(quantization="aqlm"), LOADED], "w2a16", ["aqlm"], False),
        ([config(quantization="gguf"), LOADED], "unknown", [], False),
        (
            [
                config("0.8.5", quantization="gptq_marlin"),
                kernel("MacheteLinearKernel", "GPTQMarlinLinearMethod", "Using"),
            ],
            "w4a16",
            ["machete"],
            False,
        ),
        (
            [
                config("0.29.0", quantization="auto_gptq", model="'org/Qwen-GPTQ-Int8'"),
                kernel("MarlinLinearKernel", "AutoGPTQLinearMethod", "Using"),
            ],
            "w8a16-int8",
            ["marlin"],
            False,
        ),
        (
            [config("0.12.0"), kernel("AllSparkLinearKernel", "CompressedTensorsWNA16", "Using")],
            "w8a16-int8",
            ["allspark"],
            False,
        ),
        (
            [
                config("0.12.0"),
                kernel("AllSparkLinearKernel", "CompressedTensorsWNA16", "Using"),
                kernel("MarlinLinearKernel", "CompressedTensorsWNA16", "Using"),
            ],
            "w8a16-int8",
            ["allspark", "marlin"],
            False,
        ),
        (
            [kernel("CutlassScaledMMLinearKernel", "CompressedTensorsW8A8Int8", "Using")],
            "w8a8-int8",
            ["cutlass"],
            False,
        ),
        (
            [kernel("CutlassInt8ScaledMMLinearKernel", "CompressedTensorsW8A8Int8")],
            "w8a8-int8",
            ["cutlass"],
            False,
        ),
        (
            [kernel("FlashInferFP8ScaledMMLinearKernel", "ModelOptFp8LinearMethod")],
            "w8a8-fp8",
            ["flashinfer"],
            False,
        ),
        (
            [kernel("DeepGemmFp8BlockScaledMMKernel", "Fp8LinearMethod")],
            "w8a8-fp8",
            ["deepgemm"],
            False,
        ),
        (
            [kernel("CutlassFP8ScaledMMLinearKernel", "QKVParallelLinear")],
            "w8a8-fp8",
            ["cutlass"],
            False,
        ),
        (
            [kernel("MarlinFP8ScaledMMLinearKernel", "Fp8OnlineLinearMethod")],
            "w8a16-fp8",
            ["marlin"],
            True,
        ),
        (
            [kernel("MarlinFP8ScaledMMLinearKernel", "CompressedTensorsW8A16Fp8")],
            "w8a16-fp8",
            ["marlin"],
            False,
        ),
        (
            [kernel("FlashInferCutlassNvFp4LinearKernel", "NVFP4 GEMM", "Using")],
            "w4a4-nvfp4",
            ["cutlass", "flashinfer"],
            False,
        ),
        (
            [kernel("MarlinNvFp4LinearKernel", "NVFP4 GEMM", "Using"), FP4_WARNING],
            "w4a16-nvfp4",
            ["marlin"],
            True,
        ),
        (
            [
                config("0.23.0", quantization="modelopt_mixed"),
                kernel("CutlassFP8ScaledMMLinearKernel", "ModelOptFp8LinearMethod"),
                kernel("CutlassNvFp4LinearKernel", "NVFP4 GEMM", "Using"),
            ],
            "mixed",
            ["cutlass"],
            False,
        ),
        (
            [kernel("CutlassFP8ScaledMMLinearKernel", "Fp8LinearMethod"), FP8_WARNING],
            "mixed",
            ["cutlass", "marlin"],
            True,
        ),
        (
            [
                config("0.32.0", device_config="cpu", quantization="compressed-tensors"),
                kernel("CPUInt8ScaledMMLinearKernel", "CompressedTensorsW8A8Int8"),
            ],
            "w8a8-int8",
            ["cpu"],
            False,
        ),
        (
            [
                config("0.32.0", device_config="cpu", quantization="compressed-tensors"),
                kernel("CPUWNA16LinearKernel", "CompressedTensorsWNA16", "Using"),
            ],
            "w4a16",
            ["cpu"],
            False,
        ),
        (
            [
                config("0.32.0", device_config="cpu", quantization="compressed-tensors"),
                kernel("ChannelWiseTorchFP8ScaledMMLinearKernel", "CompressedTensorsW8A8Fp8"),
            ],
            "w8a8-fp8",
            ["torch"],
            True,
        ),
        (
            [
                config("0.30.0", quantization="fp8"),
                "INFO 01-02 03:04:07 [fp8.py:419] Using DEEPGEMM Fp8 MoE backend out of potential "
                "backends: ['AITER', 'MARLIN', 'TRITON'].",
            ],
            "w8a8-fp8",
            ["deepgemm"],
            False,
        ),
        (
            [
                config("0.30.0", quantization="inc"),
                "INFO 01-02 03:04:07 [int_wna16.py:206] Using 'MARLIN' WNA16 MoE backend.",
            ],
            "unknown",
            [],
            False,
        ),
        (
            [
                config("0.30.0"),
                "INFO 01-02 03:04:07 [unquantized.py:262] Using TRITON Unquantized MoE backend out of "
                "potential backends: ['FlashInfer TRTLLM', 'TRITON'].",
            ],
            "bf16",
            [],
            False,
        ),
    ],
)
def test_scheme(lines, scheme, families, degraded):
    facts = log(*lines)
    assert (facts.scheme, facts.kernel_family, facts.degraded) == (scheme, families, degraded)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (FP8_WARNING, "fp8-weight-only"),
        (FP4_WARNING, "fp4-weight-only"),
        (
            "INFO 01-02 03:04:05 [gptq_marlin.py:118] Detected that the model can run with gptq_marlin, "
            "however you specified quantization=gptq explicitly, so forcing gptq. Use "
            "quantization=gptq_marlin for faster inference",
            "forced-unoptimized-method",
        ),
        (
            "WARNING 01-02 03:04:05 config.py:254] gguf quantization is not fully optimized yet. The "
            "speed can be slower than non-quantized models.",
            "unoptimized-kernel",
        ),
        (
            "WARNING 01-02 03:04:05 [awq_marlin.py:126] Layer 'lm_head' is not supported by AWQMarlin. "
            "Falling back to unoptimized AWQ kernels.",
            "unoptimized-kernel",
        ),
        (
            "INFO 01-02 03:04:05 selector.py:217] Cannot use FlashAttention-2 backend for Volta and "
            "Turing GPUs.",
            "attention-fallback",
        ),
        (
            "ERROR 01-02 03:04:05 [fa_utils.py:57] Cannot use FA version 2 is not supported due to FA2 "
            "is only supported on devices with compute capability >= 8",
            "attention-fallback",
        ),
        (
            "WARNING 01-02 03:04:05 [model.py:2440] Your device 'Tesla T4' (with compute capability 7.5) "
            "doesn't support torch.bfloat16. Falling back to torch.float16 for compatibility.",
            "dtype-fallback",
        ),
        (
            "WARNING 01-02 03:04:05 [fused_moe.py:727] Using default MoE config. Performance might be "
            "sub-optimal! Config file not found at E=128,N=768.json",
            "untuned-moe",
        ),
        (
            "WARNING 01-02 03:04:05 [fp8_utils.py:575] Using default W8A8 Block FP8 kernel config. "
            "Performance might be sub-optimal! Config file not found at N=1.json",
            "untuned-fp8-block-kernel",
        ),
    ],
)
def test_degradation_is_named_once_with_its_line(line, kind):
    facts = log(config(), line, line, LOADED)
    assert [degradation.kind for degradation in facts.degradations] == [kind]
    assert facts.degradations[0].line == line


@pytest.mark.parametrize(
    "line",
    [
        "WARNING 01-02 03:04:05 [model.py:1892] Casting torch.bfloat16 to torch.float16.",
        "WARNING 01-02 03:04:05 [topk_topp_sampler.py:69] FlashInfer is not available. Falling back to "
        "the PyTorch-native implementation of top-p & top-k sampling.",
        "INFO 01-02 03:04:05 [cache.py:285] Using fp8 data type to store kv cache. Meanwhile, it may "
        "cause accuracy drop without a proper scaling factor",
        "INFO 01-02 03:04:05 [cpu.py:151] Cannot use _Backend.FLASH_ATTN backend on CPU.",
    ],
)
def test_what_is_no_degradation(line):
    assert not log(config(), line, LOADED).degraded


@pytest.mark.parametrize(
    ("line", "kind", "in_hint"),
    [
        (
            "ValueError: The model's max seq len (29000) is larger than the maximum number of tokens "
            "that can be stored in KV cache (23648). Try increasing `gpu_memory_utilization`.",
            "kv-cache-too-small-for-max-model-len",
            "23648",
        ),
        (
            "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 "
            "GiB KV cache is needed, which is larger than the available KV cache memory (5.53 GiB). "
            "Based on the available memory, the estimated maximum model length is 45264. Try",
            "kv-cache-too-small-for-max-model-len",
            "45264",
        ),
        (
            "ValueError: To serve at least one request with the models's max seq len (100000), (10.0 GiB "
            "KV cache is needed, which is larger than the available KV cache memory (5.0 GiB). Try",
            "kv-cache-too-small-for-max-model-len",
            "50000",
        ),
        (
            "ValueError: No available memory for the cache blocks. Try increasing "
            "`gpu_memory_utilization` when initializing the engine.",
            "no-memory-for-kv-cache",
            "gpu_memory_utilization",
        ),
        (
            "ValueError: Free memory on device cuda:0 (13.58/15.99 GiB) on startup is less than desired "
            "GPU memory utilization (0.9, 14.39 GiB). Decrease GPU memory utilization",
            "insufficient-free-gpu-memory",
            "0.84",
        ),
        (
            "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 14.58 "
            "GiB total capacty of which",
            "oom",
            "20.00 MiB",
        ),
        ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.5 GiB.", "oom", "1.5 GiB"),
        ("RuntimeError: CUDA error: out of memory", "oom", "weights"),
        (
            "[rank0]: E0102 03:04:05 Failed to run autotuning code block: CUDA out of memory. Tried",
            "oom",
            "memory",
        ),
        (
            "ValueError: ('Quantization scheme is not supported for ', 'the current GPU. Min capability: "
            "89. ', 'Current capability: 86.')",
            "unsupported-compute-capability",
            "L4, L40S",
        ),
        (
            "ValueError: The quantization method gptq_marlin is not supported for the current GPU. "
            "Minimum capability: 80. Current capability: 75.",
            "unsupported-compute-capability",
            "A100",
        ),
        (
            "ValueError: Marlin does not support weight_bits = uint4b8. Only types = [] are supported "
            "(for group_size = 128, min_capability = 75, zp = False).",
            "unsupported-compute-capability",
            "7.5",
        ),
        (
            "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. "
            "Your Tesla T4 GPU has compute capability 7.5. You can use float16 instead",
            "dtype-unsupported-on-gpu",
            "float16",
        ),
        (
            "RuntimeError: CUDA error: device kernel image is invalid",
            "kernel-image-invalid",
            "wheel",
        ),
        (
            "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled",
            "nccl",
            "NCCL_DEBUG",
        ),
        ("OSError: [Errno 98] Address already in use", "port-in-use", "port"),
        (
            "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address "
            "already in use",
            "port-in-use",
            "8000",
        ),
        (
            "OSError: You are trying to access a gated repo. Make sure to have access to it at",
            "gated-repo",
            "HF_TOKEN",
        ),
        (
            "huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1)",
            "gated-repo",
            "HF_TOKEN",
        ),
        ("OSError: [Errno 122] Disk quota exceeded", "disk-quota", "quota"),
        ("ModuleNotFoundError: No module named 'pandas'", "missing-python-module", "pandas"),
        (
            "AttributeError: 'Qwen2Tokenizer' object has no attribute 'all_special_tokens_extended'",
            "transformers-version-mismatch",
            "transformers below 5",
        ),
        (
            "ValueError: Total number of attention heads (28) must be divisible by tensor parallel size "
            "(8).",
            "tensor-parallel-mismatch",
            "1, 2, 4, 7, 14",
        ),
    ],
)
def test_failure_and_what_to_change(line, kind, in_hint):
    facts = log(
        config(),
        "ERROR 01-02 03:04:06 [core.py:718] EngineCore failed to start.",
        f"ERROR 01-02 03:04:06 [core.py:718] {line}",
        f"(EngineCore_DP0 pid=7) {line}",
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    )
    assert facts.failure.kind == kind
    assert in_hint in facts.failure.hint
    assert line.split("(")[0] in facts.failure.line


def test_wrapper_alone_names_the_first_exception():
    facts = log(
        config(),
        "ERROR 01-02 03:04:06 [core.py:718] EngineCore failed to start.",
        "ERROR 01-02 03:04:06 [core.py:718] Traceback (most recent call last):",
        "ERROR 01-02 03:04:06 [core.py:718] KeyError: 'layers.0.mlp.gate.weight'",
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    )
    assert facts.failure.kind == "engine-core-failed-to-start"
    assert "layers.0.mlp.gate.weight" in facts.failure.hint


def test_unknown_exception_is_reported_as_such():
    facts = log(
        config(),
        "Traceback (most recent call last):",
        '  File "run.py", line 8, in <module>',
        "TypeError: unhashable type: 'dict'",
    )
    assert facts.failure.kind == "unrecognised-error"
    assert "unhashable" in facts.failure.hint


def test_a_log_that_simply_stops_is_no_failure():
    facts = log(config(), LOADED)
    assert facts.failure is None
    assert not facts.ready


@pytest.mark.parametrize(
    "line",
    [
        "INFO 01-02 03:04:06 [model_runner.py:980] CUDA graphs can take additional 1~3 GiB memory per "
        "GPU. If you are running out of memory, consider decreasing `gpu_memory_utilization`",
        "INFO 01-02 03:04:06 If out-of-memory error occurs during cudagraph capture, consider decreasing",
        "INFO 01-02 03:04:06 [pynccl.py:70] vLLM is using nccl==2.26.2",
        "INFO 01-02 03:04:06 [gpu_worker.py:391] Free memory on device (78.57/79.18 GiB) on startup. "
        "Desired GPU memory utilization is (0.9, 71.26 GiB). Actual usage is 56.93 GiB for weight",
        "WARNING 01-02 03:04:06 [_ipex_ops.py:16] Import error msg: No module named 'intel_extension'",
        "    except torch.cuda.OutOfMemoryError as error:",
    ],
)
def test_advice_and_information_are_no_failures(line):
    assert log(config(), line, LOADED, line).failure is None


def test_requests_may_fail_after_the_start():
    facts = log(
        config(),
        LOADED,
        READY,
        "ERROR 01-02 03:05:00 [serving_chat.py:200] Error in preprocessing prompt inputs",
        "Traceback (most recent call last):",
        "ValueError: This model's maximum context length is 4096 tokens.",
        "ModuleNotFoundError: No module named 'soundfile'",
        'INFO:     127.0.0.1:1 - "POST /v1/chat/completions HTTP/1.1" 404 Not Found',
    )
    assert facts.ready
    assert facts.failure is None


def test_an_engine_that_dies_while_serving():
    death = "ERROR 01-02 03:05:00 [core.py:700] EngineCore encountered a fatal error."
    facts = log(
        config(), LOADED, READY, death, "vllm.v1.engine.exceptions.EngineDeadError: see above"
    )
    assert facts.ready
    assert facts.failure.kind == "engine-dead-after-start"
    assert facts.failure.line == death


def test_memory_that_runs_out_while_serving_is_the_better_cause():
    facts = log(
        config(),
        LOADED,
        READY,
        "ERROR 01-02 03:05:00 [core.py:700] EngineCore encountered a fatal error.",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has",
    )
    assert facts.failure.kind == "oom"
    assert "while requests were served" in facts.failure.hint


def test_an_engine_that_was_told_to_stop_did_not_die():
    facts = log(
        config(),
        LOADED,
        READY,
        "INFO 01-02 03:05:00 [launcher.py:110] Shutting down FastAPI HTTP server.",
        "ERROR 01-02 03:05:01 [core_client.py:6] Engine core proc EngineCore_DP0 died unexpectedly",
    )
    assert facts.failure is None


def test_smallest_rank_and_last_print():
    facts = log(
        config("0.9.1", tensor_parallel_size="2"),
        "(VllmWorker rank=0 pid=1) INFO 01-02 03:04:09 [r.py:1] Model loading took 28.9 GiB and 1.0 seconds",
        "(VllmWorker rank=1 pid=2) INFO 01-02 03:04:09 [r.py:1] Model loading took 28.9 GiB and 1.0 seconds",
        "(VllmWorker rank=0 pid=1) INFO 01-02 03:04:19 [r.py:1] Model loading took 29.36 GiB and 3.0 seconds",
        "(VllmWorker rank=1 pid=2) INFO 01-02 03:04:19 [r.py:1] Model loading took 29.36 GiB and 3.5 seconds",
        "INFO 01-02 03:04:37 [kv_cache_utils.py:833] GPU KV cache size: 1,594,928 tokens",
        "INFO 01-02 03:04:37 [kv_cache_utils.py:837] Maximum concurrency for 32,768 tokens per request: 48.67x",
        "INFO 01-02 03:04:37 [kv_cache_utils.py:833] GPU KV cache size: 1,590,736 tokens",
        "INFO 01-02 03:04:37 [kv_cache_utils.py:837] Maximum concurrency for 32,768 tokens per request: 48.55x",
    )
    assert facts.weights_gib == 29.36
    assert facts.kv_cache_tokens == 1590736
    assert (facts.max_concurrency, facts.max_concurrency_tokens) == (48.55, 32768)
    assert facts.tensor_parallel_size == 2


@pytest.mark.parametrize(
    "line",
    [
        "INFO 01-02 03:04:37 llm_engine.py:275] # GPU blocks: 5402, # CPU blocks: 512",
        "INFO 01-02 03:04:37 [executor_base.py:110] # cuda blocks: 5402, # CPU blocks: 512",
        "INFO 01-02 03:04:37 kv_cache_utils.py:395] # GPU blocks: 5402",
    ],
)
def test_blocks_are_not_tokens(line):
    facts = log(line, "Overriding num_gpu_blocks=0 with num_gpu_blocks_override=512")
    assert (facts.gpu_blocks, facts.kv_cache_tokens) == (5402, None)
    assert facts.kv_cache_tokens_from_blocks == 86432


def test_block_size_follows_from_the_printed_concurrency():
    facts = log(
        "# GPU blocks: 1381, # CPU blocks: 512",
        "Maximum concurrency for 2048 tokens per request: 21.58x",
    )
    assert facts.kv_cache_tokens_from_blocks == 1381 * 32


def test_cpu_and_one_line_form():
    facts = log(
        "(EngineCore pid=1) INFO 01-02 03:04:37 [kv_cache_utils.py:2329] CPU KV cache size: 29,856 tokens, "
        "Maximum concurrency for 2,048 tokens per request: 14.58x"
    )
    assert (facts.kv_cache_tokens, facts.max_concurrency) == (29856, 14.58)


def test_the_length_that_was_fitted_is_served():
    facts = log(
        config(max_seq_len="262144"),
        "INFO 01-02 03:04:37 [kv_cache_utils.py:2478] Auto-fit max_model_len: reduced from 262144 to "
        "121840 to fit in available GPU memory",
    )
    assert facts.max_model_len == 121840


def test_arguments_are_not_settings():
    facts = log(
        "INFO 01-02 03:04:05 api_server.py:150] args: Namespace(host=None, tensor_parallel_size=4, "
        "quantization=None, kv_cache_dtype='auto', dtype='auto')"
    )
    assert facts.quantization is None
    assert facts.scheme == "unknown"
    assert facts.dtype is None
    assert facts.tensor_parallel_size == 4


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("INFO 01-02 03:04:05 selector.py:33] Using XFormers backend.", "XFormers"),
        (
            "INFO 01-02 03:04:05 [cuda.py:362] Using Flash Attention backend on V1 engine.",
            "Flash Attention",
        ),
        ("INFO 01-02 03:04:05 [rocm.py:463] Using Triton Attention backend.", "Triton Attention"),
        ("INFO 01-02 03:04:05 [rocm.py:1] Using ROCmFlashAttention backend.", "ROCmFlashAttention"),
        (
            "INFO 01-02 03:04:05 [cuda.py:318] Using AttentionBackendEnum.TRITON_ATTN backend.",
            "TRITON_ATTN",
        ),
        (
            "INFO 01-02 03:04:05 [cuda.py:481] Using FLASHMLA_SPARSE attention backend out of potential "
            "backends: ['FLASHMLA_SPARSE'].",
            "FLASHMLA_SPARSE",
        ),
        ("INFO 01-02 03:04:05 [cpu.py:145] Using Torch SDPA backend.", "Torch SDPA"),
        (
            "INFO 01-02 03:04:05 [cuda.py:427] Using backend AttentionBackendEnum.FLASH_ATTN for vit attention",
            None,
        ),
        ("INFO 01-02 03:04:05 [selector.py:174] Using FLASH_ATTN MLA prefill backend.", None),
        ("INFO 01-02 03:04:05 [mxfp4.py:161] Using Triton backend", None),
        ("INFO 01-02 03:04:05 [rocm.py:894] Using Flash Attention backend for ViT model.", None),
    ],
)
def test_attention_backend(line, name):
    assert log(line).attention_backend == name


def test_the_last_start_counts():
    first = [
        "INFO 01-02 03:04:01 [api_server.py:1896] vLLM API server version 0.10.1",
        config("0.10.1", quantization="fp8"),
        LOADED,
        "INFO 01-02 03:04:37 [kv_cache_utils.py:833] GPU KV cache size: 1,000 tokens",
        READY,
    ]
    second = [
        "INFO 01-03 03:04:01 [api_server.py:1896] vLLM API server version 0.10.2",
        config("0.10.2"),
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has",
    ]
    facts = log(*first, *second)
    assert (facts.vllm_version, facts.ready, facts.kv_cache_tokens) == ("0.10.2", False, None)
    assert (facts.failure.kind, facts.starts_in_file) == ("oom", 2)
    assert log(*second, *first).failure is None


def test_offline_engines_in_one_process():
    facts = log(
        "INFO 01-02 03:04:01 [awq_marlin.py:117] The model is convertible to awq_marlin during runtime. Using",
        config("0.8.5", quantization="awq_marlin"),
        LOADED,
        "INFO 01-02 03:04:39 [core.py:218] init engine (profile, create kv cache, warmup model) took 11.23 seconds",
        "WARNING 01-02 03:05:01 [config.py:254] bitsandbytes quantization is not fully optimized yet. The speed",
        config("0.8.5", quantization="bitsandbytes"),
        LOADED.replace("7.5", "5.25"),
    )
    assert (facts.quantization, facts.weights_gib, facts.degraded) == ("bitsandbytes", 5.25, True)
    assert facts.starts_in_file == 2


def test_engines_of_data_parallel_are_one_start():
    facts = log(
        "(APIServer pid=1) INFO 01-02 03:04:01 [api_server.py:1896] vLLM API server version 0.11.0",
        "(EngineCore_DP0 pid=2) " + config("0.11.0"),
        "(EngineCore_DP0 pid=2) " + LOADED,
        "(EngineCore_DP1 pid=3) " + config("0.11.0"),
        "(EngineCore_DP1 pid=3) " + LOADED,
        "(EngineCore_DP0 pid=2) GPU KV cache size: 2,000 tokens",
        "(EngineCore_DP1 pid=3) GPU KV cache size: 1,900 tokens",
        "(APIServer pid=1) " + READY,
    )
    assert (facts.starts_in_file, facts.kv_cache_tokens, facts.ready) == (1, 1900, True)


@pytest.mark.parametrize(
    ("lines", "scheme", "families"),
    [
        (
            ["INFO 01-02 03:04:05 [fp8.py:1] Using Marlin backend for FP8 MoE"],
            "w8a16-fp8",
            ["marlin"],
        ),
        (
            ["INFO 01-02 03:04:05 [fp8.py:1] Using Triton backend for FP8 MoE"],
            "w8a8-fp8",
            ["triton"],
        ),
        (
            ["INFO 01-02 03:04:05 [modelopt.py:1] Using flashinfer-cutlass for NVFP4 GEMM"],
            "w4a4-nvfp4",
            ["cutlass", "flashinfer"],
        ),
        (
            ["INFO 01-02 03:04:05 [mxfp4.py:1] Using FlashInfer MXFP4 BF16 backend for SM90"],
            "w4a16-mxfp4",
            ["flashinfer"],
        ),
        (["INFO 01-02 03:04:05 [mxfp4.py:1] Using Triton backend"], "w4a16-mxfp4", ["triton"]),
        (
            [
                config(speculative_config="SpeculativeConfig(method='eagle', model='d')"),
                kernel("CutlassFP8ScaledMMLinearKernel", "Fp8LinearMethod"),
            ],
            "bf16",
            ["cutlass"],
        ),
        ([config("0.1.dev1+g0123456", quantization="fp8"), LOADED], "unknown", []),
    ],
)
def test_older_sentences_and_draft_models(lines, scheme, families):
    facts = log(*lines)
    assert (facts.scheme, facts.kernel_family) == (scheme, families)


def test_a_kernel_that_was_announced_and_never_ran():
    facts = log(
        config("0.19.1", quantization="inc"),
        kernel("MarlinLinearKernel", "GPTQMarlinLinearMethod", "Using"),
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has",
    )
    assert facts.kernels == ["MarlinLinearKernel"]
    assert (facts.scheme, facts.kernel_family) == ("unknown", [])


def test_kv_dtype_where_the_configuration_is_missing():
    line = (
        "INFO 01-02 03:04:05 [cache.py:285] Using fp8_e4m3 data type to store kv cache. It reduces"
    )
    assert log(line).kv_cache_dtype == "fp8_e4m3"
    assert log(config()).kv_cache_dtype is None
    assert log(config(kv_cache_dtype="fp8")).kv_cache_dtype == "fp8"


def test_logs_of_the_docker_daemon():
    import json

    lines = [
        config("0.11.0", dtype="torch.float16"),
        LOADED,
        "\x1b[0;36m(APIServer pid=1)\x1b[0;0m " + READY,
    ]
    text = "\n".join(
        json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-01-02T03:04:05Z"})
        for line in lines
    )
    facts = read_log_text(text + "\n")
    assert (facts.vllm_version, facts.scheme, facts.weights_gib, facts.ready) == (
        "0.11.0",
        "fp16",
        7.5,
        True,
    )


def test_an_excerpt_of_an_engine_that_died():
    facts = log(
        "ERROR 07-21 13:02:07 [core.py:588] EngineCore encountered a fatal error.",
        "ERROR 07-21 13:02:07 [core.py:588] RuntimeError: CUDA error: an illegal memory access",
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
    )
    assert facts.failure.kind == "engine-dead-after-start"
    assert "illegal memory access" in facts.failure.hint


def test_a_prompt_is_no_log():
    facts = log(
        config(),
        LOADED,
        READY,
        "INFO 01-02 03:05:00 [logger.py:43] Received request cmpl-1: prompt: 'vLLM API server version 9.9.9 "
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB EngineDeadError', params",
    )
    assert (facts.vllm_version, facts.failure, facts.ready) == ("0.10.2", None, True)


def test_a_module_that_was_tried_and_not_needed():
    tried = "ModuleNotFoundError: No module named 'fancy_extension'"
    assert log(config(), tried).failure.kind == "missing-python-module"
    assert (
        log(config(), tried, "INFO 01-02 03:04:09 [x.py:1] Chunked prefill is enabled").failure
        is None
    )


def test_a_slow_sibling_may_have_the_smallest_cache():
    facts = log(
        "(EngineCore_DP0 pid=2) " + config("0.11.0"),
        "(EngineCore_DP1 pid=3) " + config("0.11.0"),
        "(EngineCore_DP0 pid=2) GPU KV cache size: 2,000 tokens",
        "(EngineCore_DP0 pid=2) init engine (profile, create kv cache, warmup model) took 9.0 seconds",
        "(EngineCore_DP1 pid=3) GPU KV cache size: 1,900 tokens",
        "(EngineCore_DP1 pid=3) init engine (profile, create kv cache, warmup model) took 9.5 seconds",
    )
    assert (facts.kv_cache_tokens, facts.engine_init_s, facts.starts_in_file) == (1900, 9.5, 1)
