"""compressed-tensors' ``quantization_config`` to a Scheme."""

from __future__ import annotations

from typing import Any

from scripts.lib.checkpoints import words
from scripts.lib.checkpoints.manifest import Scheme
from scripts.lib.checkpoints.words import Layers, Numbers

Settings = dict[str, Any]
MXFP4_GROUP = 32


def read_compressed_tensors(settings: Settings) -> Scheme:
    """Return the Scheme of a compressed-tensors configuration; each config group is one group.

    A mixed checkpoint names a format per group; older ones one format for all.
    """
    format = settings.get("format")
    groups = [
        _group(group, format)
        for group in (settings.get("config_groups") or {}).values()
        if group.get("weights")
    ]
    ignored = list(settings.get("ignore") or [])
    kv = kv_cache_words(settings.get("kv_cache_scheme"))
    sparse = _sparsity_words(settings.get("sparsity_config"))
    if not groups:
        said = f"compressed-tensors without quantized weights{sparse or ''}"
        return words.unknown("compressed-tensors", said)
    return words.scheme_of_groups(
        groups,
        method="compressed-tensors",
        format=format,
        ignored=ignored,
        kv_cache_scheme=kv,
        extra_words=sparse + (f"; KV cache {kv}" if kv else ""),
    )


def _group(group: Settings, format: str | None) -> Layers:
    format = group.get("format") or format
    activations = group.get("input_activations")
    return Layers(
        weights=_numbers(group["weights"], format),
        activations=_numbers(activations, format, activations=True) if activations else None,
        targets=[str(target) for target in group.get("targets") or []],
        format=format,
    )


def _numbers(settings: Settings, format: str | None, *, activations: bool = False) -> Numbers:
    bits = settings.get("num_bits")
    if not isinstance(bits, int):
        raise ValueError("num_bits is missing")
    type_ = str(settings.get("type", "int"))
    group = settings.get("group_size")
    group = group if isinstance(group, int) and group > 0 else None
    strategy = settings.get("strategy") or ("group" if group else "tensor")
    act_order = settings.get("actorder")
    grouped = strategy == "group" and type_ == "int" and not activations
    return Numbers(
        bits=bits,
        type=type_,
        strategy=strategy,
        group_size=group,
        block_shape=settings.get("block_structure") if strategy == "block" else None,
        symmetric=settings.get("symmetric"),
        # "local": only the group scales are made on the way, the global one is stored.
        dynamic=bool(settings.get("dynamic")) if activations else None,
        act_order=act_order in ("group", "dynamic", True) if grouped else None,
        micro=_micro(bits, type_, strategy, group, format),
    )


def _micro(
    bits: int, type_: str, strategy: str, group: int | None, format: str | None
) -> str | None:
    if bits != 4 or type_ != "float":
        return None
    if (format or "").startswith("mxfp4") or (strategy == "group" and group == MXFP4_GROUP):
        return "mxfp4"
    return "nvfp4"


def kv_cache_words(scheme: Any) -> str | None:  # noqa: ANN401 - JSON as found
    """Return a ``kv_cache_scheme`` in words, e.g. "fp8, one scale per tensor, static"."""
    if not isinstance(scheme, dict) or not scheme.get("num_bits"):
        return None
    name = "fp" if scheme.get("type") == "float" else "int"
    strategy = scheme.get("strategy") or "tensor"
    dynamic = "dynamic" if scheme.get("dynamic") else "static"
    return f"{name}{scheme['num_bits']}, one scale per {strategy}, {dynamic}"


def _sparsity_words(settings: Any) -> str:  # noqa: ANN401 - JSON as found
    if not isinstance(settings, dict) or settings.get("format") in (None, "dense"):
        return ""
    structure = settings.get("sparsity_structure")
    return f"; sparse{f' ({structure})' if structure else ''}"
