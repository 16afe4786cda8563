"""A printed table says the same however it was passed on."""

import html

import pytest

from scripts.lib.load.benchmark_file import read_benchmark_text

TABLE = """============ Serving Benchmark Result ============
Successful requests:                     200
Failed requests:                         0
Maximum request concurrency:             16
Request rate configured (RPS):           8.00
Benchmark duration (s):                  50.00
Total input tokens:                      40000
Total generated tokens:                  20000
Request throughput (req/s):              4.00
Output token throughput (tok/s):         400.00
Peak output token throughput (tok/s):    512.00
Peak concurrent requests:                18.00
Total Token throughput (tok/s):          1200.00
---------------Time to First Token----------------
Mean TTFT (ms):                          50.10
Median TTFT (ms):                        48.00
P99 TTFT (ms):                           90.00
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          20.00
P99 TPOT (ms):                           30.00
---------------Inter-token Latency----------------
Mean ITL (ms):                           20.10
P99 ITL (ms):                            45.00
==================================================
"""
FACTS = {
    "completed": 200,
    "failed": 0,
    "sent": 200,
    "duration_s": 50.0,
    "request_rate": 8.0,
    "max_concurrency": 16,
    "request_throughput": 4.0,
    "output_throughput_tok_s": 400.0,
    "total_throughput_tok_s": 1200.0,
    "goodput": None,
    "mean_ttft_ms": 50.1,
    "median_ttft_ms": 48.0,
    "p50_ttft_ms": None,
    "p99_ttft_ms": 90.0,
    "mean_tpot_ms": 20.0,
    "median_tpot_ms": None,
    "p99_tpot_ms": 30.0,
    "mean_itl_ms": 20.1,
    "p99_itl_ms": 45.0,
    "median_e2el_ms": None,
    "peak_output_throughput_tok_s": 512.0,
    "peak_concurrency": 18,
    "valid": True,
}


def each_line(dress):
    return "".join(dress(line) + "\n" for line in TABLE.splitlines())


DRESSES = {
    "as it is": TABLE,
    "docker compose": each_line(lambda line: f"client-1  | {line}"),
    "kubernetes": each_line(lambda line: f"2026-01-02T03:04:05.123Z stdout F {line}"),
    "journal": each_line(lambda line: f"Nov 30 07:21:49 host bench[15]: {line}"),
    "time of day": each_line(lambda line: f"10:00:01 {line}"),
    "MPI": each_line(lambda line: f"[1,0]<stdout>: {line}"),
    "logging": each_line(lambda line: f"2026-01-02 03:04:05,123 - INFO - {line}"),
    "quoted": each_line(lambda line: f"> {line}"),
    "line numbers": each_line(lambda line: f"  12\t{line}"),
    "colours": each_line(lambda line: f"\x1b[32m{line}\x1b[0m"),
    "colours that lost their escape": each_line(lambda line: f"[0;32m{line}[0m"),
    "frame of a terminal": each_line(lambda line: f"│ {line:<60}│"),
    "code block": f"It prints:\n```\n{TABLE}```\n",
    "table of Markdown": each_line(lambda line: f"| {line.replace(':', ' |', 1)} |"),
    "Windows": TABLE.replace("\n", "\r\n"),
    "blanks that do not break": TABLE.replace(" ", "\u00a0"),
    "blanks lost": each_line(lambda line: " ".join(line.split())),
    "line ends lost": TABLE.replace("\n", " "),
    "line ends as two characters": TABLE.replace("\n", "\\n"),
    "empty lines between": TABLE.replace("\n", "\n\n"),
    "HTML": html.escape(TABLE),
}


@pytest.mark.parametrize("text", DRESSES.values(), ids=DRESSES)
def test_the_dress_changes_nothing(text):
    found = read_benchmark_text(text).model_dump()
    assert {key: found[key] for key in FACTS} == FACTS


def test_a_peak_is_no_mean():
    text = "\n".join(line for line in TABLE.splitlines() if not line.startswith("Output")) + "\n"
    assert read_benchmark_text(text).output_throughput_tok_s is None


def test_a_cut_number_is_unknown():
    cut = TABLE[: TABLE.index("90.00") + 1]
    assert read_benchmark_text(cut).p99_ttft_ms is None
