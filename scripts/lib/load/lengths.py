"""How long prompts and answers are, in five numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scripts.lib.load.requests import Floats


def spread(values: Sequence[float] | Floats) -> dict[str, float]:
    """Return min, p50, mean, p95 and max of token counts; unknown ones (NaN) are left out."""
    counts = np.asarray(values, float)
    known = counts[~np.isnan(counts)]
    if not len(known):
        return {}
    return {
        "min": float(known.min()),
        "p50": float(np.quantile(known, 0.5)),
        "mean": float(known.mean()),
        "p95": float(np.quantile(known, 0.95)),
        "max": float(known.max()),
    }
