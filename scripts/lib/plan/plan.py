"""What a variant would be before anything is loaded: its path, its memory, its cost."""

from __future__ import annotations

from pathlib import Path

from scripts.lib.plan.cost import Work, hours_of, work_of
from scripts.lib.plan.draft import Draft, make_draft, sentence
from scripts.lib.plan.gpus import GIB
from scripts.lib.plan.memory import rotary_bytes
from scripts.lib.plan.models import Estimate, Plan
from scripts.lib.plan.roofline import compute_bound_from, tpot_floor
from scripts.lib.plan.shapes import why_not_countable
from scripts.lib.plan.warnings import warnings_of
from scripts.lib.study.models import Study
from scripts.lib.telemetry.host import Host


def plan_variant(
    study: Study,
    variant: str,
    host: Host | None,
    *,
    version: str | None = None,
    root: Path = Path(),
) -> Plan:
    """Plan one variant of a study; no weights are fetched or loaded.

    Args:
        study: The study.
        variant: The variant's name.
        host: The machine; the study's ``host`` comes before it.
        version: The engine's version; else what its lock pins, else the latest rules.
        root: The project, for counting probe items.

    Raises:
        PlanError: The study names a GPU that is not in the table.
    """
    draft = make_draft(study, variant, host, version)
    work = work_of(study, variant, root)
    found = _estimates(study, draft, work)
    fits, fits_why = _fits(draft)
    plan = Plan(
        variant=variant,
        device=draft.device.name,
        expected=draft.expected,
        promised_scheme=draft.scheme.scheme if draft.scheme else None,
        scheme_words=draft.scheme.words if draft.scheme else "",
        facts_source=draft.facts.source,
        engine_version=draft.version,
        gpus=0 if draft.device.kind == "cpu" else draft.settings.gpus,
        max_model_len=draft.length,
        ideal_weight_bytes=draft.weights.ideal if draft.weights else None,
        real_weight_bytes=draft.weights.real if draft.weights else None,
        kv_bytes_per_token=draft.kv.bytes_per_token,
        fits=fits,
        fits_why=fits_why,
        server_starts=work.server_starts,
        requests=work.requests,
        warnings=warnings_of(study, variant, draft, host, version, work),
        not_estimated={name: why for name, why in found.items() if isinstance(why, str)},
    )
    return plan.model_copy(update={n: e for n, e in found.items() if isinstance(e, Estimate)})


def _estimates(study: Study, draft: Draft, work: Work) -> dict[str, Estimate | str]:
    """Return each estimate of a plan by its field, or why there is none."""
    floor, bound = _floor(draft), _bound(draft)
    hours = hours_of(study, work, _known(floor), _known(bound), on_cpu=draft.device.kind == "cpu")
    return {
        "tpot_floor_ms": floor,
        "compute_bound_from": bound,
        "hours": hours,
        "kv_cache_tokens": _tokens(draft),
        "max_concurrency": _concurrency(draft),
        "weights_gib": _weights_gib(draft),
        "cost_usd": _cost(study, hours),
    }


def _known(found: Estimate | str) -> Estimate | None:
    return None if isinstance(found, str) else found


def _weights_gib(draft: Draft) -> Estimate | str:
    if draft.weights is None or draft.loaded is None:
        return _why_no_weights(draft)
    how = f"{draft.weights.how}, and the table of rotary positions"
    if rotary_bytes(draft.facts.shape, draft.length) is None:
        how = f"{draft.weights.how}; without the table of rotary positions, which is not known"
    if draft.settings.tensor_parallel * draft.settings.pipeline_parallel > 1:
        how += "; per GPU"
    return Estimate(value=round(draft.loaded / GIB, 4), unit="GiB", how=how)


def _why_no_weights(draft: Draft) -> str:
    if draft.facts.missing:
        return draft.facts.missing
    scheme, shape = draft.scheme, draft.facts.shape
    if scheme and (scheme.groups or scheme.scheme in ("unknown", "mixed")):
        return "the size of the weights is not known for this scheme until they are on disk"
    if draft.facts.counts is not None:
        return "how many scales this scheme stores is not known until the weights are on disk"
    return (why_not_countable(shape) if shape else None) or "the weights are not known"


def _tokens(draft: Draft) -> Estimate | str:
    tokens = draft.tokens
    if draft.kv.bytes_per_token is None:
        return draft.facts.missing or draft.kv.how
    if isinstance(draft.room, str):
        return _why_no_weights(draft) if draft.weights is None else draft.room
    if tokens is None:
        return draft.kv.how
    how = f"({draft.room.how}) / ({draft.kv.how})"
    return Estimate(value=float(tokens), unit="tokens", how=how)


def _concurrency(draft: Draft) -> Estimate | str:
    tokens = draft.tokens
    if tokens is None:
        found = _tokens(draft)
        return found if isinstance(found, str) else "the KV cache is not known"
    if not draft.length:
        return "the longest request is not known"
    how = f"KV cache tokens / {draft.length} tokens per request"
    return Estimate(value=round(tokens / draft.length, 2), unit="requests", how=how)


def _floor(draft: Draft) -> Estimate | str:
    if draft.weights is None:
        return _why_no_weights(draft)
    return tpot_floor(draft.device, draft.weights, draft.settings, draft.facts.shape)


def _bound(draft: Draft) -> Estimate | str:
    if draft.weights is None:
        return _why_no_weights(draft)
    return compute_bound_from(
        draft.device,
        draft.weights,
        draft.facts.counts,
        draft.settings,
        draft.facts.shape,
        draft.expected,
    )


def _fits(draft: Draft) -> tuple[bool | None, str]:
    """Say whether the variant starts: GPUs, weights and one request of full length."""
    if draft.expected.kind == "unsupported":
        return False, draft.expected.why
    needed, present = draft.settings.gpus, draft.device.count
    if draft.device.kind in ("cuda", "rocm") and needed > present:
        return False, f"It needs {needed} GPUs and the machine has {present}."
    if isinstance(draft.room, str):
        return None, sentence(_why_no_weights(draft) if draft.weights is None else draft.room)
    if draft.device.kind == "cpu" and draft.loaded is not None and draft.device.memory_bytes:
        need = draft.loaded + max(0, draft.room.bytes)
        if need > draft.device.memory_bytes:
            have = draft.device.memory_bytes / GIB
            return False, f"Weights and KV cache need {need / GIB:.1f} GiB of {have:.1f} GiB."
    if draft.room.bytes <= 0:
        short = -draft.room.bytes / GIB
        return False, f"Weights and activations alone need {short:.1f} GiB more than there is."
    return _fits_length(draft)


def _fits_length(draft: Draft) -> tuple[bool | None, str]:
    tokens = draft.tokens
    if tokens is None:
        return None, sentence(draft.kv.how)
    if draft.length and tokens < draft.length:
        return False, (
            f"The KV cache would hold {tokens:,} tokens, less than one request of "
            f"{draft.length:,}; set max_model_len to {tokens} at most."
        )
    return True, f"The KV cache would hold {tokens:,} tokens."


def _cost(study: Study, hours: Estimate | str) -> Estimate | str:
    if isinstance(hours, str):
        return hours
    if study.price is None:
        return "the study gives no price"
    value = round(hours.value * study.price.usd_per_hour, 2)
    return Estimate(value=value, unit="USD", how=f"hours x {study.price.usd_per_hour:g} USD/h")
