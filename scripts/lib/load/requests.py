"""The requests of one point as columns, and the latencies that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

COLUMNS = (
    "intended_s",
    "sent_s",
    "first_token_s",
    "last_token_s",
    "input_tokens",
    "output_tokens",
)


@dataclass(frozen=True)
class Requests:
    """All requests of one point, one array a field of ``REQUEST_FIELDS``; NaN for null.

    ``open_loop`` latencies count from the intended send time, the others from the real one.
    """

    intended_s: Floats
    sent_s: Floats
    first_token_s: Floats
    last_token_s: Floats
    input_tokens: Floats
    output_tokens: Floats
    ok: NDArray[np.bool_]
    open_loop: bool = False

    @classmethod
    def from_columns(cls, columns: Mapping[str, Any], *, open_loop: bool) -> Requests:
        """Take the columns of a data frame, or of anything indexed by field name."""
        arrays = {name: np.asarray(columns[name], dtype=np.float64) for name in COLUMNS}
        return cls(**arrays, ok=np.asarray(columns["ok"], dtype=bool), open_loop=open_loop)

    def __len__(self) -> int:
        return len(self.ok)

    @property
    def origin_s(self) -> Floats:
        """Where each request's latency counts from."""
        return self.intended_s if self.open_loop else self.sent_s

    @cached_property
    def ttft_ms(self) -> Floats:
        """First token - origin, per request; NaN where it failed."""
        return self._of_completed((self.first_token_s - self.origin_s) * 1000)

    @cached_property
    def e2el_ms(self) -> Floats:
        """Last token - origin, per request; NaN where it failed."""
        return self._of_completed((self.last_token_s - self.origin_s) * 1000)

    @cached_property
    def tpot_ms(self) -> Floats:
        """(E2EL - TTFT) / (output tokens - 1), as vLLM; NaN below two tokens."""
        steps = np.where(self.output_tokens > 1, self.output_tokens - 1, np.nan)
        return self._of_completed((self.last_token_s - self.first_token_s) * 1000 / steps)

    def latency(self, metric: str) -> Floats:
        """Return the known values of ``ttft``, ``tpot`` or ``e2el``, in ms."""
        values: Floats = getattr(self, f"{metric}_ms")
        return values[~np.isnan(values)]

    def _of_completed(self, values: Floats) -> Floats:
        return np.where(self.ok, values, np.nan)
