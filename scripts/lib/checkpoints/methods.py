"""One reader per quantization method: its settings in ``config.json`` to a Scheme.

The keys are those the libraries write: GPTQModel/AutoGPTQ, AutoAWQ, bitsandbytes, AutoRound,
AQLM, ModelOpt and vLLM's own fp8 and mxfp4. compressed-tensors has a module of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from scripts.lib.checkpoints import words
from scripts.lib.checkpoints.compressed import kv_cache_words, read_compressed_tensors
from scripts.lib.checkpoints.manifest import Scheme
from scripts.lib.checkpoints.words import Layers, Numbers

Settings = dict[str, Any]


def scheme_of_settings(settings: Settings) -> Scheme:
    """Return the Scheme that a ``quantization_config`` describes."""
    method = method_of(settings)
    reader = READERS.get(method)
    if reader is None:
        return words.unknown(method, f"quantized by {method}, for which there is no rule here")
    return reader(settings)


def method_of(settings: Settings) -> str:
    """Return the quantization method; where the file does not name it, its keys tell."""
    named = settings.get("quant_method")
    if named:
        return str(named).lower()
    for key, method in (
        ("config_groups", "compressed-tensors"),
        ("quantization", "modelopt"),
        ("quant_algo", "modelopt"),
        ("w_bit", "awq"),
        ("desc_act", "gptq"),
        ("load_in_4bit", "bitsandbytes"),
        ("load_in_8bit", "bitsandbytes"),
    ):
        if key in settings:
            return method
    return "unnamed method"


def _read_gptq(settings: Settings) -> Scheme:
    """GPTQ; GPTQModel's ``dynamic`` maps patterns to other settings, ``-:`` ones to none."""
    default = _integer_weights(settings)
    groups, ignored = [Layers(default)], list(settings.get("modules_in_block_to_quantize_not", []))
    for pattern, override in (settings.get("dynamic") or {}).items():
        name = pattern.removeprefix("+:")
        if pattern.startswith("-:"):
            ignored.append("re:" + pattern.removeprefix("-:"))
        elif override:
            weights = _integer_weights({**settings, **override})
            groups.append(Layers(weights, targets=[f"re:{name}"]))
    groups = [group for group in groups if group.targets == [] or group.weights != default]
    version = settings.get("checkpoint_format")
    return words.scheme_of_groups(groups, method="gptq", format=version, ignored=ignored)


def _integer_weights(settings: Settings) -> Numbers:
    bits, group = settings.get("bits"), settings.get("group_size")
    if not isinstance(bits, int):
        raise ValueError("bits is missing")
    per_channel = group in (-1, None)
    return Numbers(
        bits=bits,
        type="int",
        strategy="channel" if per_channel else "group",
        group_size=None if per_channel else group,
        symmetric=settings.get("sym"),
        act_order=settings.get("desc_act"),
    )


def _read_awq(settings: Settings) -> Scheme:
    bits = settings.get("bits", settings.get("w_bit"))
    group = settings.get("group_size", settings.get("q_group_size"))
    zero_point = settings.get("zero_point")
    weights = _integer_weights(
        {
            "bits": bits,
            "group_size": group,
            "sym": None if zero_point is None else not zero_point,
        }
    )
    version = settings.get("version")
    return words.scheme_of(
        Layers(weights, format=version.lower() if isinstance(version, str) else None),
        method="awq",
        ignored=settings.get("modules_to_not_convert"),
    )


def _read_fp8(settings: Settings) -> Scheme:
    """The fp8 of vLLM and DeepSeek: per tensor, or in blocks with ``weight_block_size``."""
    block = settings.get("weight_block_size")
    dynamic = settings.get("activation_scheme", "dynamic") == "dynamic"
    weights = Numbers(8, "float", "block" if block else "tensor", block_shape=block)
    if block:
        activations = Numbers(8, "float", "group", group_size=block[-1], dynamic=True)
    else:
        activations = Numbers(8, "float", None if dynamic else "tensor", dynamic=dynamic)
    return words.scheme_of(
        Layers(weights, activations),
        method="fp8",
        ignored=settings.get("ignored_layers") or settings.get("modules_to_not_convert"),
    )


