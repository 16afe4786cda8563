"""Where ``config.json`` and the tensors of a checkpoint say different things."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sized

from scripts.lib.checkpoints.layers import Layer
from scripts.lib.checkpoints.manifest import Scheme, Shape
from scripts.lib.checkpoints.names import SchemeByName
from scripts.lib.checkpoints.tensors import SAFETENSORS_DTYPES

KIND_WORDS = {
    "packed-int": "integers packed into words",
    "int8": "8-bit integers",
    "fp8": "8-bit floating point",
    "fp4": "4-bit floating point",
    "nf4": "bitsandbytes' 4-bit codes",
    "codebook": "codes of codebooks",
}


def disagreements(scheme: Scheme, shape: Shape, layers: list[Layer]) -> list[str]:
    """Return one sentence per disagreement; an empty list where all agree.

    What is compared: quantized at all, kind and bits and group size of each quantized layer,
    layers that are missing or wrongly left out, the dtype of the rest, the model's dimensions.
    """
    if not layers:
        return []
    quantized = [layer for layer in layers if layer.quantized]
    found = []
    if promises_quantization(scheme) and not quantized:
        found.append(_nothing_quantized(scheme, layers))
    elif quantized and scheme.method is None:
        found.append(_no_configuration(quantized))
    elif quantized:
        by_name = SchemeByName(scheme)
        found += _storage_differs(by_name, quantized)
        found += _ignored_yet_quantized(by_name, quantized)
        found += _left_out(by_name, layers)
    return found + _dtype_differs(shape, layers) + _dimensions_differ(shape, layers)


def promises_quantization(scheme: Scheme) -> bool:
    """Say if a configuration names a quantization of stored weights."""
    return scheme.method is not None


def should_be_quantized(layer: Layer, by_name: SchemeByName) -> bool:
    """Say if the configuration means this linear layer to be quantized."""
    return layer.linear and not by_name.ignores(layer.name)


def _nothing_quantized(scheme: Scheme, layers: list[Layer]) -> str:
    linear = [layer for layer in layers if layer.linear] or layers
    dtypes = ", ".join(sorted({layer.dtype for layer in linear}))
    return (
        f"config.json says {scheme.method} ({scheme.words}), but none of the {len(linear)} linear "
        f"layers is quantized: they are {dtypes} ({linear[0].name} first). An engine fails to load "
        "them, or serves them unquantized without a word: quantize the checkpoint, or remove its "
        "quantization_config"
    )


def _no_configuration(quantized: list[Layer]) -> str:
    kinds = ", ".join(sorted({KIND_WORDS[layer.kind] for layer in quantized}))
    return (
        f"{_layers_are(quantized)} stored as {kinds} ({quantized[0].name} first), but "
        "config.json has no quantization_config: an engine would read them as plain weights. "
        "Add the configuration that belongs to these weights"
    )


def expected_kinds(scheme: Scheme) -> set[str]:
    """Return the kinds of storage that fit a scheme; an empty set where that is not known."""
    if scheme.method == "bitsandbytes":
        return {"nf4"} if scheme.weight_bits == 4 else {"int8"}
    if scheme.method == "aqlm":
        return {"codebook"}
    if scheme.weight_type == "float":
        return {8: {"fp8"}, 4: {"fp4"}}.get(scheme.weight_bits or 0, set())
    if scheme.weight_type != "int":
        return set()
    if scheme.weight_bits == 8:
        return {"packed-int", "int8"}
    return {"packed-int"}


def _storage_differs(by_name: SchemeByName, quantized: list[Layer]) -> list[str]:
    """Compare kind, bits and group size of each layer; one sentence per kind of difference."""
    wrong: dict[str, list[str]] = {}
    for layer in quantized:
        own = by_name.of(layer.name)
        kinds = expected_kinds(own)
        if kinds and layer.kind not in kinds:
            said = f"{own.weight_bits}-bit {own.weight_type}"
            wrong.setdefault(f"{said} weights|{KIND_WORDS[layer.kind]}", []).append(layer.name)
        elif layer.bits and own.weight_bits and layer.bits != own.weight_bits:
            wrong.setdefault(f"{own.weight_bits} bits|{layer.bits:g} bits", []).append(layer.name)
        elif layer.group_size and own.group_size and layer.group_size != own.group_size:
            said, real = f"groups of {own.group_size}", f"groups of {layer.group_size}"
            wrong.setdefault(f"{said}|{real}", []).append(layer.name)
    return [
        f"config.json says {said.split('|')[0]}, but {_layers_are(names)} stored with "
        f"{said.split('|')[1]} ({names[0]} first): the configuration belongs to other weights"
        for said, names in wrong.items()
    ]


def _ignored_yet_quantized(by_name: SchemeByName, quantized: list[Layer]) -> list[str]:
    names = [layer.name for layer in quantized if by_name.ignores(layer.name)]
    if not names:
        return []
    return [
        f"{_layers_are(names)} stored quantized although config.json leaves them out "
        f"({names[0]} first): an engine will fail to load them or read them wrongly"
    ]


def _left_out(by_name: SchemeByName, layers: list[Layer]) -> list[str]:
    """Find plain layers whose namesakes are quantized in other blocks, and are not ignored."""
    usual = {layer.name.rpartition(".")[2] for layer in layers if layer.quantized}
    names = [
        layer.name
        for layer in layers
        if not layer.quantized
        and should_be_quantized(layer, by_name)
        and layer.name.rpartition(".")[2] in usual
    ]
    if not names:
        return []
    return [
        f"{_layers_are(names)} not quantized although config.json does not leave them out "
        f"({names[0]} first, {_dtype_of(layers, names[0])}): an engine expects them quantized"
    ]


def _layers_are(found: Sized) -> str:
    return "1 layer is" if len(found) == 1 else f"{len(found)} layers are"


def _dtype_of(layers: list[Layer], name: str) -> str:
    return next(layer.dtype for layer in layers if layer.name == name)


def _dtype_differs(shape: Shape, layers: list[Layer]) -> list[str]:
    expected = SAFETENSORS_DTYPES.get(shape.dtype or "")
    sizes: Counter[str] = Counter()
    for layer in layers:
        if not layer.quantized and layer.dtype in SAFETENSORS_DTYPES.values():
            sizes[layer.dtype] += layer.parameters
    if not expected or not sizes:
        return []
    real, _ = sizes.most_common(1)[0]
    if real == expected:
        return []
    return [
        f"config.json says dtype {shape.dtype}, but the unquantized weights are mostly {real}: "
        "an engine converts them when it loads, so size on disk and size in memory differ"
    ]


def _dimensions_differ(shape: Shape, layers: list[Layer]) -> list[str]:
    found = []
    for layer in layers:
        if layer.name.endswith(("embed_tokens", "wte", "word_embeddings")) and not layer.quantized:
            width = layer.shape[-1] if len(layer.shape) == 2 else None
            if "vis" not in layer.name and width and shape.hidden_size not in (None, width):
                found.append(
                    f"config.json says hidden_size {shape.hidden_size}, but {layer.name} is "
                    f"{' x '.join(map(str, layer.shape))}: config and weights are of two models"
                )
    blocks = _blocks(layers)
    if shape.layers and blocks and blocks < shape.layers:
        found.append(
            f"config.json says {shape.layers} layers, but the weights hold {blocks}: "
            "files are missing, or config and weights are of two models"
        )
    return found


def _blocks(layers: list[Layer]) -> int:
    """Count decoder blocks by the number behind ``layers.`` or ``h.`` in the names."""
    numbers = set()
    for layer in layers:
        parts = layer.name.split(".")
        for before, part in zip(parts, parts[1:], strict=False):
            if before in ("layers", "h", "blocks") and part.isdigit() and "vis" not in layer.name:
                numbers.add(int(part))
    return len(numbers)
