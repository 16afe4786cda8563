"""Environment reports, prose, requests' own text, and deaths."""

# ruff: noqa: E501 - log lines are quoted as they are

import pytest

from scripts.lib.engine.log_reader import read_log_text
from tests.engine.log_texts import BF16, QUANTIZED, config, said

CASES = {
    "environment report only": (
        "Collecting environment information...\n"
        "PyTorch version: 2.5.1+cu124\n"
        "Is debug build: False\n"
        "GPU models and configuration: GPU 0: NVIDIA A100-SXM4-80GB\n"
        "[pip3] nvidia-nccl-cu12==2.21.5\n"
        "[pip3] transformers==4.49.0\n"
        "ROCM Version: Could not collect\n"
        "Neuron SDK Version: N/A\n"
        "vLLM Version: 0.7.3\n"
        "vLLM Build Flags:\n"
        "CUDA Archs: Not Set; ROCm: Disabled; Neuron: Disabled\n"
        "LD_LIBRARY_PATH=/usr/local/cuda/lib64\n"
        "NCCL_CUMEM_ENABLE=0\n",
        {"vllm_version": "0.7.3"},
    ),
    "environment report, then the engine says another build": (
        "Collecting environment information...\n"
        "PyTorch version: 2.5.1+cu124\n"
        "Is debug build: False\n"
        "GPU models and configuration: GPU 0: NVIDIA A100-SXM4-80GB\n"
        "[pip3] nvidia-nccl-cu12==2.21.5\n"
        "[pip3] transformers==4.49.0\n"
        "ROCM Version: Could not collect\n"
        "Neuron SDK Version: N/A\n"
        "vLLM Version: 0.7.3\n"
        "vLLM Build Flags:\n"
        "CUDA Archs: Not Set; ROCm: Disabled; Neuron: Disabled\n"
        "LD_LIBRARY_PATH=/usr/local/cuda/lib64\n"
        "NCCL_CUMEM_ENABLE=0\n"
        "INFO 01-02 03:04:05 [core.py:76] Initializing a LLM engine (v0.7.3.dev1+g1) with config: model='org/model', speculative_config=None, tokenizer='org/model', dtype=torch.bfloat16, max_seq_len=8192, load_format=auto, tensor_parallel_size=1, pipeline_parallel_size=1, quantization=None, enforce_eager=False, kv_cache_dtype=auto, device_config=cuda, seed=0, served_model_name=org/model, use_cached_outputs=True, ",
        {**BF16, "vllm_version": "0.7.3.dev1+g1"},
    ),
    "new environment report": (
        "==============================\n"
        "         vLLM Info\n"
        "==============================\n"
        "ROCM Version                 : Could not collect\n"
        "vLLM Version                 : 0.10.2+9dd9ca32.nv25.10\n"
        "vLLM Build Flags:\n",
        {"vllm_version": "0.10.2+9dd9ca32.nv25.10"},
    ),
    "a report of what is not installed": (
        "WARNING 02-01 10:00:00 _custom_ops.py:19] Failed to import from vllm._C with ModuleNotFoundError(\"No module named 'vllm._C'\")\n"
        "INFO 02-01 10:00:02 api_server.py:651] vLLM API server version 0.6.6\n",
        {"vllm_version": "0.6.6"},
    ),
    "NCCL on two ranks of one GPU": (
        "host:2292596:2292596 [0] init.cc:943 NCCL WARN Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 53000\n"
        '(EngineCore_0 pid=2292596)     raise RuntimeError(f"NCCL error: {error_str}")\n'
        "(EngineCore_0 pid=2292596) RuntimeError: NCCL error: invalid usage (run with NCCL_DEBUG=WARN for details)\n",
        {"failure": "nccl"},
    ),
    "source only, then cut": (
        "(EngineCore_0 pid=2292596) Traceback (most recent call last):\n"
        '(EngineCore_0 pid=2292596)     raise RuntimeError(f"NCCL error: {error_str}")\n',
        {"failure": "nccl"},
    ),
    "gate of 0.4.1": (
        "(RayWorkerWrapper pid=2202490) ERROR 04-24 16:06:40 worker_base.py:157] ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: 90. Current capability: 86.\n",
        {"failure": "unsupported-compute-capability"},
    ),
    "tuple of a RuntimeError": (
        "(EngineCore_DP0 pid=1014) RuntimeError: ('Quantization scheme is not supported for ', 'the current GPU. Min capability: 80. ', 'Current capability: 75.')\n",
        {"failure": "unsupported-compute-capability"},
    ),
    "tiles": (
        "(EngineCore_DP0 pid=1238) ERROR 07-28 14:39:40 [core.py:866] RuntimeError: size_n = 6448 is not divisible by tile_n_size = 64\n",
        {"failure": "unsupported-shape"},
    ),
    "Mac": (
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_0': 1}\n",
        {"failure": "engine-core-failed-to-start"},
    ),
    "OOM of old torch on ROCm": (
        "torch.cuda.OutOfMemoryError: HIP out of memory. Tried to allocate 4.70 GiB. GPU 0 has a total capacty of 63.98 GiB\n"
        "of which 3.06 GiB is free.\n",
        {"failure": "oom"},
    ),
    "quoted in prose": (
        "I run `vllm serve` on a 3060 and always get:\n"
        "\n"
        "### Error 1: Insufficient Memory for Cache Blocks\n"
        "```\n"
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
        "```\n",
        {"failure": "no-memory-for-kv-cache"},
    ),
    "RPC process died": (
        "INFO 08-19 21:33:11 api_server.py:339] vLLM API server version 0.5.4\n"
        "ERROR 08-19 21:33:20 api_server.py:171] RPCServer process died before responding to readiness probe\n",
        {"vllm_version": "0.5.4", "failure": "engine-core-failed-to-start"},
    ),
    "Engine process failed": (
        "INFO 01-19 21:33:11 api_server.py:712] vLLM API server version 0.6.6\n"
        "RuntimeError: Engine process failed to start. See stack trace for the root cause.\n",
        {"vllm_version": "0.6.6", "failure": "engine-core-failed-to-start"},
    ),
    "ray cannot place": (
        "ValueError: The number of required GPUs exceeds the total number of available GPUs in the placement group.\n",
        {},
    ),
    "dies after ready, V0": (
        "INFO:     Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)\n"
        "ERROR 08-19 21:33:20 async_llm_engine.py:61] Engine background task failed\n"
        "vllm.engine.async_llm_engine.AsyncEngineDeadError: Task finished unexpectedly. This should never happen!\n",
        {"ready": True, "failure": "engine-dead-after-start"},
    ),
    "stopped by hand": (
        config() + "INFO:     Application startup complete.\n"
        "INFO 01-02 03:09:05 [launcher.py:80] Shutting down FastAPI HTTP server.\n"
        "(EngineCore_DP0 pid=9) ERROR 01-02 03:09:06 [core.py:700] EngineCore encountered a fatal error.\n",
        {**BF16, "vllm_version": "0.10.2", "ready": True},
    ),
    "watchdog in serving": (
        config() + "INFO:     Application startup complete.\n"
        "[rank1]:[E102 03:04:12.123 ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)\n"
        "(EngineCore_DP0 pid=9) ERROR 01-02 03:09:06 [core.py:700] EngineCore encountered a fatal error.\n",
        {**BF16, "vllm_version": "0.10.2", "ready": True, "failure": "engine-dead-after-start"},
    ),
    "user's text": (
        config() + "INFO:     Application startup complete.\n"
        "INFO 01-02 03:09:05 [logger.py:40] Received request chatcmpl-1: prompt: 'why does it say CUDA out of memory. Tried to allocate 2.00 GiB and EngineDeadError', params: SamplingParams(n=1)\n",
        {**BF16, "vllm_version": "0.10.2", "ready": True},
    ),
    "user's text before ready": (
        "INFO 01-02 03:09:05 async_llm_engine.py:1] Received request cmpl-1: prompt: 'vLLM API server version 0.1.2 GPU KV cache size: 5 tokens', params: x\n",
        {},
    ),
    "configuration left out": (
        "INFO 06-30 09:36:14 [llm_engine.py:230] Initializing a V0 LLM engine (v0.9.1) with config: ...\n",
        {"vllm_version": "0.9.1"},
    ),
    "configuration without its words": (
        "Initializing a V0 LLM engine (v0.8.4) model='/fixed/model', dtype=torch.float16, tensor_parallel_size=1, quantization=None, seed=0\n"
        "Using XFormers backend.",
        {
            "vllm_version": "0.8.4",
            "scheme": "fp16",
            "tensor_parallel_size": 1,
            "dtype": "torch.float16",
            "attention_backend": "XFormers",
        },
    ),
    "profile only, two ranks": (
        "INFO 04-20 17:00:56 [worker.py:267] model weights take 27.63GiB; non_torch_memory takes 0.93GiB; PyTorch activation peak memory takes 1.27GiB; the rest of the memory reserved for KV Cache is 5.71GiB.\n"
        "(RayWorkerWrapper pid=627, ip=10.244.1.107) INFO 04-20 17:00:56 [worker.py:267] model weights take 28.48GiB; non_torch_memory takes 2.15GiB; PyTorch activation peak memory takes 1.35GiB; the rest of the memory reserved for KV Cache is 3.58GiB.\n"
        "INFO 04-20 17:00:56 [executor_base.py:112] # cuda blocks: 5302, # CPU blocks: 7767\n",
        {"weights_gib": 28.48, "gpu_blocks": 5302},
    ),
    "no blocks": (
        "INFO 07-01 10:00:00 gpu_executor.py:102] # GPU blocks: 0, # CPU blocks: 1024\n"
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n",
        {"failure": "no-memory-for-kv-cache"},
    ),
    "one line wrapped inside a value": (
        "INFO 01-02 03:04:05 [core.py:76] Initializing a V1 LLM engine (v0.10.2) with config: model='x', dtype=torch.bfloat16, tensor_parallel_size=1, quantization=compressed-\n"
        "tensors, enforce_eager=False, kv_cache_dtype=auto, device_config=cuda\n",
        {**QUANTIZED, "vllm_version": "0.10.2", "quantization": "compressed-tensors"},
    ),
    "sizes of the profile without blanks": (
        "INFO 11-21 07:10:00 worker.py:232] Memory profiling results: total_gpu_memory=23.58GiB initial_memory_usage=15.34GiB peak_torch_memory=17.98GiB memory_usage_post_profile=15.35GiB non_torch_memory=0.35GiB kv_cache_size=2.89GiB gpu_memory_utilization=0.90\n",
        {},
    ),
    "configuration shortened inside a value": (
        'INFO 08-01 10:00:00 llm_engine.py:174] Initializing an LLM engine (v0.5.4) with config: model="x", dtype=torch.float16, quantization="aw\n'
        "[... truncated for brevity ...]\n"
        "\n"
        "---\n"
        "\n"
        "I set it to (a, b).\n",
        {"vllm_version": "0.5.4", "dtype": "torch.float16"},
    ),
    "another program is ready first": (
        "INFO 09-04 12:08:24 [api_server.py:1287] vLLM API server version 0.9.1\n"
        "INFO:     Started server process [77]\n"
        "INFO:     Application startup complete.\n"
        + config("0.9.1")
        + "INFO 09-04 12:09:39 [gpu_model_runner.py:1624] Model loading took 5.7174 GiB and 64.542518 seconds\n"
        "INFO 09-04 12:11:41 [kv_cache_utils.py:715] GPU KV cache size: 106,032 tokens\n",
        {**BF16, "vllm_version": "0.9.1", "weights_gib": 5.7174, "kv_cache_tokens": 106032},
    ),
    "another program is ready first, then the engine": (
        "INFO:     Application startup complete.\n"
        "INFO 09-04 12:08:24 [api_server.py:1287] vLLM API server version 0.9.1\n"
        + config("0.9.1")
        + "INFO 09-04 12:09:39 [gpu_model_runner.py:1624] Model loading took 5.7174 GiB and 64.542518 seconds\n"
        "INFO:     Application startup complete.\n",
        {**BF16, "vllm_version": "0.9.1", "weights_gib": 5.7174, "ready": True},
    ),
    "another program is ready, the engine fails": (
        config("0.9.1") + "INFO:     Application startup complete.\n"
        "INFO 09-04 12:09:39 [gpu_model_runner.py:1624] Model loading took 5.7174 GiB and 64.542518 seconds\n"
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n",
        {
            **BF16,
            "vllm_version": "0.9.1",
            "weights_gib": 5.7174,
            "failure": "no-memory-for-kv-cache",
        },
    ),
    "ready without the steps before, then a stop": (
        config("0.9.1") + "INFO:     Application startup complete.\n"
        "INFO:     Shutting down\n"
        "ERROR 09-04 12:09:39 [core.py:1] EngineCore encountered a fatal error.\n",
        {**BF16, "vllm_version": "0.9.1", "ready": True},
    ),
    "forced awq without configuration": (
        "INFO 01-01 21:15:12 [awq_marlin.py:166] Detected that the model can run with awq_marlin, however you specified quantization=awq explicitly, so forcing awq. Use quantization=awq_marlin for faster inference\n",
        {
            "scheme": "w4a16",
            "kernel_family": ["awq"],
            "degradations": ["forced-unoptimized-method"],
        },
    ),
}


@pytest.mark.parametrize(("text", "facts"), CASES.values(), ids=CASES)
def test_the_text_says_this_and_nothing_else(text, facts):
    assert said(text) == facts


HINTS = {
    "NCCL on two ranks of one GPU": "GPU of its own",
    "gate of 0.4.1": "H100",
    "tuple of a RuntimeError": "A100",
    "OOM of old torch on ROCm": "4.70 GiB",
}


@pytest.mark.parametrize(("name", "piece"), HINTS.items())
def test_the_hint_says_what_to_change(name, piece):
    assert piece in read_log_text(CASES[name][0]).failure.hint