def _read_fbgemm_fp8(settings: Settings) -> Scheme:
    layers = Layers(Numbers(8, "float", "channel"), Numbers(8, "float", "token", dynamic=True))
    ignored = settings.get("modules_to_not_convert")
    return words.scheme_of(layers, method="fbgemm_fp8", ignored=ignored)


def _read_bitsandbytes(settings: Settings) -> Scheme:
    ignored = settings.get("llm_int8_skip_modules")
    if settings.get("load_in_4bit") or settings.get("_load_in_4bit"):
        kind = settings.get("bnb_4bit_quant_type", "fp4")
        nested = settings.get("bnb_4bit_use_double_quant")
        note = f"{kind.upper()}{', scales quantized again' if nested else ''}"
        weights = Numbers(4, "float", "group", group_size=64, note=note)
        return words.scheme_of(Layers(weights, format=kind), method="bitsandbytes", ignored=ignored)
    if settings.get("load_in_8bit") or settings.get("_load_in_8bit"):
        layers = Layers(
            Numbers(8, "int", "channel", symmetric=True),
            Numbers(8, "int", "token", dynamic=True, note="outliers in 16 bits (LLM.int8())"),
        )
        return words.scheme_of(layers, method="bitsandbytes", ignored=ignored)
    return words.unknown("bitsandbytes", "bitsandbytes with neither load_in_4bit nor load_in_8bit")


def _read_mxfp4(settings: Settings) -> Scheme:
    weights = Numbers(4, "float", "group", group_size=32, micro="mxfp4")
    return words.scheme_of(
        Layers(weights), method="mxfp4", ignored=settings.get("modules_to_not_convert")
    )


def _read_auto_round(settings: Settings) -> Scheme:
    """AutoRound; ``extra_config`` holds layers with other bits, 16 meaning not quantized."""
    data_type = str(settings.get("data_type", "int"))
    method = "auto-round"
    if data_type not in ("int", "int_sym", "int_asym"):
        return words.unknown(method, f"AutoRound with data type {data_type}: no rule here")
    activations = None
    if (settings.get("act_bits") or 16) < 16:
        activations = Numbers(
            settings["act_bits"], "int", "token", dynamic=settings.get("act_dynamic", True)
        )
    default = _integer_weights(settings)
    groups, ignored = [Layers(default, activations)], []
    for name, override in (settings.get("extra_config") or {}).items():
        if override.get("bits", settings["bits"]) >= 16:
            ignored.append(name)
            continue
        weights = _integer_weights({**settings, **override})
        if weights != default:
            groups.append(Layers(weights, activations, targets=[name]))
    packing = settings.get("packing_format") or settings.get("backend")
    return words.scheme_of_groups(groups, method=method, format=packing, ignored=ignored)


def _read_aqlm(settings: Settings) -> Scheme:
    """AQLM: bits of a weight = codebooks x bits of a code / weights that share a code."""
    books, code = settings.get("num_codebooks", 1), settings.get("nbits_per_codebook", 16)
    shared = settings.get("in_group_size", 8) * settings.get("out_group_size", 1)
    weights = Numbers(
        max(1, round(books * code / shared)),
        "codebook",
        "group",
        group_size=settings.get("in_group_size", 8),
        note=f"AQLM {books}x{code}",
    )
    ignored = settings.get("linear_weights_not_to_quantize")
    return words.scheme_of(Layers(weights), method="aqlm", ignored=ignored)


