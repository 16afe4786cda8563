"""A log of a long run is read in little time and little memory."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts.lib.engine import log_rules
from scripts.lib.engine.log_causes import SPECIFIC
from scripts.lib.engine.log_failures import DEATHS, WRAPPERS
from scripts.lib.engine.log_lines import LONGEST_LINE
from scripts.lib.engine.log_reader import LogReader, read_log

LOGS = Path(__file__).parents[1] / "fixtures" / "logs"
ACCESS = b'(APIServer pid=1) INFO:     127.0.0.1:%d - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
STATISTICS = (
    b"(APIServer pid=1) INFO 11-30 07:26:46 [loggers.py:273] Engine 000: Avg prompt throughput: "
    b"%d.9 tokens/s, Running: 1 reqs, GPU KV cache usage: 0.0%%, Prefix cache hit rate: 0.0%%\n"
)
FAILED_REQUEST = (
    b"(APIServer pid=1) ERROR 11-30 07:26:46 [serving_chat.py:200] Error in preprocessing\n"
    b"ValueError: This model's maximum context length is %d tokens.\n"
)
RULES = [
    *log_rules.FACTS,
    *log_rules.DEGRADATIONS,
    *log_rules.READY,
    *log_rules.STOPS,
    log_rules.API_VERSION,
    log_rules.BANNER,
    log_rules.ENGINE,
    *SPECIFIC,
    *WRAPPERS,
    *DEATHS,
]
MIB = 1 << 20


def long_log(path, mib):
    """Write a start, then what a server prints while it serves."""
    start = (LOGS / "cpu_032_int8.log").read_bytes().split(b"Application startup complete.")[0]
    traffic = b"".join(
        ACCESS % (30000 + index)
        + (STATISTICS % index if index % 7 == 0 else b"")
        + (FAILED_REQUEST % index if index % 50 == 0 else b"")
        for index in range(20_000)
    )
    with path.open("wb") as file:
        file.write(start + b"Application startup complete.\n")
        while file.tell() < mib * MIB:
            file.write(traffic)


def read_in_a_child(path):
    """Return CPU seconds, peak memory in MiB, scheme and readiness of reading ``path``."""
    script = (
        "import re, sys, time; from pathlib import Path\n"
        "from scripts.lib.engine.log_reader import read_log\n"
        "before = time.process_time(); facts = read_log(Path(sys.argv[1]))\n"
        "spent = time.process_time() - before\n"
        # Not ru_maxrss: that one a child inherits from the test runner.
        "peak = re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]\n"
        "print(spent, int(peak) / 1024, facts.scheme, facts.ready)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    cpu_s, peak_mib, scheme, ready = done.stdout.split()
    return float(cpu_s), float(peak_mib), scheme, ready


def test_forty_megabytes(tmp_path):
    """A fifth of the promised 200 MB, so a fifth of the promised five seconds.

    Nor does the memory grow with the file.
    """
    path = tmp_path / "server.log"
    long_log(path, 8)
    _, little_mib, *_ = read_in_a_child(path)
    long_log(path, 40)
    cpu_s, peak_mib, scheme, ready = read_in_a_child(path)
    assert (scheme, ready) == ("w8a8-int8", "True")
    assert cpu_s < 1.0 * 1.5  # shared machines are not always quick
    assert peak_mib < 200
    assert peak_mib - little_mib < 16


def crowded_log(path, mib, line):
    """Write a start that never gets ready and says something like a fact in every line."""
    start = (LOGS / "cpu_032_int8.log").read_bytes().split(b"(Worker pid=17200) INFO")[0]
    lines = b"".join(line % index for index in range(10_000))
    with path.open("wb") as file:
        file.write(start)
        while file.tell() < mib * MIB:
            file.write(lines)
        file.write(b"INFO 11-30 09:22:44 [a.py:1] Using CPU_ATTN backend.\n")


def cpu_seconds(path):
    before = time.process_time()
    facts = read_log(path)
    return time.process_time() - before, facts


@pytest.mark.parametrize(
    "line",
    [
        b"no backend for it %d\n",
        b"\x1b[36m(EngineCore pid=1)\x1b[0;0m INFO 11-30 09:22:44 [a.py:1] # blocks: x%d\n",
        b"ERROR 11-30 09:22:44 [a.py:1] RuntimeError: NCCL error 3: rank %d waits\n",
        b"WARNING 11-30 09:22:44 [moe.py:1] Using default MoE config of layer %d\n",
    ],
    ids=["words", "colours", "causes", "degradations"],
)
def test_words_in_every_line_cost_little_more_than_traffic(tmp_path, line):
    """Read line by line, such a log took fifty times as long as one of requests."""
    ordinary, crowded = tmp_path / "ordinary.log", tmp_path / "crowded.log"
    long_log(ordinary, 8)
    crowded_log(crowded, 4, line)
    ordinary_s, facts = cpu_seconds(ordinary)
    assert facts.ready
    crowded_s, facts = cpu_seconds(crowded)
    assert facts.attention_backend == "CPU_ATTN"
    assert crowded_s < 8 * ordinary_s / 2


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.word.strip())
def test_a_rule_reads_a_very_long_line_in_little_time(rule):
    """64 KiB of a word, of one letter, or of a sentence's beginning: no time that is its square."""
    lines = [f"{text * (LONGEST_LINE // len(text))} {rule.word}" for text in ("a", "Using ")]
    lines.append(f"{rule.word} " * (LONGEST_LINE // (len(rule.word) + 1)))
    before = time.process_time()
    for line in lines:
        rule.pattern.search(line)
    assert time.process_time() - before < 0.25


def test_causes_without_number_take_little_memory():
    """What is kept of a start is bounded, whatever it repeats and however long its lines are."""
    line = b"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB" + b"." * 20_000 + b"\n"
    reader = LogReader()
    for _ in range(30):
        reader.feed(line * 10)
    assert reader.facts().failure.kind == "oom"
    assert sum(len(failed.line) for failed in reader.start.failures) < MIB
