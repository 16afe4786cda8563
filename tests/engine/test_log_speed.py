"""A log of a long run is read in little time and little memory."""

import resource
import subprocess
import sys
from pathlib import Path

from scripts.lib.engine.log_reader import read_log

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


def test_forty_megabytes(tmp_path):
    """A fifth of the promised 200 MB, so a fifth of the promised five seconds."""
    path = tmp_path / "server.log"
    long_log(path, 40)
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
    assert (scheme, ready) == ("w8a8-int8", "True")
    assert float(cpu_s) < 1.0 * 1.5  # shared machines are not always quick
    assert float(peak_mib) < 200


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "server.log"
    long_log(path, 8)
    read_log(path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    long_log(path, 40)
    read_log(path)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 16 * 1024  # KiB