MODELOPT_LAYERS = {
    "FP8": Layers(Numbers(8, "float", "tensor"), Numbers(8, "float", "tensor", dynamic=False)),
    "FP8_PER_CHANNEL_PER_TOKEN": Layers(
        Numbers(8, "float", "channel"), Numbers(8, "float", "token", dynamic=True)
    ),
    "FP8_PB_WO": Layers(Numbers(8, "float", "block", block_shape=[128, 128])),
    "NVFP4": Layers(
        Numbers(4, "float", "group", group_size=16, micro="nvfp4"),
        Numbers(4, "float", "group", group_size=16, micro="nvfp4", dynamic=True),
    ),
    "W4A16_NVFP4": Layers(Numbers(4, "float", "group", group_size=16, micro="nvfp4")),
    "INT4_AWQ": Layers(Numbers(4, "int", "group", group_size=128)),
    "W4A16_AWQ": Layers(Numbers(4, "int", "group", group_size=128)),
    "W8A16": Layers(Numbers(8, "int", "channel")),
    "MXFP4": Layers(Numbers(4, "float", "group", group_size=32, micro="mxfp4")),
}
MODELOPT_LAYERS["W8A8_FP8"] = MODELOPT_LAYERS["FP8"]
MODELOPT_LAYERS["NVFP4_AWQ"] = MODELOPT_LAYERS["NVFP4"]


def _read_modelopt(settings: Settings) -> Scheme:
    """ModelOpt: ``hf_quant_config.json`` nests what ``config.json`` holds flat.

    A mixed checkpoint lists its layers with their algorithms, or groups of them as
    compressed-tensors does.
    """
    inner = settings.get("quantization", settings)
    algorithm = str(inner.get("quant_algo") or "").upper()
    ignored = list(inner.get("exclude_modules") or inner.get("ignore") or [])
    kv = inner.get("kv_cache_quant_algo")
    kv = str(kv).lower() if kv else kv_cache_words(inner.get("kv_cache_scheme"))
    if algorithm == "MIXED_PRECISION" and inner.get("quantized_layers"):
        return _modelopt_mixed(inner["quantized_layers"], ignored, kv)
    if algorithm not in MODELOPT_LAYERS and inner.get("config_groups"):
        return read_compressed_tensors(inner).model_copy(
            update={"method": "modelopt", "kv_cache_scheme": kv}
        )
    layers = MODELOPT_LAYERS.get(algorithm)
    if layers is None:
        said = algorithm or "no quant_algo"
        return words.unknown("modelopt", f"ModelOpt with {said}, for which there is no rule here")
    return words.scheme_of(
        _regrouped(layers, inner.get("group_size")),
        method="modelopt",
        ignored=ignored,
        kv_cache_scheme=kv,
        extra_words=f"; KV cache {kv}" if kv else "",
    )


def _regrouped(layers: Layers, group_size: int | None) -> Layers:
    if not group_size or layers.weights.strategy != "group":
        return layers
    return replace(layers, weights=replace(layers.weights, group_size=group_size))


def _modelopt_mixed(by_layer: Settings, ignored: list[str], kv: str | None) -> Scheme:
    layers_of: dict[str, list[str]] = {}
    for layer, settings in by_layer.items():
        name = str(settings.get("quant_algo") or "UNQUANTIZED").upper()
        layers_of.setdefault(name, []).append(layer)
    ignored = ignored + layers_of.pop("UNQUANTIZED", [])
    unread = sorted(set(layers_of) - set(MODELOPT_LAYERS))
    if unread:
        said = f"ModelOpt, mixed with {', '.join(unread)}, for which there is no rule here"
        return words.unknown("modelopt", said)
    groups = [
        replace(MODELOPT_LAYERS[name], targets=names) for name, names in sorted(layers_of.items())
    ]
    return words.scheme_of_groups(groups, method="modelopt", ignored=ignored, kv_cache_scheme=kv)


READERS: dict[str, Callable[[Settings], Scheme]] = {
    "gptq": _read_gptq,
    "gptq_marlin": _read_gptq,
    "awq": _read_awq,
    "awq_marlin": _read_awq,
    "compressed-tensors": read_compressed_tensors,
    "sparseml": read_compressed_tensors,
    "fp8": _read_fp8,
    "fbgemm_fp8": _read_fbgemm_fp8,
    "bitsandbytes": _read_bitsandbytes,
    "mxfp4": _read_mxfp4,
    "gpt_oss_mxfp4": _read_mxfp4,
    "modelopt": _read_modelopt,
    "modelopt_fp4": _read_modelopt,
    "auto-round": _read_auto_round,
    "intel/auto-round": _read_auto_round,
    "inc": _read_auto_round,
    "aqlm": _read_aqlm,
}
