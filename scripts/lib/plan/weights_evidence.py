"""Evidence from the size of the loaded weights, and from speed: what a name cannot fake."""

from __future__ import annotations

from dataclasses import dataclass

from scripts.lib.checkpoints.manifest import Manifest
from scripts.lib.engine.startup import LogFacts
from scripts.lib.plan.gpus import GIB
from scripts.lib.plan.models import Evidence

UNQUANTIZED = ("bf16", "fp16", "fp32")
TELL_APART_GIB = 0.3
"""Sizes closer than this cannot be told apart: buffers and the allocator's rounding add up."""
TOLERANCE = 0.10
"""The engine's figure is up to 1.2 % (7B) above the tensors; small models differ by more."""
SLACK_GIB = 0.15
SAME_SPEED = 0.03


@dataclass(frozen=True)
class Sizes:
    """What the weights should take on one GPU, in GiB."""

    promised: float
    """As the checkpoint's tensors add up."""
    unquantized: float
    """With all parameters in 16 bits."""

    @property
    def tell_apart(self) -> bool:
        """Whether the size of the loaded weights says which of the two it was."""
        return self.unquantized - self.promised >= max(TELL_APART_GIB, 0.2 * self.promised)


def sizes_of(manifest: Manifest | None, gpus: int) -> Sizes | None:
    """Return what the checkpoint's tensors take on one of ``gpus``; None: no headers to add up.

    Tensors that are not quantized although the configuration promises it count at the promised
    bits: what was promised is asked, not what was stored.
    """
    if manifest is None or manifest.tensors is None:
        return None
    tensors = manifest.tensors
    broken = manifest.scheme.method is not None and not tensors.quantized_parameters
    promised = tensors.ideal_bytes if broken else tensors.total_bytes
    if promised is None:
        return None
    return Sizes(promised / gpus / GIB, tensors.parameters * 2 / gpus / GIB)


def weights_evidence(
    facts: LogFacts, sizes: Sizes | None, promised: str, baseline: LogFacts | None
) -> Evidence | None:
    """Compare the loaded weights with the checkpoint's tensors; None: nothing to compare.

    ``supports`` is False when they are as large as unquantized ones although the checkpoint
    promises fewer bits, True when they are as large as promised and that is decisive.
    """
    loaded = facts.weights_gib
    if loaded is None or sizes is None:
        return None
    line = facts.evidence.get("weights_gib")
    said = (
        f"{loaded:g} GiB of weights were loaded; the checkpoint's tensors come to "
        f"{sizes.promised:.2f} GiB"
    )
    if promised in UNQUANTIZED:
        return Evidence(
            level="weights", says=said + ".", supports=_near(loaded, sizes.promised), line=line
        )
    said += f", all parameters in 16 bits to {sizes.unquantized:.2f} GiB"
    if baseline and baseline.weights_gib is not None:
        said += f", and the baseline loaded {baseline.weights_gib:g} GiB"
    supports = None
    if sizes.tell_apart and _near(loaded, sizes.promised):
        supports = True
    elif sizes.tell_apart and loaded >= sizes.unquantized - _slack(sizes.unquantized, 0.05):
        supports = False
        said += ": they are not quantized"
    return Evidence(level="weights", says=said + ".", supports=supports, line=line)


def speed_evidence(ratio: float | None, promised: str) -> Evidence | None:
    """Say if a quantized variant is as fast as the baseline: a hint, never a proof.

    Args:
        ratio: Its time per output token over the baseline's at the lowest load; None: unknown.
        promised: The checkpoint's scheme.
    """
    if ratio is None or promised in UNQUANTIZED:
        return None
    same = abs(ratio - 1) <= SAME_SPEED
    said = f"Its time per output token is {ratio:.2f} times the baseline's"
    said += ", equal within the noise: a hint that it ran the same numbers." if same else "."
    return Evidence(level="speed", says=said, supports=False if same else None)


def _near(value: float, wanted: float) -> bool:
    return abs(value - wanted) <= _slack(wanted, TOLERANCE)


def _slack(wanted: float, share: float) -> float:
    return max(SLACK_GIB, share * wanted)
