"""Attention backends, kernels and slower paths in the words of many versions."""

# ruff: noqa: E501 - log lines are quoted as they are

import pytest

from tests.engine.log_texts import BF16, QUANTIZED, config, said

CASES = {
    "fi v0": (
        "INFO 01-02 03:04:05 selector.py:120] Using FlashInfer backend.\n",
        {"attention_backend": "FlashInfer"},
    ),
    "fi v1 hnd": (
        "INFO 01-02 03:04:05 [cuda.py:262] Using FlashInfer backend with HND KV cache layout on V1 engine by default for Blackwell (SM 10.0) GPUs.\n",
        {"attention_backend": "FlashInfer"},
    ),
    "fi v1": (
        "INFO 01-02 03:04:05 [cuda.py:306] Using FlashInfer backend on V1 engine.\n",
        {"attention_backend": "FlashInfer"},
    ),
    "fmla": (
        "INFO 01-02 03:04:05 [cuda.py:201] Using FlashMLA backend on V1 engine.\n",
        {"attention_backend": "FlashMLA"},
    ),
    "tmla": (
        "INFO 01-02 03:04:05 [cuda.py:191] Using Triton MLA backend on V1 engine.\n",
        {"attention_backend": "Triton MLA"},
    ),
    "tmla v0": (
        "INFO 01-02 03:04:05 cuda.py:160] Using Triton MLA backend.\n",
        {"attention_backend": "Triton MLA"},
    ),
    "cutlass mla": (
        "INFO 01-02 03:04:05 [cuda.py:185] Using Cutlass MLA backend on V1 engine.\n",
        {"attention_backend": "Cutlass MLA"},
    ),
    "rocm flash": (
        "INFO 01-02 03:04:05 [rocm.py:130] Using ROCmFlashAttention backend.\n",
        {"attention_backend": "ROCmFlashAttention"},
    ),
    "rocm triton": (
        "INFO 01-02 03:04:05 [rocm.py:222] Using Triton Attention backend on V1 engine.\n",
        {"attention_backend": "Triton Attention"},
    ),
    "aiter mla": (
        "INFO 01-02 03:04:05 [rocm.py:200] Using AITER MLA backend on V1 engine.\n",
        {"attention_backend": "AITER MLA"},
    ),
    "aiter fa": (
        "INFO 01-02 03:04:05 [rocm.py:339] Using Aiter Flash Attention backend on V1 engine.\n",
        {"attention_backend": "Aiter Flash Attention"},
    ),
    "aiter unified": (
        "INFO 01-02 03:04:05 [rocm.py:300] Using Aiter Unified Attention backend.\n",
        {"attention_backend": "Aiter Unified Attention"},
    ),
    "rocm aiter enum": (
        "INFO 01-02 03:04:05 [rocm.py:850] Using ROCM_AITER_FA backend out of potential backends: ['ROCM_AITER_FA', 'TRITON_ATTN'].\n",
        {"attention_backend": "ROCM_AITER_FA"},
    ),
    "rocm sel": (
        "INFO 01-02 03:04:05 [rocm.py:750] Using ROCM_ATTN backend (selected via --attention-backend).\n",
        {"attention_backend": "ROCM_ATTN"},
    ),
    "sdpa": (
        "INFO 01-02 03:04:05 [cpu.py:69] Using Torch SDPA backend.\n",
        {"attention_backend": "Torch SDPA"},
    ),
    "ipex": (
        "INFO 01-02 03:04:05 [xpu.py:35] Using IPEX attention backend.\n",
        {"attention_backend": "IPEX"},
    ),
    "pallas": (
        "INFO 01-02 03:04:05 [tpu.py:48] Using Pallas backend.\n",
        {"attention_backend": "Pallas"},
    ),
    "hpu": (
        "INFO 01-27 11:07:59 [platform.py:65] Using HPUAttentionV1 backend.\n",
        {"attention_backend": "HPUAttentionV1"},
    ),
    "cuda enum": (
        "INFO 12-10 03:04:05 [cuda.py:411] Using FLASHINFER attention backend out of potential backends: ['FLASHINFER', 'TRITON_ATTN']\n",
        {"attention_backend": "FLASHINFER"},
    ),
    "cuda valid": (
        "INFO 12-10 03:04:05 [cuda.py:411] Using FLASH_ATTN attention backend out of potential backends: ('FLASH_ATTN', 'FLASHINFER')\n",
        {"attention_backend": "FLASH_ATTN"},
    ),
    "AttentionBackendEnum": (
        "INFO 12-10 03:04:05 [cuda.py:366] Using AttentionBackendEnum.FLASH_ATTN backend.\n",
        {"attention_backend": "FLASH_ATTN"},
    ),
    "vit first": (
        "INFO 12-10 03:04:05 [mm_encoder_attention.py:215] Using AttentionBackendEnum.FLASH_ATTN for MMEncoderAttention.\n"
        "INFO 12-10 03:04:05 [cuda.py:466] Using backend AttentionBackendEnum.FLASH_ATTN for vit attention\n"
        "INFO 12-10 03:04:05 [cuda.py:366] Using AttentionBackendEnum.TRITON_ATTN backend.\n",
        {"attention_backend": "TRITON_ATTN"},
    ),
    "flex": (
        "INFO 01-02 03:04:05 [cuda.py:280] Using FlexAttention backend on V1 engine.\n",
        {"attention_backend": "FlexAttention"},
    ),
    "mla prefill": (
        "INFO 01-02 03:04:05 [mla_attention.py:100] Using FlashAttention prefill for MLA\n"
        "INFO 01-02 03:04:05 [x.py:1] Using FlashInfer backend for MLA prefill.\n",
        {},
    ),
    "xformers 2": (
        "INFO 06-03 14:10:10 selector.py:51] Using XFormers backend.\n",
        {"attention_backend": "XFormers"},
    ),
    "t4 pair": (
        "INFO 06-03 14:10:10 selector.py:150] Cannot use FlashAttention-2 backend for Volta and Turing GPUs.\n"
        "INFO 06-03 14:10:10 selector.py:115] Using XFormers backend.\n",
        {"attention_backend": "XFormers", "degradations": ["attention-fallback"]},
    ),
    "fp8 kv xformers": (
        "INFO 06-03 14:10:10 config.py:380] Using fp8 data type to store kv cache. It reduces the GPU memory footprint and boosts the performance. Meanwhile, it may cause accuracy drop without a proper scaling factor\n"
        "INFO 06-03 14:10:10 selector.py:170] Cannot use FlashAttention-2 backend for FP8 KV cache.\n"
        "INFO 06-03 14:10:10 selector.py:115] Using XFormers backend.\n",
        {
            "kv_cache_dtype": "fp8",
            "attention_backend": "XFormers",
            "degradations": ["attention-fallback"],
        },
    ),
    "FA3 blackwell": (
        "WARNING 06-03 14:10:10 [fa_utils.py:110] Cannot use FA version 3 on Blackwell platform, defaulting to FA version 2.\n"
        "INFO 12-10 03:04:05 [cuda.py:411] Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN']\n",
        {"attention_backend": "FLASH_ATTN"},
    ),
    "FA2 unsupported": (
        "ERROR 06-03 14:10:10 [fa_utils.py:57] Cannot use FA version 2 is not supported due to FA2 is only supported on devices with compute capability >= 8\n"
        "INFO 12-10 03:04:05 [cuda.py:411] Using TRITON_ATTN attention backend out of potential backends: ['TRITON_ATTN']\n",
        {"attention_backend": "TRITON_ATTN", "degradations": ["attention-fallback"]},
    ),
    "fp8 native 0.10 on L40S": (
        config(quantization="compressed-tensors")
        + "INFO 01-02 03:04:09 [gpu_model_runner.py:2392] Model loading took 7.5 GiB and 1.17 seconds\n",
        {
            **QUANTIZED,
            "vllm_version": "0.10.2",
            "quantization": "compressed-tensors",
            "weights_gib": 7.5,
        },
    ),
    "awq vl": (
        config("0.21.0", dtype="torch.float16", quantization="awq_marlin")
        + "INFO 01-02 03:04:06 [awq_marlin.py:230] Using MarlinLinearKernel for AWQMarlinLinearMethod\n"
        "INFO 01-02 03:04:09 [gpu_model_runner.py:2392] Model loading took 7.5 GiB and 1.17 seconds\n",
        {
            "vllm_version": "0.21.0",
            "quantization": "awq_marlin",
            "kernels": ["MarlinLinearKernel"],
            "scheme": "w4a16",
            "kernel_family": ["marlin"],
            "weights_gib": 7.5,
            "tensor_parallel_size": 1,
            "dtype": "torch.float16",
        },
    ),
    "exllama on T4 old": (
        config("0.8.4", dtype="torch.float16", quantization="gptq_marlin")
        + "INFO 01-02 03:04:06 [gptq_marlin.py:238] Using ExllamaLinearKernel for GPTQMarlinLinearMethod\n"
        "INFO 01-02 03:04:09 [gpu_model_runner.py:2392] Model loading took 7.5 GiB and 1.17 seconds\n",
        {
            "vllm_version": "0.8.4",
            "quantization": "gptq_marlin",
            "kernels": ["ExllamaLinearKernel"],
            "scheme": "w4a16",
            "kernel_family": ["exllama"],
            "weights_gib": 7.5,
            "tensor_parallel_size": 1,
            "dtype": "torch.float16",
        },
    ),
    "int8 triton": (
        config("0.13.0", quantization="compressed-tensors")
        + "INFO 01-02 03:04:06 [compressed_tensors_w8a8_int8.py:60] Using CutlassScaledMMLinearKernel for CompressedTensorsW8A8Int8\n"
        "INFO 01-02 03:04:09 [gpu_model_runner.py:2392] Model loading took 7.5 GiB and 1.17 seconds\n",
        {
            **QUANTIZED,
            "vllm_version": "0.13.0",
            "quantization": "compressed-tensors",
            "kernels": ["CutlassScaledMMLinearKernel"],
            "scheme": "w8a8-int8",
            "kernel_family": ["cutlass"],
            "weights_gib": 7.5,
        },
    ),
    "triton scaledmm rocm": (
        "INFO 01-02 03:04:06 [compressed_tensors_w8a8_int8.py:60] Using TritonScaledMMLinearKernel for CompressedTensorsW8A8Int8\n",
        {
            "kernels": ["TritonScaledMMLinearKernel"],
            "scheme": "w8a8-int8",
            "kernel_family": ["triton"],
        },
    ),
    "aiter scaledmm": (
        "INFO 01-02 03:04:06 [compressed_tensors_w8a8_int8.py:60] Using AiterScaledMMLinearKernel for CompressedTensorsW8A8Int8\n",
        {
            "kernels": ["AiterScaledMMLinearKernel"],
            "scheme": "w8a8-int8",
            "kernel_family": ["aiter"],
        },
    ),
    "rocm fp8": (
        "INFO 01-02 03:04:06 [__init__.py:218] Selected ROCmFP8ScaledMMLinearKernel for CompressedTensorsW8A8Fp8\n",
        {
            "kernels": ["ROCmFP8ScaledMMLinearKernel"],
            "scheme": "w8a8-fp8",
            "kernel_family": ["rocm"],
        },
    ),
    "rowwise": (
        "INFO 01-02 03:04:06 [__init__.py:218] Selected RowWiseTorchFP8ScaledMMLinearKernel for QuarkW8A8Fp8\n",
        {
            "kernels": ["RowWiseTorchFP8ScaledMMLinearKernel"],
            "scheme": "w8a8-fp8",
            "kernel_family": ["torch"],
        },
    ),
    "triton block": (
        "INFO 01-02 03:04:06 [__init__.py:218] Selected TritonFp8BlockScaledMMKernel for Fp8LinearMethod\n",
        {
            "kernels": ["TritonFp8BlockScaledMMKernel"],
            "scheme": "w8a8-fp8",
            "kernel_family": ["triton"],
        },
    ),
    "xpu w8a16": (
        "INFO 01-02 03:04:06 [__init__.py:218] Selected XPUW8A16FP8LinearKernel for Fp8LinearMethod\n",
        {
            "kernels": ["XPUW8A16FP8LinearKernel"],
            "scheme": "w8a16-fp8",
            "kernel_family": ["xpu"],
            "degradations": ["fp8-weight-only"],
        },
    ),
    "dg moe+dense": (
        "INFO 01-02 03:04:06 [__init__.py:218] Selected DeepGemmFp8BlockScaledMMKernel for Fp8LinearMethod\n"
        "INFO 01-02 03:04:06 [fp8.py:208] Using DEEPGEMM Fp8 MoE backend out of potential backends: ['AITER', 'MARLIN']\n",
        {
            "kernels": ["DeepGemmFp8BlockScaledMMKernel"],
            "scheme": "w8a8-fp8",
            "kernel_family": ["deepgemm"],
        },
    ),
    "rdna2": (
        "INFO 01-02 03:04:06 [auto_gptq.py:352] Using RDNA2W4A16LinearKernel for AutoGPTQLinearMethod\n",
        {"kernels": ["RDNA2W4A16LinearKernel"], "scheme": "w4a16", "kernel_family": ["rocm"]},
    ),
    "triton w4a16": (
        "INFO 01-02 03:04:06 [auto_gptq.py:352] Using TritonW4A16LinearKernel for CompressedTensorsWNA16\n",
        {"kernels": ["TritonW4A16LinearKernel"], "scheme": "w4a16", "kernel_family": ["triton"]},
    ),
    "moe only old fp8 marlin": (
        "INFO 01-02 03:04:06 [fp8.py:120] Using Marlin backend for FP8 MoE\n"
        "WARNING 01-02 03:04:07 [marlin_utils_fp8.py:103] Your GPU does not have native support for FP8 computation but FP8 quantization is being used. Weight-only FP8 compression will be used leveraging the Marlin kernel.\n",
        {"scheme": "w8a16-fp8", "kernel_family": ["marlin"], "degradations": ["fp8-weight-only"]},
    ),
    "cutlass grouped": (
        "INFO 01-02 03:04:06 [compressed_tensors_moe.py:80] Using CompressedTensorsW8A8Fp8MoEMethod\n",
        {},
    ),
    "wna16 moe only": (
        config("0.9.2", quantization="compressed-tensors")
        + "INFO 01-02 03:04:06 [compressed_tensors_moe.py:80] Using CompressedTensorsWNA16MarlinMoEMethod\n",
        {**QUANTIZED, "vllm_version": "0.9.2", "quantization": "compressed-tensors"},
    ),
    "gptq forced": (
        "INFO 08-09 14:08:03 gptq_marlin.py:102] Detected that the model can run with gptq_marlin, however you specified quantization=gptq explicitly, so forcing gptq. Use quantization=gptq_marlin for faster inference\n"
        "WARNING 08-09 14:08:03 config.py:254] gptq quantization is not fully optimized yet. The speed can be slower than non-quantized models.\n"
        "INFO 01-02 03:04:05 [core.py:76] Initializing a LLM engine (v0.5.4) with config: model='org/model', speculative_config=None, tokenizer='org/model', dtype=torch.float16, max_seq_len=8192, load_format=auto, tensor_parallel_size=1, pipeline_parallel_size=1, quantization=gptq, enforce_eager=False, kv_cache_dtype=auto, device_config=cuda, seed=0, served_model_name=org/model, use_cached_outputs=True, ",
        {
            "vllm_version": "0.5.4",
            "quantization": "gptq",
            "scheme": "w4a16",
            "kernel_family": ["exllama"],
            "tensor_parallel_size": 1,
            "dtype": "torch.float16",
            "degradations": ["forced-unoptimized-method", "unoptimized-kernel"],
        },
    ),
    "gptq 8bit name forced": (
        "INFO 01-02 03:04:05 [core.py:76] Initializing a LLM engine (v0.5.4) with config: model='org/Qwen2-7B-Instruct-GPTQ-Int8', speculative_config=None, tokenizer='org/model', dtype=torch.float16, max_seq_len=8192, load_format=auto, tensor_parallel_size=1, pipeline_parallel_size=1, quantization=gptq, enforce_eager=False, kv_cache_dtype=auto, device_config=cuda, seed=0, served_model_name=org/model, use_cached_outputs=True, ",
        {
            "vllm_version": "0.5.4",
            "quantization": "gptq",
            "scheme": "w8a16-int8",
            "kernel_family": ["exllama"],
            "tensor_parallel_size": 1,
            "dtype": "torch.float16",
            "degradations": ["unoptimized-kernel"],
        },
    ),
    "aqlm": (
        "WARNING 08-09 14:08:03 config.py:254] aqlm quantization is not fully optimized yet. The speed can be slower than non-quantized models.\n"
        "INFO 01-02 03:04:05 [core.py:76] Initializing a LLM engine (v0.5.4) with config: model='org/model', speculative_config=None, tokenizer='org/model', dtype=torch.bfloat16, max_seq_len=8192, load_format=auto, tensor_parallel_size=1, pipeline_parallel_size=1, quantization=aqlm, enforce_eager=False, kv_cache_dtype=auto, device_config=cuda, seed=0, served_model_name=org/model, use_cached_outputs=True, ",
        {
            **QUANTIZED,
            "vllm_version": "0.5.4",
            "quantization": "aqlm",
            "scheme": "w2a16",
            "kernel_family": ["aqlm"],
            "degradations": ["unoptimized-kernel"],
        },
    ),
    "cli quant none": (
        "INFO 04-19 api_server.py:149] vLLM API server version 0.4.0.post1\n"
        "INFO 04-19 00:00:00 api_server.py:150] args: Namespace(host=None, port=8000, quantization=None, dtype='auto', tensor_parallel_size=1, kv_cache_dtype='auto', enforce_eager=False)\n",
        {"vllm_version": "0.4.0.post1", "tensor_parallel_size": 1},
    ),
    "cli nondefault": (
        "(APIServer pid=1) INFO 11-01 10:00:00 [utils.py:233] non-default args: {'model_tag': 'x', 'model': 'x', 'quantization': 'fp8', 'tensor_parallel_size': 4, 'kv_cache_dtype': 'fp8'}\n",
        {"tensor_parallel_size": 4},
    ),
    "qconfig None": (
        "INFO 01-02 03:04:05 [core.py:76] Initializing a V1 LLM engine (v0.25.0) with config: model='org/model', speculative_config=None, tokenizer='org/model', dtype=torch.bfloat16, max_seq_len=8192, load_format=auto, tensor_parallel_size=1, pipeline_parallel_size=1, quantization=fp8, quantization_config=None, enforce_eager=False, kv_cache_dtype=auto, device_config=cuda, seed=0, served_model_name=org/model, use_cached_outputs=True, ",
        {**QUANTIZED, "vllm_version": "0.25.0", "quantization": "fp8"},
    ),
    "qconfig dict before": (
        "INFO 01-02 03:04:05 [core.py:76] Initializing a V1 LLM engine (v0.25.0) with config: model='org/model', speculative_config=None, tokenizer='org/model', dtype=torch.bfloat16, max_seq_len=8192, load_format=auto, tensor_parallel_size=1, pipeline_parallel_size=1, quantization_config={'quantization': 'fp8'}, quantization=None, enforce_eager=False, kv_cache_dtype=auto, device_config=cuda, seed=0, served_model_name=org/model, use_cached_outputs=True, ",
        {**BF16, "vllm_version": "0.25.0"},
    ),
    "override blocks": (
        "(EngineCore pid=1) INFO 04-10 10:00:00 [kv_cache_utils.py:1] Overriding num_gpu_blocks=0 with num_gpu_blocks_override=512\n"
        "(EngineCore pid=1) INFO 04-10 10:00:00 [gpu_worker.py:456] Available KV cache memory: 7.0 GiB\n",
        {},
    ),
    "per-token fp8 kv config": (
        "INFO 01-02 03:04:05 [core.py:76] Initializing a V1 LLM engine (v0.12.0) with config: model='org/model', speculative_config=None, tokenizer='org/model', dtype=torch.bfloat16, max_seq_len=8192, load_format=auto, tensor_parallel_size=1, pipeline_parallel_size=1, quantization=None, enforce_eager=False, kv_cache_dtype=fp8_e4m3, device_config=cuda, seed=0, served_model_name=org/model, use_cached_outputs=True, ",
        {**BF16, "vllm_version": "0.12.0", "kv_cache_dtype": "fp8_e4m3"},
    ),
    "8bit bnb": (
        config(
            "0.9.0",
            model="'unsloth/Llama-3-8b-bnb-4bit'",
            load_format="bitsandbytes",
            quantization="bitsandbytes",
        )
        + "WARNING 01-02 03:04:05 [config.py:888] bitsandbytes quantization is not fully optimized yet. The speed can be slower than non-quantized models.\n",
        {
            **QUANTIZED,
            "vllm_version": "0.9.0",
            "quantization": "bitsandbytes",
            "scheme": "w4a16",
            "kernel_family": ["bitsandbytes"],
            "degradations": ["unoptimized-kernel"],
        },
    ),
    "torchao": (
        "INFO 01-02 03:04:05 [core.py:76] Initializing a V1 LLM engine (v0.9.0) with config: model='org/model', speculative_config=None, tokenizer='org/model', dtype=torch.bfloat16, max_seq_len=8192, load_format=auto, tensor_parallel_size=1, pipeline_parallel_size=1, quantization=torchao, enforce_eager=False, kv_cache_dtype=auto, device_config=cuda, seed=0, served_model_name=org/model, use_cached_outputs=True, ",
        {**QUANTIZED, "vllm_version": "0.9.0", "quantization": "torchao"},
    ),
    "moe default": (
        config("0.9.0")
        + "WARNING 01-02 03:04:05 [fused_moe.py:668] Using default MoE config. Performance might be sub-optimal! Config file not found at /x/E=60,N=1408.json\n",
        {**BF16, "vllm_version": "0.9.0", "degradations": ["untuned-moe"]},
    ),
    "cast only": (
        config("0.6.0", "", dtype="torch.float16")
        + "WARNING 09-10 12:00:00 config.py:1656] Casting torch.bfloat16 to torch.float16.\n",
        {
            "vllm_version": "0.6.0",
            "scheme": "fp16",
            "tensor_parallel_size": 1,
            "dtype": "torch.float16",
        },
    ),
    "sleep, lora": (
        config("0.9.0", before="(EngineCore_DP0 pid=3) ")
        + "INFO 07-10 10:00:31 [gpu_worker.py:98] Sleep mode freed 17.59 GiB memory, 0.98 GiB memory is still in use.\n"
        "INFO 07-10 10:00:31 [punica_selector.py:19] Using PunicaWrapperGPU.\n",
        {**BF16, "vllm_version": "0.9.0"},
    ),
}


@pytest.mark.parametrize(("text", "facts"), CASES.values(), ids=CASES)
def test_the_text_says_this_and_nothing_else(text, facts):
    assert said(text) == facts
