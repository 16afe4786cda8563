"""What is known of a checkpoint before its weights are fetched or made."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from scripts.lib.base.schema import Strict
from scripts.lib.checkpoints.errors import CheckpointError
from scripts.lib.checkpoints.manifest import Manifest, Scheme, Shape, TensorSummary
from scripts.lib.checkpoints.presets import PRESET_GROUP, PRESETS
from scripts.lib.checkpoints.scheme import read_scheme, read_tensors, scheme_from_config
from scripts.lib.checkpoints.shape import read_shape, shape_from_config
from scripts.lib.plan.shapes import Counts, count
from scripts.lib.plan.tables import reference
from scripts.lib.study.models import Checkpoint, HubSource, PackageSource, QuantizeSource, Study

NOT_KNOWN = "not known until the checkpoint is fetched"
DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


class Facts(Strict):
    """A checkpoint as far as it is known without its weights."""

    shape: Shape | None = None
    scheme: Scheme | None = None
    tensors: TensorSummary | None = Field(default=None, description="From the headers.")
    dummy: bool = False
    source: str = Field(description="Where the facts come from.")
    missing: str | None = Field(default=None, description="What is not known, and why.")

    @property
    def counts(self) -> Counts | None:
        """Parameters by use; None: not countable from the shape."""
        return count(self.shape) if self.shape else None


def facts_of(study: Study, checkpoint: str) -> Facts:
    """Return what is known of a study's checkpoint; nothing but a ``config.json`` is fetched."""
    source = study.checkpoints[checkpoint]
    if source.quantize:
        return _made(facts_of(study, source.quantize.from_), source.quantize)
    if source.hub:
        return _hub(source.hub)
    if source.package:
        return _package(source.package)
    return _folder(source)


def facts_of_manifest(manifest: Manifest) -> Facts:
    """Return the facts of a checkpoint that is on disk."""
    return Facts(
        shape=manifest.shape,
        scheme=manifest.scheme,
        tensors=manifest.tensors,
        dummy=manifest.dummy_weights,
        source=f"the manifest of {manifest.name}",
    )


def _folder(source: Checkpoint) -> Facts:
    folder = Path(source.dummy.config if source.dummy else source.path or "")
    try:
        return Facts(
            shape=read_shape(folder),
            scheme=read_scheme(folder),
            tensors=read_tensors(folder),
            dummy=source.dummy is not None,
            source=f"{folder}/config.json",
        )
    except CheckpointError as error:
        return Facts(source=str(folder), missing=str(error), dummy=source.dummy is not None)


def _hub(source: HubSource) -> Facts:
    rows = [row for row in _known()["checkpoints"] if row.get("repo") == source.repo]
    exact = [row for row in rows if row.get("revision") in (None, source.revision)]
    if exact:
        return _from_row(exact[0])
    config = _hub_config(source.repo, source.revision)
    if config is not None:
        return Facts(
            shape=shape_from_config(config),
            scheme=scheme_from_config(config),
            source=f"config.json of {source.repo} at {source.revision}",
        )
    return Facts(
        source=f"{source.repo} at {source.revision}",
        missing=f"{NOT_KNOWN} ({source.repo} at this commit is not in the table of known models, "
        "and its config.json could not be read from the hub)",
    )


@cache
def _hub_config(repo: str, revision: str) -> dict[str, Any] | None:
    """Read ``config.json`` from the local cache, or fetch these few kilobytes once.

    Any failure means that it is not known yet, and that the rest is planned: no retries.
    """
    import httpx
    from huggingface_hub import constants, get_token, hf_hub_url, try_to_load_from_cache

    name = "config.json"
    cached = try_to_load_from_cache(repo, name, revision=revision)
    try:
        if isinstance(cached, str):
            config = json.loads(Path(cached).read_text(encoding="utf-8"))
        elif constants.HF_HUB_OFFLINE:
            return None
        else:
            token = get_token()
            reply = httpx.get(
                hf_hub_url(repo, name, revision=revision),
                headers={"Authorization": f"Bearer {token}"} if token else {},
                follow_redirects=True,
                timeout=5,
            )
            reply.raise_for_status()
            config = reply.json()
    except (httpx.HTTPError, OSError, ValueError):
        return None
    return config if isinstance(config, dict) else None


def _package(source: PackageSource) -> Facts:
    name = source.distribution.partition("==")[0].strip()
    for row in _known()["checkpoints"]:
        if row.get("distribution") == name and row.get("file") == source.file:
            return _from_row(row, dtype=source.dtype)
    return Facts(
        source=f"{source.file} in {source.distribution}",
        missing=f"{NOT_KNOWN} ({source.file} is not in the table of known models)",
    )


def _made(base: Facts, source: QuantizeSource) -> Facts:
    """Derive what llm-compressor would make: the base's shape in the preset's scheme."""
    preset = PRESETS[source.scheme]
    active = source.scheme in ("W8A8", "FP8_DYNAMIC", "FP8")
    scheme = Scheme(
        scheme=preset.scheme,
        method="compressed-tensors",
        weight_bits=preset.bits,
        weight_type=preset.type,
        strategy=preset.strategy,
        group_size=(source.group_size or PRESET_GROUP) if preset.grouped else None,
        symmetric=True,
        act_order=False,
        activation_bits=preset.bits if active else 16,
        activation_type=preset.type if active else "float",
        activation_dynamic=source.scheme != "FP8" if active else None,
        activation_strategy=("tensor" if source.scheme == "FP8" else "token") if active else None,
        ignored=source.ignore,
        words=preset.words,
    )
    where = f"{base.source}, quantized by llm-compressor ({source.scheme}, {source.method})"
    return Facts(shape=base.shape, scheme=scheme, source=where, missing=base.missing)


def _known() -> dict[str, Any]:
    tables: dict[str, Any] = reference("known_models")
    return tables


def _from_row(row: dict[str, Any], dtype: str | None = None) -> Facts:
    tables = _known()
    family = tables["architectures"][row["architecture"]]
    shape = Shape.model_validate(family["shape"])
    dtype = dtype or row.get("dtype")
    if dtype:
        shape = shape.model_copy(update={"dtype": dtype})
    scheme = Scheme.model_validate(tables["schemes"][row["scheme"]])
    if scheme.method is None and dtype:
        words = f"16-bit weights and activations ({dtype}), not quantized"
        scheme = scheme.model_copy(update={"scheme": DTYPES[dtype], "words": words})
    return Facts(shape=shape, scheme=scheme, source=f"{row['source']}; {family['source']}")
