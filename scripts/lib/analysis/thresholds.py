"""From when on a change counts: the one table of the diagnosis, each with its reason."""

from __future__ import annotations

from scripts.lib.load import limits as load_limits

UP_RATIO = 1.5
"""A latency is "up" from here: far beyond the 7 % by which equal runs have been seen to differ."""

STEADY_RATIO = 1.25
"""A latency is "steady" up to here; between steady and up nothing is said."""

QUEUE_UP_MS = 20.0
"""A queue time is "up" when it grew by this much: below it is scheduling jitter of a few steps."""

QUEUE_SHARE_OF_TTFT = 0.3
"""... and when it explains at least this share of the growth of TTFT."""

WAITING_UP = 2.0
"""Without queue times: so many more requests waiting at the peak."""

KV_USAGE_UP = 0.10
"""KV usage is "up" by a tenth of the cache."""

KV_FULL = 0.95
"""KV usage from here on leaves no room for the next sequence of common length."""

THROUGHPUT_UP_RATIO = 1.03
"""Throughput is "up" from here (batching beyond the SLO); smaller steps are noise."""

GOODPUT_DOWN_RATIO = 0.95
"""Goodput is "down" from here."""

LEVELLED_RATIO = 1.10
"""Load doubled and throughput grew by no more than this: the engine is saturated."""

LOAD_STEP_RATIO = 1.5
"""Only load steps of at least this ratio say anything about saturation."""

CLIENT_CPU_SHARE = load_limits.MAX_CPU_SHARE
CLIENT_LAG_MS = load_limits.MAX_SEND_LAG_P99_MS
"""The client's own limits, as the load measurement sets them."""

FRONT_END_TTFT_SHARE = load_limits.SERVER_TTFT_SHARE
FRONT_END_TTFT_MS = load_limits.SERVER_TTFT_MS
FRONT_END_TPOT_SHARE = load_limits.SERVER_TPOT_SHARE
FRONT_END_TPOT_MS = load_limits.SERVER_TPOT_MS
"""Client's above the engine's own mean: both the share and the difference are needed, since an
idle server's front end alone takes some milliseconds. The same as for an invalid point."""

IDLE_UTILISATION = 0.8
"""GPU utilisation under this while clients wait: the engine is partly idle."""

HOST_BOUND_UTILISATION = 0.5
"""GPU utilisation under this with requests always in flight: its host feeds it too slowly. An
H200 in eager mode was seen at 6 to 36 % with 0.1 and 7 billion parameters."""

HOST_BOUND_S = 5.0
"""A shorter point holds too few samples, each second one, to tell utilisation."""

PREFIX_DECISIVE = 0.3
"""From this share of prompt tokens out of the cache, TTFT says little about cold prompts."""

PREFIX_USELESS = 0.02
"""Below this share a prefix cache that was asked for does nothing."""

THROTTLED_SHARE = 0.05
"""Share of samples with a lowered clock from which a point is called throttled."""

LENGTH_CHANGE = 0.10
"""Mean answer length this far from the baseline's: E2EL no longer compares like with like."""

ASSUMED_NOISE = 0.07
"""Relative difference that counts as a tie where the noise was not measured: identical vLLM runs
have been seen 6.9 % apart."""

NOISE_Z = 1.96
"""Two means differ beyond the measured noise when their logarithms are so many standard errors
apart (about 95 %)."""
