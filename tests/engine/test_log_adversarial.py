"""Logs as people paste them: nothing lost, nothing made up."""

# ruff: noqa: E501 - log lines are quoted as they are

import pytest

from tests.engine.log_texts import BF16, QUANTIZED, config, said

CASES = {
    "a build without a version": (
        "INFO 12-20 00:49:35 llm_engine.py:237] Initializing an LLM engine (vdev) with config: model='/models/x', speculative_config=None, dtype=torch.bfloat16, max_seq_len=8192, load_format=LoadFormat.AUTO, tensor_parallel_size=2, pipeline_parallel_size=1, quantization=None, enforce_eager=False, kv_cache_dtype=auto, device_config=cuda, seed=0)\n"
        "INFO 12-20 00:49:50 model_runner.py:1077] Loading model weights took 7.5122 GB\n",
        {
            "vllm_version": "dev",
            "scheme": "bf16",
            "weights_gib": 7.5122,
            "tensor_parallel_size": 2,
            "dtype": "torch.bfloat16",
        },
    ),
    "Gaudi": (
        "INFO 02-04 12:35:22 hpu_model_runner.py:712] Pre-loading model weights on hpu:0 took 15.06 GiB of device memory (15.06 GiB/30.15 GiB used) and 1.135 GiB of host memory (54.29 GiB/748 GiB used)\n"
        "INFO 02-04 12:35:23 hpu_model_runner.py:790] Wrapping in HPU Graph took 0 B of device memory (15.05 GiB/30.15 GiB used) and -8 KiB of host memory (54.29 GiB/748 GiB used)\n"
        "INFO 02-04 12:35:23 hpu_model_runner.py:794] Loading model weights took in total 15.05 GiB of device memory (15.05 GiB/30.15 GiB used) and 1.134 GiB of host memory (54.29 GiB/748 GiB used)\n"
        "INFO 02-04 12:35:40 hpu_executor.py:96] # HPU blocks: 1091, # CPU blocks: 256\n"
        "INFO 02-04 12:35:40 hpu_worker.py:239] Initializing cache engine took 11.9 GiB of device memory\n",
        {"weights_gib": 15.05, "gpu_blocks": 1091},
    ),
    "frame of a terminal": (
        "│ INFO 03-24 04:03:50 [cuda.py:221] Using Flash Attention backend on V1 engine.                                 │\n"
        "│ INFO 03-24 04:03:55 [gpu_model_runner.py:1176] Model loading took 14.9888 GB and 28.719376 seconds             │\n"
        "│ INFO 03-24 04:04:55 [kv_cache_utils.py:537] GPU KV cache size: 36,848 tokens                                   │\n",
        {"weights_gib": 14.9888, "kv_cache_tokens": 36848, "attention_backend": "Flash Attention"},
    ),
    "line ends lost": (
        "python -m vllm.entrypoints.api_server INFO 08-22 15:27:08 llm_engine.py:70] Initializing an LLM engine with config: model='meta/Llama', tokenizer='x', dtype=torch.float16, tensor_parallel_size=1, quantization=None, seed=0) INFO 08-22 15:27:08 tokenizer.py:29] For some LLaMA-based models INFO 08-22 15:27:25 llm_engine.py:196] # GPU blocks: 865, # CPU blocks: 327 INFO: Started server process [9264] INFO: Waiting for application startup. INFO: Application startup complete. INFO: Uvicorn running on http://localhost:5500 (Press CTRL+C to quit)",
        {
            "scheme": "fp16",
            "gpu_blocks": 865,
            "tensor_parallel_size": 1,
            "dtype": "torch.float16",
            "ready": True,
        },
    ),
    "line ends lost, with a server": (
        "INFO 03-01 10:00:00 api_server.py:585] vLLM API server version 0.6.4.post1 INFO 03-01 10:00:01 api_server.py:586] args: Namespace(model='x', quantization=None, tensor_parallel_size=1) INFO 03-01 10:00:07 llm_engine.py:249] Initializing an LLM engine (v0.6.4.post1) with config: model='x', dtype=torch.float16, max_seq_len=4096, tensor_parallel_size=1, quantization=awq_marlin, kv_cache_dtype=auto, device_config=cuda, seed=0) INFO 03-01 10:00:20 model_runner.py:1077] Loading model weights took 5.2035 GB INFO 03-01 10:00:25 gpu_executor.py:122] # GPU blocks: 20000, # CPU blocks: 4096 INFO 03-01 10:00:25 gpu_executor.py:126] Maximum concurrency for 4096 tokens per request: 78.12x\n",
        {
            "vllm_version": "0.6.4.post1",
            "quantization": "awq_marlin",
            "scheme": "w4a16",
            "kernel_family": ["marlin"],
            "weights_gib": 5.2035,
            "gpu_blocks": 20000,
            "max_concurrency": 78.12,
            "max_concurrency_tokens": 4096,
            "tensor_parallel_size": 1,
            "dtype": "torch.float16",
        },
    ),
    "kernel and warning in a code block": (
        "```text\n"
        "Selected MarlinFP8ScaledMMLinearKernel for Fp8LinearMethod\n"
        "Your GPU does not have native support for FP8 computation but FP8 quantization is being used. Weight-only FP8 compression will be used leveraging the Marlin kernel. This may degrade performance for compute-heavy workloads.\n"
        "```\n",
        {
            "kernels": ["MarlinFP8ScaledMMLinearKernel"],
            "scheme": "w8a16-fp8",
            "kernel_family": ["marlin"],
            "degradations": ["fp8-weight-only"],
        },
    ),
    "nccl warn bind": (
        config()
        + "INFO 01-02 03:04:09 [gpu_model_runner.py:2392] Model loading took 7.5 GiB and 1.17 seconds\n"
        "host:529525:535668 [0] ras/client_support.cc:160 NCCL WARN Call to bind failed: Address already in use\n"
        "INFO 01-02 03:05:09 [kv_cache_utils.py:634] GPU KV cache size: 73,184 tokens\n",
        {**BF16, "vllm_version": "0.10.2", "weights_gib": 7.5, "kv_cache_tokens": 73184},
    ),
    "nccl warn bind end": (
        config()
        + "host:529525:535668 [0] ras/client_support.cc:160 NCCL WARN Call to bind failed: Address already in use\n",
        {**BF16, "vllm_version": "0.10.2"},
    ),
    "autotune oom": (
        config()
        + "(EngineCore_DP0 pid=558551) INFO 01-02 03:04:09 [gpu_model_runner.py:2392] Model loading took 7.5 GiB and 1.17 seconds\n"
        "(EngineCore_DP0 pid=558551) ERROR 01-19 23:55:19 [core.py:866] EngineCore failed to start.\n"
        "(EngineCore_DP0 pid=558551) ERROR 01-19 23:55:19 [core.py:866] Traceback (most recent call last):\n"
        "(EngineCore_DP0 pid=558551) ERROR 01-19 23:55:19 [core.py:866] torch._inductor.exc.InductorError: RuntimeError: Failed to run autotuning code block: CUDA out of memory. Tried to allocate 1.02 GiB. GPU 0 has a total capacity of 15.47 GiB of which 857.31 MiB is free.\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {**BF16, "vllm_version": "0.10.2", "weights_gib": 7.5, "failure": "oom"},
    ),
    "wna16 no kernel": (
        config("0.10.1", quantization="compressed-tensors")
        + "(EngineCore_0 pid=24294) ERROR 08-21 07:50:50 [core.py:700] EngineCore failed to start.\n"
        "(EngineCore_0 pid=24294) ERROR 08-21 07:50:50 [core.py:700] Traceback (most recent call last):\n"
        "(EngineCore_0 pid=24294) ERROR 08-21 07:50:50 [core.py:700] ValueError: Failed to find a kernel that can implement the WNA16 linear layer. Reasons: \n"
        "(EngineCore_0 pid=24294) ERROR 08-21 07:50:50 [core.py:700]  CutlassW4A8LinearKernel requires capability 90, current compute  capability is 80\n"
        "(EngineCore_0 pid=24294) ERROR 08-21 07:50:50 [core.py:700]  MacheteLinearKernel requires capability 90, current compute  capability is 80\n"
        "(EngineCore_0 pid=24294) ERROR 08-21 07:50:50 [core.py:700]  MarlinLinearKernel cannot implement due to: Weight input_size_per_partition = 14784 is not divisible by min_thread_k = 128. Consider reducing tensor_parallel_size or running with --quantization gptq.\n"
        "(EngineCore_0 pid=24294) ERROR 08-21 07:50:50 [core.py:700]  ExllamaLinearKernel cannot implement due to: Exllama only supports float16 activations\n",
        {
            **QUANTIZED,
            "vllm_version": "0.10.1",
            "quantization": "compressed-tensors",
            "failure": "unsupported-shape",
        },
    ),
    "dp2 v1": (
        config("0.11.0", before="(EngineCore_DP0 pid=1) ", data_parallel_size="2")
        + config("0.11.0", before="(EngineCore_DP1 pid=2) ", data_parallel_size="2")
        + "(EngineCore_DP0 pid=1) INFO 10-10 10:00:10 [gpu_model_runner.py:2653] Model loading took 14.9889 GiB and 4.1 seconds\n"
        "(EngineCore_DP1 pid=2) INFO 10-10 10:00:10 [gpu_model_runner.py:2653] Model loading took 14.9889 GiB and 4.3 seconds\n"
        "(EngineCore_DP0 pid=1) INFO 10-10 10:00:20 [kv_cache_utils.py:1087] GPU KV cache size: 400,000 tokens\n"
        "(EngineCore_DP0 pid=1) INFO 10-10 10:00:20 [kv_cache_utils.py:1091] Maximum concurrency for 8,192 tokens per request: 48.83x\n"
        "(EngineCore_DP1 pid=2) INFO 10-10 10:00:20 [kv_cache_utils.py:1087] GPU KV cache size: 399,984 tokens\n"
        "(EngineCore_DP1 pid=2) INFO 10-10 10:00:20 [kv_cache_utils.py:1091] Maximum concurrency for 8,192 tokens per request: 48.83x\n"
        "(ApiServer_0 pid=9) INFO:     Application startup complete.\n",
        {
            **BF16,
            "vllm_version": "0.11.0",
            "weights_gib": 14.9889,
            "kv_cache_tokens": 399984,
            "max_concurrency": 48.83,
            "max_concurrency_tokens": 8192,
            "ready": True,
        },
    ),
    "gguf v0": (
        "WARNING 01-02 03:04:05 config.py:254] gguf quantization is not fully optimized yet. The speed can be slower than non-quantized models.\n"
        + config("0.6.3", "", dtype="torch.float16", load_format="gguf", quantization="gguf")
        + "INFO 01-02 03:04:09 model_runner.py:732] Loading model weights took 4.3421 GB\n",
        {
            "vllm_version": "0.6.3",
            "quantization": "gguf",
            "weights_gib": 4.3421,
            "tensor_parallel_size": 1,
            "dtype": "torch.float16",
            "degradations": ["unoptimized-kernel"],
        },
    ),
    "triton mxfp4 backend no prefix": (
        "INFO 08-20 10:00:00 [cuda.py:318] Using Triton Attention backend on V1 engine.\n"
        "Using Triton backend\n",
        {"attention_backend": "Triton Attention"},
    ),
    "mxfp4 triton noprefix only": (
        "Using Triton backend\n",
        {},
    ),
    "spec draft": (
        config(
            "0.17.0",
            before="(EngineCore_DP0 pid=1) ",
            speculative_config="SpeculativeConfig(method='eagle3', model='org/eagle', num_spec_tokens=3)",
            quantization="fp8",
        )
        + "(EngineCore_DP0 pid=1) INFO 03-10 10:00:10 [__init__.py:218] Selected CutlassFP8ScaledMMLinearKernel for Fp8LinearMethod\n"
        "(EngineCore_DP0 pid=1) INFO 03-10 10:00:10 [gpu_model_runner.py:4500] Loading drafter model...\n"
        "(EngineCore_DP0 pid=1) INFO 03-10 10:00:12 [gpu_model_runner.py:4588] Model loading took 9.12 GiB memory and 4.1 seconds\n",
        {
            **QUANTIZED,
            "vllm_version": "0.17.0",
            "quantization": "fp8",
            "kernels": ["CutlassFP8ScaledMMLinearKernel"],
            "scheme": "w8a8-fp8",
            "kernel_family": ["cutlass"],
            "weights_gib": 9.12,
        },
    ),
    "v0 spec": (
        config(
            "0.6.6",
            "",
            speculative_config="SpeculativeConfig(draft_model='org/draft', num_spec_tokens=5)",
        )
        + "INFO 01-02 03:04:05 spec_decode_worker.py:158] Configuring SpecDecodeWorker with proposer=<class 'vllm.spec_decode.multi_step_worker.MultiStepWorker'>\n"
        "INFO 01-02 03:04:20 model_runner.py:1099] Loading model weights took 14.9595 GB\n"
        "INFO 01-02 03:04:25 model_runner.py:1099] Loading model weights took 0.2389 GB\n"
        "INFO 01-02 03:04:30 worker.py:241] model weights take 14.99GiB; non_torch_memory takes 0.09GiB; PyTorch activation peak memory takes 1.19GiB; the rest of the memory reserved for KV Cache is 54.94GiB.\n"
        "INFO 01-02 03:04:30 gpu_executor.py:76] # GPU blocks: 28128, # CPU blocks: 2048\n"
        "INFO 01-02 03:04:30 gpu_executor.py:80] Maximum concurrency for 8192 tokens per request: 54.94x\n",
        {
            **BF16,
            "vllm_version": "0.6.6",
            "weights_gib": 14.9595,
            "gpu_blocks": 28128,
            "max_concurrency": 54.94,
            "max_concurrency_tokens": 8192,
        },
    ),
    "crlf": (
        "INFO 01-02 03:04:05 [core.py:76] Initializing a V1 LLM engine (v0.8.5) with config: model='org/model', speculative_config=None, tokenizer='org/model', dtype=torch.bfloat16, max_seq_len=8192, load_format=auto, tensor_parallel_size=1, pipeline_parallel_size=1, quantization=None, enforce_eager=False, kv_cache_dtype=auto, device_config=cuda, seed=0, served_model_name=org/model, use_cached_outputs=True, \r\n"
        "INFO 04-29 22:59:27 [gpu_model_runner.py:1347] Model loading took 7.1217 GiB and 170.700889 seconds\r\n"
        "INFO 04-29 22:59:31 [kv_cache_utils.py:634] GPU KV cache size: 473,184 tokens\r\n",
        {**BF16, "vllm_version": "0.8.5", "weights_gib": 7.1217, "kv_cache_tokens": 473184},
    ),
    "TPU, smallest size": (
        "INFO 05-20 21:00:00 [tpu.py:58] Using Pallas V1 backend.\n"
        "INFO 05-20 21:00:40 [tpu_worker.py:215] GPU KV cache size: 100 tokens\n"
        "INFO 05-20 21:01:00 [kv_cache_utils.py:715] GPU KV cache size: 345,088 tokens\n",
        {"kv_cache_tokens": 100, "attention_backend": "Pallas V1"},
    ),
    "port soft": (
        "(APIServer pid=1) INFO 11-01 10:00:00 [api_server.py:1839] vLLM API server version 0.11.0\n"
        "OSError: [Errno 98] Address already in use\n",
        {"vllm_version": "0.11.0", "failure": "port-in-use"},
    ),
    "fail then success no new banner": (
        config("0.9.2")
        + "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
        + config("0.9.2", dtype="torch.float16")
        + "INFO 07-10 10:00:10 [gpu_model_runner.py:1770] Model loading took 14.2 GiB and 4.1 seconds\n"
        "INFO 07-10 10:00:31 [kv_cache_utils.py:716] GPU KV cache size: 10,000 tokens\n"
        "INFO:     Application startup complete.\n",
        {
            "vllm_version": "0.9.2",
            "scheme": "fp16",
            "weights_gib": 14.2,
            "kv_cache_tokens": 10000,
            "tensor_parallel_size": 1,
            "dtype": "torch.float16",
            "ready": True,
        },
    ),
    "success then failure": (
        "INFO 07-10 10:00:00 [api_server.py:1395] vLLM API server version 0.9.2\n"
        + config("0.9.2")
        + "INFO 07-10 10:00:10 [gpu_model_runner.py:1770] Model loading took 14.2 GiB and 4.1 seconds\n"
        "INFO 07-10 10:00:31 [kv_cache_utils.py:716] GPU KV cache size: 10,000 tokens\n"
        "INFO:     Application startup complete.\n"
        "INFO 07-10 10:10:00 [api_server.py:1395] vLLM API server version 0.9.2\n"
        + config("0.9.2")
        + "ERROR 07-10 10:10:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 07-10 10:10:12 [core.py:586] ValueError: Free memory on device (3.2/23.6 GiB) on startup is less than desired GPU memory utilization (0.9, 21.3 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n",
        {**BF16, "vllm_version": "0.9.2", "failure": "insufficient-free-gpu-memory"},
    ),
    "a start that said no more than its version": (
        "INFO 07-10 10:00:00 [api_server.py:1395] vLLM API server version 0.9.1\n"
        "INFO 07-10 10:00:00 [cli_args.py:325] non-default args: {'model': 'x', 'tensor_parallel_size': 8}\n"
        "Traceback (most recent call last):\n"
        "KeyError: 'x'\n"
        "INFO 07-10 10:05:00 [api_server.py:1395] vLLM API server version 0.9.2\n",
        {"vllm_version": "0.9.2"},
    ),
    "banner and version": (
        "(APIServer pid=1) INFO 03-20 10:00:00 [utils.py:299]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.18.0\n"
        "(APIServer pid=1) INFO 03-20 10:00:00 [utils.py:233] non-default args: {'model': 'x', 'tensor_parallel_size': 2}\n"
        "(APIServer pid=1) INFO 03-20 10:00:01 [api_server.py:1395] vLLM API server version 0.18.0\n",
        {"vllm_version": "0.18.0", "tensor_parallel_size": 2},
    ),
}


@pytest.mark.parametrize(("text", "facts"), CASES.values(), ids=CASES)
def test_the_text_says_this_and_nothing_else(text, facts):
    assert said(text) == facts
