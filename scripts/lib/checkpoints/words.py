"""Say a quantization scheme in words that a person understands, and give it its short name."""

from __future__ import annotations

from dataclasses import dataclass, field

from scripts.lib.checkpoints.manifest import Scheme

MIXED_WORDS = 4


@dataclass(frozen=True)
class Numbers:
    """How one operand of a layer is stored: None anywhere means that the source does not say."""

    bits: int
    type: str  # int, float, codebook
    strategy: str | None = None
    group_size: int | None = None
    block_shape: list[int] | None = None
    symmetric: bool | None = None
    dynamic: bool | None = None
    act_order: bool | None = None
    micro: str | None = None  # nvfp4 or mxfp4: a 4-bit format with scales of its own
    note: str | None = None  # said as it is, at the end


@dataclass(frozen=True)
class Layers:
    """One group of layers: their weights, and their activations (None: as computed, 16-bit)."""

    weights: Numbers
    activations: Numbers | None = None
    targets: list[str] = field(default_factory=list)
    format: str | None = None


def short_name(weights: Numbers, activations: Numbers | None) -> str:
    """Return the contract's name for weights and activations; ``unknown`` where it has none."""
    if weights.micro and activations is None:
        return f"w4a16-{weights.micro}"
    if weights.micro:
        both = weights.micro == "nvfp4" and activations is not None and activations.bits == 4
        return "w4a4-nvfp4" if both else "unknown"
    other = (activations.bits, activations.type) if activations else None
    names: dict[tuple[int, str, tuple[int, str] | None], str] = {
        (8, "float", (8, "float")): "w8a8-fp8",
        (8, "float", None): "w8a16-fp8",
        (8, "int", (8, "int")): "w8a8-int8",
        (8, "int", None): "w8a16-int8",
        (4, "int", None): "w4a16",
        (4, "float", None): "w4a16",
        (3, "int", None): "w3a16",
        (2, "int", None): "w2a16",
        (2, "codebook", None): "w2a16",
    }
    return names.get((weights.bits, weights.type, other), "unknown")


def words_of(weights: Numbers, activations: Numbers | None) -> str:
    """Return e.g. "4-bit integer weights in groups of 128, symmetric; activations 16-bit"."""
    parts = [f"{_number(weights)} weights {_scope(weights)}".strip()]
    if weights.symmetric is not None and weights.type == "int":
        parts.append("symmetric" if weights.symmetric else "with zero points")
    if weights.act_order is not None:
        parts.append("act order" if weights.act_order else "no act order")
    if weights.note:
        parts.append(weights.note)
    if activations is None:
        return ", ".join(parts) + "; activations 16-bit"
    tail = [f"activations {_number(activations)}", _scope(activations)]
    if activations.dynamic is not None:
        tail.append(
            "scaled as they come (dynamic)" if activations.dynamic else "with fixed scales (static)"
        )
    if activations.note:
        tail.append(activations.note)
    return ", ".join(parts) + "; " + ", ".join(part for part in tail if part)


def _number(numbers: Numbers) -> str:
    if numbers.micro:
        return {"nvfp4": "4-bit floating-point (NVFP4)", "mxfp4": "4-bit floating-point (MXFP4)"}[
            numbers.micro
        ]
    if numbers.type == "codebook":
        return f"{numbers.bits}-bit codebook"
    if numbers.type == "float":
        return f"{numbers.bits}-bit floating-point"
    return f"{numbers.bits}-bit integer"


def _scope(numbers: Numbers) -> str:
    if numbers.block_shape:
        return "in blocks of " + " x ".join(map(str, numbers.block_shape))
    if numbers.strategy in ("group", "tensor_group") and numbers.group_size:
        return f"in groups of {numbers.group_size}"
    return {
        "tensor": "with one scale per tensor",
        "channel": "with one scale per channel",
        "token": "with one scale per token",
    }.get(numbers.strategy or "", "")


def scheme_of(
    layers: Layers,
    *,
    method: str,
    ignored: list[str] | None = None,
    kv_cache_scheme: str | None = None,
    extra_words: str = "",
) -> Scheme:
    """Make the Scheme of one group of layers."""
    weights, activations = layers.weights, layers.activations
    return Scheme(
        scheme=short_name(weights, activations),
        method=method,
        format=layers.format,
        weight_bits=weights.bits,
        weight_type=weights.type if weights.type in ("int", "float") else None,
        strategy=weights.strategy,
        group_size=weights.group_size,
        block_shape=weights.block_shape,
        symmetric=weights.symmetric,
        act_order=weights.act_order,
        activation_bits=activations.bits if activations else 16,
        activation_type=activations.type if activations else "float",
        activation_dynamic=activations.dynamic if activations else None,
        activation_strategy=activations.strategy if activations else None,
        kv_cache_scheme=kv_cache_scheme,
        ignored=ignored or [],
        targets=layers.targets,
        words=words_of(weights, activations) + extra_words,
    )


def scheme_of_groups(
    groups: list[Layers],
    *,
    method: str,
    format: str | None = None,
    ignored: list[str] | None = None,
    kv_cache_scheme: str | None = None,
    extra_words: str = "",
) -> Scheme:
    """Make the Scheme of several groups; equal ones count as one, different ones are mixed."""
    schemes = [scheme_of(group, method=method) for group in groups]
    common = {"format": format, "ignored": ignored or [], "kv_cache_scheme": kv_cache_scheme}
    if len({scheme.words + str(scheme.format) for scheme in schemes}) == 1:
        targets = [target for scheme in schemes for target in scheme.targets]
        one = schemes[0]
        return one.model_copy(
            update={
                **common,
                "format": one.format or format,
                "targets": targets,
                "words": one.words + extra_words,
            }
        )
    names = {scheme.scheme for scheme in schemes}
    sentences = [f"{_targets(s.targets)}: {s.words}" for s in schemes]
    shown = " | ".join(sentences[:MIXED_WORDS])
    more = f" | and {len(sentences) - MIXED_WORDS} more" if len(sentences) > MIXED_WORDS else ""
    same = {
        name: getattr(schemes[0], name)
        for name in ("weight_bits", "weight_type", "activation_bits", "activation_type")
        if len({getattr(scheme, name) for scheme in schemes}) == 1
    }
    return Scheme(
        scheme=names.pop() if len(names) == 1 else "mixed",
        method=method,
        **common,
        **same,
        groups=schemes,
        words=f"mixed precision: {shown}{more}{extra_words}",
    )


def _targets(names: list[str]) -> str:
    """Name a group's layers: Linear is a class, the others are names or patterns."""
    if not names or names == ["Linear"]:
        return "other layers"
    shown = ", ".join(name.removeprefix("re:") for name in names[:2])
    return f"{shown} and {len(names) - 2} more" if len(names) > 2 else shown


def unquantized(dtype: str | None) -> Scheme:
    """Return the Scheme of a checkpoint without quantization; None: its dtype is unknown."""
    names = {"bfloat16": ("bf16", 16), "float16": ("fp16", 16), "float32": ("fp32", 32)}
    if dtype not in names:
        said = f"of dtype {dtype}" if dtype else "of a dtype that config.json does not say"
        return Scheme(scheme="unknown", words=f"not quantized; weights {said}")
    name, bits = names[dtype]
    return Scheme(
        scheme=name,
        weight_bits=bits,
        weight_type="float",
        activation_bits=bits,
        activation_type="float",
        words=f"{bits}-bit weights and activations ({dtype}), not quantized",
    )


def unknown(method: str, why: str) -> Scheme:
    """Return the Scheme of a quantization that we have no rule for."""
    return Scheme(scheme="unknown", method=method, words=why)
