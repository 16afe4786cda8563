"""When the requests of an open loop are sent: offsets in seconds from the point's start."""

from __future__ import annotations

import numpy as np

from scripts.lib.load.requests import Floats
from scripts.lib.study.models import Arrival, Ramp


def arrival_offsets(arrival: Arrival, rate: float, requests: int, seed: int) -> Floats:
    """Return ascending send times of ``requests`` at ``rate`` per second; the first is 0.

    Gaps are drawn from a gamma distribution of shape ``burstiness`` and mean 1/rate (1:
    Poisson arrivals; below 1 burstier; above 1 more even) and then scaled to that mean, as in
    vLLM's benchmark, so that the offered rate is the one asked for.

    Args:
        arrival: The process.
        rate: Requests per second.
        requests: How many.
        seed: Same seed, same times.
    """
    if arrival.process == "constant":
        return np.arange(requests) / rate
    shape = arrival.burstiness if arrival.process == "gamma" else 1.0
    gaps = np.random.default_rng(seed).gamma(shape, 1 / (rate * shape), size=requests)
    return _from_gaps(gaps, requests / rate)


def ramp_offsets(ramp: Ramp, arrival: Arrival, seed: int) -> Floats:
    """Return send times whose rate goes from ``start_rate`` to ``end_rate``.

    Linear or exponential in the number of requests sent. Each gap has the mean of the rate at
    its place.
    """
    place = np.linspace(0, 1, ramp.requests)
    if ramp.shape == "linear":
        rates = ramp.start_rate + (ramp.end_rate - ramp.start_rate) * place
    else:
        rates = ramp.start_rate * (ramp.end_rate / ramp.start_rate) ** place
    if arrival.process == "constant":
        gaps = 1 / rates
    else:
        shape = arrival.burstiness if arrival.process == "gamma" else 1.0
        gaps = np.random.default_rng(seed).gamma(shape, 1 / (rates * shape))
    return _from_gaps(gaps, float(np.sum(1 / rates)))


def _from_gaps(gaps: Floats, total_s: float) -> Floats:
    scaled = gaps * (total_s / gaps.sum())
    return np.concatenate([[0.0], np.cumsum(scaled)[:-1]])
