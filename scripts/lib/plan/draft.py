"""Brings together what is known of one variant: checkpoint, settings, device, memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from scripts.lib.checkpoints.manifest import Manifest, Scheme
from scripts.lib.plan.facts import DTYPES, Facts, facts_of, facts_of_manifest
from scripts.lib.plan.flags import Settings, engine_version
from scripts.lib.plan.gpus import Device, device_of
from scripts.lib.plan.memory import (
    BLOCK,
    CPU_BLOCK,
    Kv,
    Room,
    Weights,
    cpu_room,
    given_room,
    gpu_room,
    kv_of,
    kv_tokens,
    loaded_bytes,
    max_length,
    split_fault,
    weights_of,
)
from scripts.lib.plan.models import ExpectedPath
from scripts.lib.plan.rules import Case, expected_path
from scripts.lib.plan.shapes import linear_layers
from scripts.lib.study.models import Study
from scripts.lib.telemetry.host import Host

ONLINE = {
    "fp8": ("w8a8-fp8", 8, "float"),
    "fp8_per_tensor": ("w8a8-fp8", 8, "float"),
    "int8_per_channel_weight_only": ("w8a16-int8", 8, "int"),
}
"""Methods that quantize unquantized weights while loading (vLLM's online quantization)."""


@dataclass
class Draft:
    """What is known of one variant on the way to its plan."""

    settings: Settings
    device: Device
    version: str | None
    facts: Facts
    scheme: Scheme | None
    expected: ExpectedPath
    weights: Weights | None = None
    loaded: int | None = None
    kv: Kv = field(default_factory=lambda: Kv(None, "the shape of the model is not known"))
    room: Room | str = "the weights are not known"
    """What is left for the KV cache, or what of it is not known."""
    length: int | None = None

    @property
    def tokens(self) -> int | None:
        """Tokens that the KV cache would hold, of one replica."""
        if isinstance(self.room, str) or self.kv.bytes_per_token is None:
            return None
        block = self.settings.whole("block-size")
        block = block or (CPU_BLOCK if self.device.kind == "cpu" else BLOCK)
        blocks = self.settings.whole("num-gpu-blocks-override")
        if blocks is not None:
            return blocks * block
        return kv_tokens(self.room, self.kv.bytes_per_token, block)


def make_draft(
    study: Study,
    variant: str,
    host: Host | None,
    version: str | None,
    *,
    manifest: Manifest | None = None,
) -> Draft:
    """Resolve one variant of a study on a machine; see ``plan_variant``."""
    engine = study.engine_of(variant)
    settings = Settings(study.variants[variant], engine)
    device = device_of(host, study.host, engine)
    version = version or engine_version(study, variant)
    if manifest is not None:
        facts = facts_of_manifest(manifest)
    else:
        facts = facts_of(study, study.variants[variant].checkpoint)
    scheme = served_scheme(facts.scheme, settings)
    expected = _expected(facts, scheme, settings, device, version)
    draft = Draft(settings, device, version, facts, scheme, expected)
    tensors = facts.tensors if scheme == facts.scheme else None
    draft.weights = weights_of(facts.model_copy(update={"scheme": scheme, "tensors": tensors}))
    draft.length = max_length(settings, facts.shape)
    draft.kv = kv_of(facts.shape, scheme, settings)
    if draft.weights:
        draft.loaded = loaded_bytes(draft.weights, facts.shape, settings, draft.length or 0)
        draft.room = _room(draft)
    return draft


def served_scheme(scheme: Scheme | None, settings: Settings) -> Scheme | None:
    """Return the scheme that the settings ask for: the checkpoint's, in the dtype they name.

    ``--quantization fp8`` on an unquantized checkpoint quantizes while loading; ``--dtype``
    changes what unquantized weights are loaded as, and without it 32-bit ones are loaded in 16
    bits (vllm/config/model.py, _resolve_auto_dtype).
    """
    if scheme is None or scheme.method is not None:
        return scheme
    online = ONLINE.get(settings.quantization or "")
    if online:
        name, bits, kind = online
        words = f"{scheme.words}; quantized while loading by --quantization {settings.quantization}"
        update: dict[str, object] = {
            "scheme": name,
            "method": settings.quantization,
            "weight_bits": bits,
            "weight_type": kind,
            "strategy": "tensor" if name == "w8a8-fp8" else "channel",
            "symmetric": True,
            "words": words,
        }
        return scheme.model_copy(update=update)
    dtype = {"half": "float16", "float": "float32"}.get(settings.dtype or "", settings.dtype)
    if dtype is None and scheme.scheme == "fp32":
        dtype = "bfloat16"
    if dtype in DTYPES and DTYPES[dtype] != scheme.scheme:
        words = f"{scheme.words}; loaded as {dtype}"
        bits = 32 if dtype == "float32" else 16
        update = {"scheme": DTYPES[dtype], "words": words, "weight_bits": bits}
        return scheme.model_copy(update=update)
    return scheme


def _expected(
    facts: Facts, scheme: Scheme | None, settings: Settings, device: Device, version: str | None
) -> ExpectedPath:
    if scheme is None:
        why = facts.missing or "The checkpoint's scheme is not known."
        return ExpectedPath(kind="unknown", scheme="unknown", why=sentence(why))
    shape, tp = facts.shape, settings.tensor_parallel
    fault = split_fault(shape, tp) if shape else None
    if fault:
        source = "vllm/config/model.py, verify_with_parallel_config"
        why = sentence(fault)
        return ExpectedPath(kind="unsupported", scheme=scheme.scheme, why=why, source=source)
    dtype = settings.dtype or (shape.dtype if shape else None)
    dtype = {"half": "float16"}.get(dtype or "", dtype)
    case = Case(
        scheme=scheme,
        device=device,
        version=version,
        layers=linear_layers(shape, tp) if shape else None,
        dtype=DTYPES.get(dtype or ""),
        forced=settings.quantization,
        tensor_parallel=tp,
        environment=settings.environment,
    )
    return expected_path(case)


def _room(draft: Draft) -> Room | str:
    assert draft.loaded is not None
    if draft.device.kind == "cpu":
        return cpu_room(draft.device, draft.loaded, draft.settings, draft.version)
    if given := given_room(draft.settings):
        return given
    shape = draft.facts.shape
    if shape is None:
        return "the shape of the model is not known"
    return gpu_room(draft.device, draft.loaded, shape, draft.settings, draft.version)


def sentence(text: str) -> str:
    """Return ``text`` with a capital letter and a full stop."""
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!")) else text + "."
