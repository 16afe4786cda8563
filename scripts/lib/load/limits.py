"""Every threshold of the load measurement, in one table.

A point beyond a limit marked *invalid* says nothing about the server and is kept out of
every comparison; the others only warn.
"""

from __future__ import annotations

MAX_CPU_SHARE = 0.85
"""Invalid above: CPU seconds per wall second of the busiest client process."""

MAX_READ_LAG_MS, MAX_READ_LAG_SHARE = 10.0, 0.08
"""Invalid above the larger: how long received data lay unread on average, by the kernel's
account, in ms and as a share of the mean TTFT. It is part of every TTFT."""

MAX_READ_LAG_P99_MS, MAX_READ_LAG_P99_SHARE = 30.0, 0.10
"""The same for the 99th percentile, in ms and as a share of the p99 TTFT."""

MIN_READ_LAGS = 662
"""Readings below which their 99th percentile is not judged: it would be the largest of a few,
and one late reading of forty does not move a mean. The mean is always judged."""

MAX_LOOP_LAG_P99_MS, MAX_LOOP_LAG_SHARE = 40.0, 0.20
"""Where the kernel gives no such account: how late the client's event loop ran its timers (99th
percentile), in ms and as a share of the p99 TTFT. Invalid above the larger."""

MIN_LOOP_PROBES = 100
"""With fewer probes (1 s) there is no 99th percentile of the loop's lag to judge."""

MAX_SEND_LAG_P99_MS, MAX_SEND_LAG_SHARE = 50.0, 0.05
"""Invalid above the larger, closed loop: a late send costs throughput, not latency (which counts
from the real one). In ms, and as a share of the mean E2EL."""

MAX_OPEN_LOOP_SEND_LAG_P99_MS, MAX_OPEN_LOOP_SEND_LAG_SHARE = 20.0, 0.10
"""Invalid above the larger, open loop without a cap: it is part of every latency, which counts
from the intended time. In ms, and as a share of the mean TTFT."""

SERVER_TTFT_SHARE, SERVER_TTFT_MS = 0.25, 50.0
"""Invalid when client and server mean TTFT differ by more than both of these."""

SERVER_TPOT_SHARE, SERVER_TPOT_MS = 0.10, 1.0
"""Invalid when client and server mean TPOT differ by more than both of these."""

SERVER_WARN_FRACTION = 0.5
"""Warn at this fraction of the two limits above."""

FOREIGN_REQUESTS_SHARE = 0.05
"""Invalid when the server counted this share more requests than we sent it."""

SATURATION_GROWTH, SATURATION_MIN_REQUESTS = 1.5, 8
"""Warn, open loop, when the last quarter's median E2EL is this many times the first's (with at
least so many requests in a quarter)."""

STEADY_SHARE = 0.95
"""Steady: at least this share of the target concurrency is in flight."""

STEADY_MIN_S, STEADY_MIN_SHARE = 10.0, 0.10
"""Warn when the steady window is shorter than the larger of these (share: of the run)."""

STREAMS_PER_PROCESS = 640
"""One client process holds this many streams before a second one is started."""

EVENTS_PER_S_PER_PROCESS = 20_000
"""Stream events a second that one process may be expected to take in."""

EXPECTED_TOKENS_PER_S_PER_STREAM = 33
"""Assumed pace of a stream when nothing else is known (30 ms a token)."""

MAX_RAW_BYTES_PER_PROCESS = 48 * 2**20
"""Above this many unparsed bytes a client process parses finished streams while it waits."""

BARRIER_S = 0.05
"""Seconds between the start signal and the common start of all client processes."""

SETTLE_S = 0.25
"""Seconds after a point before /metrics is read: the engine books a request after its answer."""

CONNECT_TIMEOUT_S = 20.0
"""Seconds for a connection to open."""

LOOP_PROBE_S = 0.01
"""Period of the timer that measures how late the event loop is."""

PREFIX_HIT_SHARE = 0.02
"""Warn when more than this share of a point's prompt tokens came from the prefix cache."""
