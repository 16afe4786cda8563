"""Failures in the words of many versions, their decoys, and what the hints say."""

# ruff: noqa: E501 - log lines are quoted as they are

import pytest

from scripts.lib.engine.log_reader import read_log_text
from tests.engine.log_texts import BF16, QUANTIZED, config, said

CASES = {
    "uvicorn bind fails after startup complete": (
        "INFO 03-01 10:00:00 api_server.py:585] vLLM API server version 0.6.4\n"
        "INFO 03-01 10:00:25 gpu_executor.py:122] # GPU blocks: 20000, # CPU blocks: 4096\n"
        "INFO:     Started server process [1]\n"
        "INFO:     Waiting for application startup.\n"
        "INFO:     Application startup complete.\n"
        "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use\n"
        "INFO:     Waiting for application shutdown.\n"
        "INFO:     Application shutdown complete.\n",
        {"vllm_version": "0.6.4", "gpu_blocks": 20000, "failure": "port-in-use"},
    ),
    "cumem oom": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62\n"
        "ERROR 01-02 03:04:12 [core.py:586] RuntimeError: CUDA Error: out of memory at /workspace/csrc/cumem_allocator.cpp:62\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "oom"},
    ),
    "cpu alloc oom": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 134217728 bytes. Error code 12 (Cannot allocate memory)\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "oom"},
    ),
    "tpu oom": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] RuntimeError: Bad StatusOr access: RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 16.58G of 15.75G hbm. Exceeded hbm capacity by 848.88M.\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "oom"},
    ),
    "scaled_mm cap": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] RuntimeError: torch._scaled_mm is only supported on CUDA devices with compute capability >= 9.0 or 8.9, or ROCm MI300+\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "unsupported-compute-capability"},
    ),
    "fa2 only ampere": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] RuntimeError: FlashAttention only supports Ampere GPUs or newer.\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "unsupported-compute-capability"},
    ),
    "v1 on t4": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] NotImplementedError: VLLM_USE_V1=1 is not supported with Compute Capability < 8.0.\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "unsupported-compute-capability"},
    ),
    "cutlass no kernel": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] NotImplementedError: No compiled cutlass_scaled_mm for a compute capability less than CUDA device capability: 75\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "unsupported-compute-capability"},
    ),
    "cutlass no kernel sm120": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] NotImplementedError: No compiled cutlass_scaled_mm for CUDA device capability: 120\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "kernel-image-invalid"},
    ),
    "ptxas": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "kernel-image-invalid"},
    ),
    "nccl 2": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] RuntimeError: NCCL Error 2: unhandled system error (run with NCCL_DEBUG=INFO for details)\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "nccl"},
    ),
    "nccl watchdog": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] [rank1]:[E102 03:04:12.123 ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "nccl"},
    ),
    "rccl": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] torch.distributed.DistBackendError: NCCL error in: /app/pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:94, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.22.3\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "nccl"},
    ),
    "autofit none": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] ValueError: Cannot auto-fit max_model_len: not enough GPU memory available to serve even a single token. Try increasing `gpu_memory_utilization`.\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "no-memory-for-kv-cache"},
    ),
    "gated 403": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] huggingface_hub.errors.GatedRepoError: 403 Client Error. (Request ID: Root=1)\n"
        "ERROR 01-02 03:04:12 [core.py:586] Cannot access gated repo for url https://huggingface.co/m/resolve/main/config.json.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Your request to access model m is awaiting a review from the repo authors.\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "gated-repo"},
    ),
    "pydantic gated": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
        "ERROR 01-02 03:04:12 [core.py:586]   Value error, You are trying to access a gated repo.\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "gated-repo"},
    ),
    "module soft then exit info": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] ModuleNotFoundError: No module named 'pandas'\n"
        "ERROR 01-02 03:04:12 [core.py:586] (Worker_TP1 pid=9) INFO 01-02 03:04:13 [multiproc_executor.py:558] Parent process exited, terminating worker\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "missing-python-module"},
    ),
    "soft module, other process goes on, wrapper": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] ModuleNotFoundError: No module named 'triton_kernels'\n"
        "(APIServer pid=1) INFO 01-02 03:04:14 [x.py:1] something else\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "missing-python-module"},
    ),
    "caught module in good log": (
        config()
        + "WARNING 01-02 03:04:06 [import_utils.py:10] Traceback (most recent call last):\n"
        "ModuleNotFoundError: No module named 'vllm.vllm_flash_attn.fa3'\n"
        "INFO 01-02 03:04:09 [gpu_model_runner.py:2392] Model loading took 7.5 GiB and 1.17 seconds\n",
        {**BF16, "vllm_version": "0.10.2", "weights_gib": 7.5},
    ),
    "kv echo": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        'ERROR 01-02 03:04:12 [core.py:586]   File "x.py", line 1, in _check_enough_kv_cache_memory\n'
        "ERROR 01-02 03:04:12 [core.py:586]     raise ValueError(\n"
        "ERROR 01-02 03:04:12 [core.py:586] ValueError: To serve at least one request with the models's max seq len (131072), (16.0 GiB KV cache is needed, which is larger than the available KV cache memory (5.53 GiB). Based on the available memory,  the estimated maximum model length is 45264. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "kv-cache-too-small-for-max-model-len"},
    ),
    "kv no bracket": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] ValueError: To serve at least one request with the models's max seq len (32768), 4.50 GiB KV cache is needed, which is larger than the available KV cache memory (2.25 GiB). Try increasing `gpu_memory_utilization`\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "kv-cache-too-small-for-max-model-len"},
    ),
    "kv cache zero est": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] ValueError: To serve at least one request with the model's max seq len (32768), (4.5 GiB KV cache is needed, which is larger than the available KV cache memory (0.01 GiB). Based on the available memory, the estimated maximum model length is 0. Try\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "kv-cache-too-small-for-max-model-len"},
    ),
    "negative kv": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] INFO 01-02 03:04:11 [gpu_worker.py:276] Available KV cache memory: -1.25 GiB\n"
        "ERROR 01-02 03:04:12 [core.py:586] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine. See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details.\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "no-memory-for-kv-cache"},
    ),
    "chained: oom then nccl cleanup": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 270.00 MiB. GPU 0 has a total capacity of 23.52 GiB\n"
        "ERROR 01-02 03:04:12 [core.py:586] During handling of the above exception, another exception occurred:\n"
        "ERROR 01-02 03:04:12 [core.py:586] torch.distributed.DistBackendError: NCCL error in: x.cpp:1, remote process exited\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "oom"},
    ),
    "chained: root is capability later wrapper ValueError": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: 89. Current capability: 75.\n"
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
        {"failure": "unsupported-compute-capability"},
    ),
    "awq v0 cap bare": (
        "ValueError: The quantization method awq is not supported for the current GPU. Minimum capability: 75. Current capability: 70.\n",
        {"failure": "unsupported-compute-capability"},
    ),
    "good log with advice": (
        config("0.6.6", "")
        + "INFO 01-02 03:04:09 model_runner.py:1442] Capturing cudagraphs for decoding. This may lead to unexpected consequences if the model is not static. To run the model in eager mode, set 'enforce_eager=True' or use '--enforce-eager' in the CLI. If out-of-memory error occurs during cudagraph capture, consider decreasing `gpu_memory_utilization` or switching to eager mode. You can also reduce the `max_num_seqs` as needed to decrease memory usage.\n"
        "INFO 01-02 03:04:09 [pynccl.py:69] vLLM is using nccl==2.21.5\n",
        {**BF16, "vllm_version": "0.6.6"},
    ),
    "per request errors after ready": (
        config() + "INFO:     Application startup complete.\n"
        "ERROR 01-02 03:10:09 serving_chat.py:200] ValueError: This model's maximum context length is 8192 tokens. However, you requested 9000 tokens\n"
        'INFO:     127.0.0.1:1 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request\n'
        "ERROR 01-02 03:11:09 [serving.py:1] Traceback (most recent call last):\n"
        "ModuleNotFoundError: No module named 'soundfile'\n"
        'INFO:     127.0.0.1:1 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error\n',
        {**BF16, "vllm_version": "0.10.2", "ready": True},
    ),
    "oom in serving": (
        config() + "INFO:     Application startup complete.\n"
        "(EngineCore_DP0 pid=9) ERROR 01-02 03:10:09 [core.py:710] EngineCore encountered a fatal error.\n"
        "(EngineCore_DP0 pid=9) ERROR 01-02 03:10:09 [core.py:710] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.2 GiB is free.\n"
        "(APIServer pid=1) ERROR 01-02 03:10:09 [async_llm.py:480] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.\n",
        {**BF16, "vllm_version": "0.10.2", "ready": True, "failure": "oom"},
    ),
    "only engine init failed": (
        "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': 1}\n",
        {"failure": "engine-core-failed-to-start"},
    ),
    "echo: raise of other": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        'ERROR 01-02 03:04:12 [core.py:586]     raise RuntimeError("CUDA out of memory. Try something")\n'
        "ERROR 01-02 03:04:12 [core.py:586] KeyError: 'layers.0.mlp.gate_up_proj.weight'\n",
        {"failure": "engine-core-failed-to-start"},
    ),
    "stops": (
        config() + "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:0",
        {**BF16, "vllm_version": "0.10.2"},
    ),
    "oom wrapped 80": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 2 h\n"
        "as a total capacity of 14.62 GiB of which 3.31 MiB is free. Including non-PyTorc\n"
        "h memory, this process has 14.61 GiB memory in use.\n",
        {"failure": "oom"},
    ),
    "oom wrapped mid word": (
        "ERROR 03-02 19:49:43 [multiproc_worker_utils.py:242] torch.OutOfMemoryError: CUD\n"
        "A out of memory. Tried to allocate 20.00 MiB. GPU 2 has a total capacity of 14.6\n"
        "2 GiB of which 3.31 MiB is free.\n",
        {"failure": "oom"},
    ),
    "xpu oom": (
        "ERROR 01-02 03:04:12 [core.py:586] EngineCore failed to start.\n"
        "ERROR 01-02 03:04:12 [core.py:586] Traceback (most recent call last):\n"
        "ERROR 01-02 03:04:12 [core.py:586] torch.OutOfMemoryError: XPU out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 11.60 GiB.\n",
        {"failure": "oom"},
    ),
    "killed workers": (
        "(VllmWorkerProcess pid=2) INFO 01-02 03:04:09 model_runner.py:732] Loading model weights took 4.3421 GB\n"
        "ERROR 01-02 03:04:12 multiproc_worker_utils.py:120] Worker VllmWorkerProcess pid 2 died, exit code: -15\n",
        {"weights_gib": 4.3421},
    ),
    "old FP4 alarm with native kernel": (
        config("0.30.0", quantization="modelopt_mixed")
        + "(EngineCore pid=1) INFO 01-02 03:04:06 [__init__.py:1240] Using FlashInferCutlassNvFp4LinearKernel for NVFP4 GEMM\n"
        "(EngineCore pid=1) WARNING 01-02 03:04:06 [marlin.py:30] Your GPU does not have native support for FP4 computation but FP4 quantization is being used. Weight-only FP4 compression will be used leveraging the Marlin kernel. This may degrade performance for compute-heavy workloads.\n"
        "(EngineCore pid=1) INFO 01-02 03:04:06 [__init__.py:798] Selected CutlassFP8ScaledMMLinearKernel for ModelOptFp8LinearMethod\n",
        {
            **QUANTIZED,
            "vllm_version": "0.30.0",
            "quantization": "modelopt_mixed",
            "kernels": ["CutlassFP8ScaledMMLinearKernel", "FlashInferCutlassNvFp4LinearKernel"],
            "scheme": "mixed",
            "kernel_family": ["cutlass", "flashinfer", "marlin"],
            "degradations": ["fp4-weight-only"],
        },
    ),
}


@pytest.mark.parametrize(("text", "facts"), CASES.values(), ids=CASES)
def test_the_text_says_this_and_nothing_else(text, facts):
    assert said(text) == facts


HINTS = {
    "uvicorn bind fails after startup complete": "8000",
    "scaled_mm cap": "8.9",
    "fa2 only ampere": "8",
    "gated 403": "token",
    "module soft then exit info": "pandas",
    "soft module, other process goes on, wrapper": "triton_kernels",
    "kv echo": "45264",
    "kv no bracket": "16384",
    "chained: root is capability later wrapper ValueError": "L4",
    "awq v0 cap bare": "T4",
    "oom in serving": "served",
    "oom wrapped 80": "20.00 MiB",
    "oom wrapped mid word": "20.00 MiB",
    "xpu oom": "1.50 GiB",
}


@pytest.mark.parametrize(("name", "piece"), HINTS.items())
def test_the_hint_says_what_to_change(name, piece):
    assert piece in read_log_text(CASES[name][0]).failure.hint
