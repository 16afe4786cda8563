"""One log in every dress in which logs are passed on says the same."""

# ruff: noqa: E501 - log lines are quoted as they are

import html
import json
import textwrap

import pytest

from scripts.lib.engine.log_reader import read_log_text
from tests.engine.log_texts import config, said

SERVER = "(APIServer pid=7) "
ENGINE = "(EngineCore_DP0 pid=9) "
LOG = "".join(
    [
        f"{SERVER}INFO 01-02 03:04:01 [api_server.py:1896] vLLM API server version 0.11.0\n",
        f"{SERVER}INFO 01-02 03:04:01 [utils.py:233] non-default args: {{'model': 'org/model', 'quantization': None}}\n",
        config("0.11.0", before=ENGINE, quantization="compressed-tensors"),
        f"{ENGINE}INFO 01-02 03:04:06 [cuda.py:366] Using Flash Attention backend on V1 engine.\n",
        f"{ENGINE}INFO 01-02 03:04:06 [compressed_tensors_wNa16.py:108] Using MacheteLinearKernel for CompressedTensorsWNA16\n",
        f"{ENGINE}INFO 01-02 03:04:30 [gpu_model_runner.py:2653] Model loading took 5.3735 GiB and 20.170292 seconds\n",
        f"{ENGINE}INFO 01-02 03:05:00 [gpu_worker.py:298] Available KV cache memory: 61.25 GiB\n",
        f"{ENGINE}INFO 01-02 03:05:00 [kv_cache_utils.py:1087] GPU KV cache size: 501,760 tokens\n",
        f"{ENGINE}INFO 01-02 03:05:00 [kv_cache_utils.py:1091] Maximum concurrency for 8,192 tokens per request: 61.25x\n",
        f"{ENGINE}WARNING 01-02 03:05:01 [fused_moe.py:727] Using default MoE config. Performance might be sub-optimal! Config file not found at E=1.json\n",
        f"{SERVER}INFO:     Started server process [7]\n",
        f"{SERVER}INFO:     Application startup complete.\n",
    ]
)
FACTS = {
    "vllm_version": "0.11.0",
    "quantization": "compressed-tensors",
    "kernels": ["MacheteLinearKernel"],
    "scheme": "w4a16",
    "kernel_family": ["machete"],
    "weights_gib": 5.3735,
    "kv_cache_tokens": 501760,
    "max_concurrency": 61.25,
    "max_concurrency_tokens": 8192,
    "tensor_parallel_size": 1,
    "dtype": "torch.bfloat16",
    "attention_backend": "Flash Attention",
    "ready": True,
    "degradations": ["untuned-moe"],
}


def each_line(dress):
    return "".join(dress(line) + "\n" for line in LOG.splitlines())


def cut_at(width):
    return [
        line[start : start + width]
        for line in LOG.splitlines()
        for start in range(0, max(len(line), 1), width)
    ]


def filled(indent=""):
    return "\n".join(
        part
        for line in LOG.splitlines()
        for part in textwrap.wrap(line, 100, subsequent_indent=indent)
    )


