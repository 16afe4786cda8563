"""Lower bounds from memory bandwidth and matrix throughput (the roofline model)."""

from __future__ import annotations

from scripts.lib.checkpoints.manifest import Shape
from scripts.lib.plan.flags import Settings
from scripts.lib.plan.gpus import Device
from scripts.lib.plan.memory import Weights
from scripts.lib.plan.models import Estimate, ExpectedPath
from scripts.lib.plan.shapes import Counts

MATRIX_UNITS = {
    "w8a8-fp8": "fp8",
    "w8a8-int8": "int8",
    "w4a4-nvfp4": "fp4",
}
"""What the products are computed in; every weight-only scheme computes in 16 bits."""

EMBEDDING_NOT_KNOWN = (
    "how large the input embedding is, of which a step reads single rows, is not known"
)


def tpot_floor(
    device: Device, weights: Weights, settings: Settings, shape: Shape | None
) -> Estimate | str:
    """Return the least time per output token at concurrency 1, or why there is none.

    Each step reads the weights of one GPU once (less the input embedding, of which it reads a
    row): bytes / bandwidth. KV cache, launches and communication come on top. Pipeline stages
    follow one another, so only tensor parallelism divides.
    """
    fault = _why_no_bandwidth(device, shape)
    if fault:
        return fault
    assert device.bandwidth_gb_s
    read = _read_per_step(weights, settings)
    if read is None:
        return EMBEDDING_NOT_KNOWN
    value = read / (device.bandwidth_gb_s * 1e9) * 1e3
    how = (
        f"{read / 1e9:.2f} GB of weights read per step / {device.bandwidth_gb_s:g} GB/s; a floor: "
        "without KV cache, launches and communication"
    )
    return Estimate(value=round(value, 2), unit="ms", how=how)


def compute_bound_from(
    device: Device,
    weights: Weights,
    counts: Counts | None,
    settings: Settings,
    shape: Shape | None,
    expected: ExpectedPath,
) -> Estimate | str:
    """Return the concurrency from which arithmetic takes longer than reading the weights.

    2 x parameters x concurrency / throughput = bytes / bandwidth, solved for the concurrency.
    """
    fault = _why_no_bandwidth(device, shape)
    if fault:
        return fault
    if counts is None:
        return "the number of parameters is not known"
    if expected.scheme == "unknown":
        return "it is not known in which number format the products are computed"
    unit = MATRIX_UNITS.get(expected.scheme, "fp16" if expected.scheme == "fp16" else "bf16")
    tflops = device.dense_tflops.get(unit)
    if tflops is None:
        return f"the table of GPUs has no dense {unit.upper()} throughput for {device.name}"
    assert device.bandwidth_gb_s
    active = counts.linear + (counts.head or counts.embedding)
    tp = settings.tensor_parallel
    read = _read_per_step(weights, settings)
    if read is None:
        return EMBEDDING_NOT_KNOWN
    seconds = read / (device.bandwidth_gb_s * 1e9)
    value = seconds * tflops * 1e12 * tp / (2 * active)
    how = (
        f"2 x {active / 1e9:.2f} billion parameters a token at {tflops * tp:g} dense "
        f"{unit.upper()} TFLOP/s against the time to read the weights once"
    )
    return Estimate(value=round(value), unit="concurrent requests", how=how)


def _read_per_step(weights: Weights, settings: Settings) -> float | None:
    if weights.embedding is None:
        return None
    return (weights.real - weights.embedding) / settings.tensor_parallel


def _why_no_bandwidth(device: Device, shape: Shape | None) -> str | None:
    if device.kind == "cpu":
        return "the memory bandwidth of this CPU is not known (it depends on the DIMMs)"
    if device.kind == "none":
        return f"the device is not known ({device.name})"
    if device.bandwidth_gb_s is None:
        return f"{device.name} is not in the table of GPUs, so its bandwidth is not known"
    if shape and shape.experts:
        return "which experts a step reads depends on the tokens"
    return None
