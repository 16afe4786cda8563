"""Experts, dense layers and what is left unquantized, in the words of 2025 and 2026."""

# ruff: noqa: E501 - log lines are quoted as they are

import pytest

from tests.engine.log_texts import QUANTIZED, config, said

CASES = {
    "experts in four bits beside FP8 layers": (
        config("0.21.1", quantization="compressed-tensors")
        + "INFO 01-02 03:04:06 [__init__.py:524] Selected FlashInferFp8DeepGEMMDynamicBlockScaledKernel for CompressedTensorsW8A8Fp8\n"
        "INFO 01-02 03:04:06 [compressed_tensors_moe_wna16_marlin.py:88] Using Marlin backend for WNA16 MoE (group_size=128, num_bits=4)\n",
        {
            **QUANTIZED,
            "vllm_version": "0.21.1",
            "quantization": "compressed-tensors",
            "kernels": ["FlashInferFp8DeepGEMMDynamicBlockScaledKernel"],
            "scheme": "mixed",
            "kernel_family": ["deepgemm", "flashinfer", "marlin"],
        },
    ),
    "experts in eight bits": (
        "INFO 01-02 03:04:06 [compressed_tensors_moe_wna16_marlin.py:88] Using Marlin backend for WNA16 MoE (group_size=-1, num_bits=8)\n",
        {"scheme": "w8a16-int8", "kernel_family": ["marlin"]},
    ),
    "Triton attention of 0.10.1": (
        "INFO 01-02 03:04:06 [cuda.py:323] Using Triton backend on V1 engine.\n",
        {"attention_backend": "Triton"},
    ),
    "Triton experts of 0.10.1": (
        "INFO 01-02 03:04:06 [mxfp4.py:93] Using Triton backend\n",
        {"scheme": "w4a16-mxfp4", "kernel_family": ["triton"]},
    ),
    "experts on XPU": (
        "INFO 01-02 03:04:06 [mxfp4.py:120] Using ipex marlin backend on XPU\n",
        {"scheme": "w4a16-mxfp4", "kernel_family": ["marlin"]},
    ),
    "NVFP4 experts, 0.13": (
        "INFO 01-02 03:04:06 [x.py:1] Using FLASHINFER_CUTLASS backend for NvFp4 MoE\n",
        {"scheme": "w4a4-nvfp4", "kernel_family": ["cutlass", "flashinfer"]},
    ),
    "NVFP4 experts by Marlin": (
        "INFO 01-02 03:04:06 [modelopt.py:1100] Using Marlin for ModelOptNvFp4FusedMoE.\n",
        {"scheme": "w4a16-nvfp4", "kernel_family": ["marlin"]},
    ),
    "NVFP4 experts by FlashInfer": (
        "INFO 01-02 03:04:06 [modelopt.py:1100] Using FlashInfer CUTLASS kernels for ModelOptNvFp4FusedMoE.\n",
        {"scheme": "w4a4-nvfp4", "kernel_family": ["cutlass", "flashinfer"]},
    ),
    "NVFP4 experts of compressed-tensors": (
        "INFO 01-02 03:04:06 [compressed_tensors_moe.py:100] Using Cutlass for CompressedTensorsW4A4Nvfp4MoEMethod.\n",
        {"scheme": "w4a4-nvfp4", "kernel_family": ["cutlass"]},
    ),
    "FP8 experts by FlashInfer": (
        "INFO 01-02 03:04:06 [fp8.py:100] Using FlashInfer FP8 MoE CUTLASS backend for SM90/SM100\n",
        {"scheme": "w8a8-fp8", "kernel_family": ["flashinfer"]},
    ),
    "FP8 experts by FlashInfer, 0.10": (
        "INFO 01-02 03:04:06 [fp8.py:485] Using FlashInfer MoE FP8 kernels for Fp8MoEMethod.\n",
        {"scheme": "w8a8-fp8", "kernel_family": ["flashinfer"]},
    ),
    "INT8 experts": (
        "INFO 01-02 03:04:06 [int8.py:485] Using Triton INT8 MoE backend\n",
        {"scheme": "w8a8-int8", "kernel_family": ["triton"]},
    ),
    "dense FP4, 0.11": (
        "INFO 01-02 03:04:06 [compressed_tensors_w4a4_nvfp4.py:33] Using flashinfer-cutlass for FP4\n",
        {"scheme": "w4a4-nvfp4", "kernel_family": ["cutlass", "flashinfer"]},
    ),
    "dense NVFP4, 0.13": (
        "INFO 01-02 03:04:06 [nvfp4_utils.py:80] Using flashinfer-cutlass for NVFP4 GEMM\n",
        {"scheme": "w4a4-nvfp4", "kernel_family": ["cutlass", "flashinfer"]},
    ),
    "dense NVFP4 marlin, 0.13": (
        "INFO 01-02 03:04:06 [nvfp4_utils.py:80] Using marlin for NVFP4 GEMM\n",
        {"scheme": "w4a16-nvfp4", "kernel_family": ["marlin"]},
    ),
    "dense NVFP4 enum": (
        "INFO 01-02 03:04:06 [nvfp4_utils.py:80] Using NvFp4LinearBackend.FLASHINFER_CUTLASS for NVFP4 GEMM\n",
        {"scheme": "w4a4-nvfp4", "kernel_family": ["cutlass", "flashinfer"]},
    ),
    "not quantized": (
        "WARNING 01-02 03:04:06 [mxfp4.py:196] MXFP4 linear layer is not implemented - falling back to UnquantizedLinearMethod.\n",
        {"degradations": ["not-quantized"]},
    ),
    "GGUF experts": (
        "WARNING 01-02 03:04:06 [gguf.py:156] There is no support for fast MoE kernel for current quantization method. Falling back to slow implementation. \n",
        {"degradations": ["unoptimized-kernel"]},
    ),
    "KV layout": (
        "INFO 01-02 03:04:06 [flashinfer.py:300] Using HND KV cache layout for FLASHINFER backend.\n",
        {},
    ),
    "all-reduce": (
        "INFO 01-02 03:04:06 [cuda_communicator.py:232] Using ['PYNCCL'] all-reduce backends (in dispatch order) for group 'ep:0' out of potential backends: ['NCCL_SYMM_MEM', 'FLASHINFER']\n"
        "INFO 01-02 03:04:06 [flashinfer_all_reduce.py:109] Auto-selected flashinfer allreduce backend: trtllm\n",
        {},
    ),
    "Triton attention of 0.11.1": (
        "INFO 01-02 03:04:06 [cuda.py:423] Using Triton backend.\n",
        {"attention_backend": "Triton"},
    ),
    "flash_attn missing, 0.4.0": (
        "INFO 04-05 03:04:06 selector.py:25] flash_attn is not found. Using xformers backend.\n",
        {"attention_backend": "xformers", "degradations": ["attention-fallback"]},
    ),
    "layers stored in 16 bits": (
        "(Worker_TP1 pid=3064475) WARNING 01-20 18:50:43 [compressed_tensors.py:742] Acceleration for non-quantized schemes is not supported by Compressed Tensors. Falling back to UnquantizedLinearMethod\n",
        {},
    ),
    "sparse without numbers": (
        "WARNING 02-10 18:50:43 compressed_tensors.py:402] CompressedTensors24 scheme is disabled for this case. Falling back to UnquantizedLinearMethod\n",
        {"degradations": ["not-quantized"]},
    ),
}