DRESSES = {
    "as it is": LOG,
    "docker compose": each_line(lambda line: f"\x1b[36mvllm-1  |\x1b[0m {line}"),
    "kubernetes": each_line(lambda line: f"2026-01-02T03:04:05.123456789Z stderr F {line}"),
    "journal": each_line(lambda line: f"Nov 30 07:21:49 host vllm[1015]: {line}"),
    "torchserve": each_line(lambda line: f"2024-10-07T22:54:54,5 [INFO ] W-9000-stdout LOG - {line}"),
    "docker JSON": each_line(lambda line: json.dumps({"log": line + "\n", "stream": "stderr"})),
    "JSON of a log shipper": each_line(lambda line: json.dumps({"level": "INFO", "message": line})),
    "notebook": each_line(lambda line: json.dumps("    " + line + "\n") + ","),
    "quoted": each_line(lambda line: f"> {line}"),
    "code block": f"This is what it prints:\n\n```shell\n{LOG}```\n",
    "HTML entities": html.escape(LOG),
    "HTML colours": each_line(lambda line: f'<font color="#2AA1B3"><b>{line}</b></font>'),
    "table of a terminal": each_line(lambda line: f"│ {line:<180}│"),
    "line numbers": each_line(lambda line: f"   120\t{line}"),
    "Ray": each_line(lambda line: f"(RayWorkerWrapper pid=1, ip=10.0.0.2) {line} [repeated 3x across cluster]"),
    "colours that lost their escape": each_line(lambda line: f"[1;36m{line}[0;0m"),
    "colours in words": each_line(lambda line: f"\\x1b[36m{line}\\x1b[0m"),
    "Windows": LOG.replace("\n", "\r\n"),
    "carriage returns only": LOG.replace("\n", "\r"),
    "empty lines between": LOG.replace("\n", "\n\n"),
    "blanks that do not break": LOG.replace(" ", "\u00a0"),
    "line ends lost": LOG.replace("\n", " "),
    "line ends as two characters": LOG.replace("\n", "\\n"),
    "a bar before each line": each_line(lambda line: f"Loading:  33%|###   | 1/3 [00:00<?, ?it/s]{line}"),
    "cut at 80": "\n".join(cut_at(80)),
    "cut at 118": "\n".join(cut_at(118)),
    "cut at 78 and quoted": "\n".join(f"> {line}" for line in cut_at(78)),
    "filled to 100": filled(),
    "filled with an indent": filled("      "),
}  # fmt: skip


@pytest.mark.parametrize("text", DRESSES.values(), ids=DRESSES)
def test_the_dress_changes_nothing(text):
    assert said(text) == FACTS


OLD = "".join(
    [
        "INFO 01-02 03:04:01 api_server.py:585] vLLM API server version 0.6.4.post1\n",
        config("0.6.4.post1", "", quantization="awq_marlin", dtype="torch.float16"),
        "INFO 01-02 03:04:06 selector.py:135] Using Flash Attention backend.\n",
        "INFO 01-02 03:04:30 model_runner.py:1077] Loading model weights took 5.2035 GB\n",
        "INFO 01-02 03:05:00 gpu_executor.py:122] # GPU blocks: 20531, # CPU blocks: 4096\n",
        "INFO 01-02 03:05:00 gpu_executor.py:126] Maximum concurrency for 8192 tokens per request: 40.10x\n",
        "ValueError: The model's max seq len (29000) is larger than the maximum number of tokens that can be stored in KV cache (23648). Try\n",
    ]
)


@pytest.mark.parametrize("text", [LOG, OLD], ids=["V1", "V0"])
def test_a_text_cut_anywhere_says_nothing_that_the_whole_does_not(text):
    whole = said(text)
    for end in range(1, len(text), 3 if text is LOG else 1):
        part = said(text[:end])
        different = {key: value for key, value in part.items() if value != whole.get(key)}
        # The front end's version comes before the engine's; kernels before what they run.
        different.pop("scheme", None)
        assert different == {}, text[:end][-80:]


@pytest.mark.parametrize(
    ("line", "gib"),
    [
        ("Memory profiling results: kv_cache_size=2.89GiB gpu_memory_utilization=0.90", 2.89),
        ("activation peak takes 1.39GiB; the rest of the memory reserved for KV Cache is 1.09GiB.", 1.09),
        ("INFO 10-10 10:00:00 [gpu_worker.py:298] Available KV cache memory: -1.25 GiB", -1.25),
        ("INFO 10-10 10:00:00 [cpu_worker.py:90] Explicitly set (10.5/62.5) GiB for KV cache on node 0.", 10.5),
    ],
)  # fmt: skip
def test_memory_of_the_kv_cache(line, gib):
    assert read_log_text(line + "\n").kv_cache_gib == gib
