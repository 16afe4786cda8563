"""What a data set gives: prompts with known lengths, as many as are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Sample:
    """One request to be: a prompt or chat messages, and how long its answer may get.

    ``at_s``: when a trace sent it, counted from the trace's start.
    """

    input_tokens: int
    output_tokens: int
    prompt: str | None = None
    messages: list[dict[str, Any]] | None = None
    at_s: float | None = None


class DatasetError(ValueError):
    """A data set that cannot be used; the message names the file and the fix."""


@dataclass
class Samples:
    """Samples drawn lazily from a source; one that ends is used again from its start."""

    source: Iterator[Sample]
    name: str
    info: dict[str, object] = field(default_factory=dict)
    drawn: list[Sample] = field(default_factory=list)
    exhausted: bool = False

    def take(self, start: int, count: int) -> list[Sample]:
        """Return samples ``start`` to ``start + count``, in cycles if there are fewer.

        Raises:
            DatasetError: The source has no sample at all.
        """
        while len(self.drawn) < start + count and not self.exhausted:
            sample = next(self.source, None)
            if sample is None:
                self.exhausted = True
            else:
                self.drawn.append(sample)
        if not self.drawn:
            raise DatasetError(f"{self.name}: no usable prompt; see the length limits")
        return [self.drawn[index % len(self.drawn)] for index in range(start, start + count)]
