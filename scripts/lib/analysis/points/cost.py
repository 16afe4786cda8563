"""Money and energy per token."""

from __future__ import annotations

from scripts.lib.analysis.summary import Value

SECONDS_PER_HOUR = 3600


def usd_per_million(usd_per_hour: float | None, tokens_per_s: Value, when_zero: str) -> Value:
    """Return the price of a million tokens on a machine that makes so many a second.

    USD per million = USD per hour / 3600 / (tokens per second) x 10^6. The interval of the
    rate becomes that of the price, its ends swapped.

    Args:
        usd_per_hour: The whole machine's price; None: the study gives none.
        tokens_per_s: The rate.
        when_zero: What to say when nothing was made: a price of infinity is not a number.
    """
    if usd_per_hour is None:
        return Value(missing="the study gives no price")
    if tokens_per_s.value is None:
        return Value(missing=tokens_per_s.missing or "not measured")
    if tokens_per_s.value <= 0:
        return Value(missing=when_zero)
    scale = usd_per_hour / SECONDS_PER_HOUR * 1e6
    low, high = tokens_per_s.low, tokens_per_s.high
    return Value(
        value=scale / tokens_per_s.value,
        low=scale / high if high is not None and high > 0 else None,
        high=scale / low if low is not None and low > 0 else None,
        n=tokens_per_s.n,
    )


def study_cost_usd(usd_per_hour: float, hours: float) -> float:
    """Return what so many hours of the machine cost, in USD."""
    return usd_per_hour * hours


def joules_per(energy_j: Value, count: float | None, what: str) -> Value:
    """Return energy per unit, or why there is none.

    Args:
        energy_j: What the GPUs used over the window (the growth of NVML's energy counters).
        count: Output tokens, or good requests, of the same window; None: not known.
        what: The unit's name for the reason, in the plural.
    """
    if energy_j.value is None:
        return energy_j
    if count is None:
        return Value(missing=f"the number of {what} is not known")
    if count <= 0:
        return Value(missing=f"no {what}")
    return Value(value=energy_j.value / count)
