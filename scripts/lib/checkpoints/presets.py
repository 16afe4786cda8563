"""llm-compressor's preset schemes: what they make of a checkpoint (its ``quant_scheme.py``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PRESET_GROUP = 128
"""The group size of the presets with groups, unless another is given."""


@dataclass(frozen=True)
class Preset:
    """One preset: the contract's scheme, how weights are stored, and that in words."""

    scheme: str
    bits: int
    type: Literal["int", "float"]
    strategy: Literal["channel", "group", "tensor"]
    words: str

    @property
    def grouped(self) -> bool:
        """Whether its weights have a scale per group of so many of them."""
        return self.strategy == "group"


PRESETS = {
    "W8A8": Preset(
        "w8a8-int8",
        8,
        "int",
        "channel",
        "8-bit integer weights per channel; activations 8-bit integer, dynamic per token",
    ),
    "W8A16": Preset("w8a16-int8", 8, "int", "group", "8-bit integer weights; activations 16-bit"),
    "W4A16": Preset("w4a16", 4, "int", "group", "4-bit integer weights; activations 16-bit"),
    "FP8_DYNAMIC": Preset(
        "w8a8-fp8",
        8,
        "float",
        "channel",
        "8-bit floating-point weights per channel; "
        "activations 8-bit floating-point, dynamic per token",
    ),
    "FP8": Preset(
        "w8a8-fp8",
        8,
        "float",
        "tensor",
        "8-bit floating-point weights per tensor; activations 8-bit floating-point, static",
    ),
}