@pytest.mark.parametrize(("text", "facts"), CASES.values(), ids=CASES)
def test_the_text_says_this_and_nothing_else(text, facts):
    assert said(text) == facts


PATHS_OF_032 = {
    "Using CutlassExpertsMxfp4 for MXFP4 MoE": {"kernel_family": []},
    "Using MarlinExperts for MXFP4 MoE": {
        "scheme": "w4a16-mxfp4",
        "kernel_family": ["marlin"],
    },
    "Using MarlinExperts (weight-only FP4) for AutoRound MXFP4 MoE": {
        "scheme": "w4a16-mxfp4",
        "kernel_family": ["marlin"],
    },
    "Using AITER_MXFP4_BF16 for Kimi-K3 SiTU MXFP4 MoE.": {
        "scheme": "w4a16-mxfp4",
        "kernel_family": ["aiter"],
    },
}


@pytest.mark.parametrize(("words", "facts"), PATHS_OF_032.items(), ids=PATHS_OF_032)
def test_experts_named_by_their_class(words, facts):
    found = said(f"INFO 01-02 03:04:06 [x.py:1] {words}\n")
    assert found == {key: value for key, value in facts.items() if value}


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (
            "This device lacks native FP4 compute; using weight-only FP4 via the Marlin kernel, which may",
            "fp4-weight-only",
        ),
        (
            "No Mxfp4 MoE backend supports activation=mxfp8 for the deployment configuration. Falling back to 'TRITON' with BF16 activations.",
            "fp4-weight-only",
        ),
        (
            "[zen_cpu] ZentorchWNA16 fast path not eligible for this layer (AWQ pack layout); falling back to CPUWNA16LinearKernel (cpu_gemm_wna16).",
            "unoptimized-kernel",
        ),
        (
            "--block-size 64 precluded higher-priority backend(s) FLASHINFER. Using TRITON_ATTN instead, which may result in reduced performance. Consider",
            "attention-fallback",
        ),
        (
            "VLLM_BATCH_INVARIANT is set but the batch-invariant NVFP4 kernel is not supported on this platform; falling back to emulation for deterministic execution. Reason: x",
            "emulated",
        ),
        (
            "MXFP8->BF16 load-time dequant complete (8 experts/layer); MoE now runs in BF16",
            "emulated",
        ),
        (
            "--linear-backend=machete was requested, but no machete kernel exists for W8A8 layers; falling back to normal kernel selection",
            "requested-kernel-not-used",
        ),
        (
            "--linear-backend=machete has no kernel for this linear layer type; using automatic selection",
            "requested-kernel-not-used",
        ),
        (
            "VLLM_BATCH_INVARIANT overrides --linear-backend=machete; using the CUTLASS backend for deterministic execution.",
            "requested-kernel-not-used",
        ),
    ],
)
def test_a_path_that_was_not_taken_is_said(words, kind):
    """As vLLM 0.32 prints it; a prompt that quotes the sentence says nothing."""
    assert kind in said(f"WARNING 01-02 03:04:06 [x.py:1] {words}\n")["degradations"]
    assert said(f"INFO 01-02 03:04:06 [x.py:1] Received request a: prompt: '{words}'\n") == {}
