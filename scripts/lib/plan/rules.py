"""What should run: kernel rules by scheme, device, engine version and layer widths."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from packaging.version import Version
from pydantic import Field

from scripts.lib.base.schema import Strict
from scripts.lib.checkpoints.manifest import Scheme
from scripts.lib.plan.gpus import Device
from scripts.lib.plan.models import ExpectedPath
from scripts.lib.plan.shapes import Layer
from scripts.lib.plan.tables import in_range, parse_version, reference

Bounds = tuple[str | None, str | None]


class When(Strict):
    """The conditions of a rule; one that is left out holds always, one on an unknown never."""

    device: Literal["cuda", "rocm", "cpu"]
    schemes: list[str]
    methods: list[str] | None = None
    capability: Bounds | None = None
    architectures: list[str] | None = None
    forced: list[str] | None = None
    strategy: list[str] | None = None
    group_sizes: list[int] | None = None
    not_group_sizes: list[int] | None = None
    group_parity: Literal["even"] | None = None
    weight_bits: list[int] | None = None
    act_order: bool | None = None
    symmetric: bool | None = None
    dtype: list[str] | None = None
    cpu_flags: list[str] | None = None
    no_cpu_flags: list[str] | None = None
    split: bool | None = None
    unless_env: dict[str, str] | None = None


class Multiples(Strict):
    """Numbers of which a layer's widths per GPU must be multiples."""

    input: int
    output: int


class Rule(Strict):
    """One row of ``config/reference/kernel_rules.yaml``."""

    id: str
    since: str | None = None
    until: str | None = None
    when: When
    fits: Multiples | None = None
    breaks: Multiples | None = None
    kind: Literal["native", "degraded", "unsupported", "unknown"]
    scheme: str | None = None
    families: list[str] = []
    why: str
    source: str = Field(min_length=10)


@dataclass(frozen=True)
class Case:
    """What the rules are asked about."""

    scheme: Scheme
    device: Device
    version: str | None = None
    layers: list[Layer] | None = None
    """The linear layers, with widths per GPU; None: not known."""
    dtype: str | None = None
    """Of the activations: bf16 or fp16."""
    forced: str | None = None
    """The quantization method that the user named."""
    tensor_parallel: int = 1
    environment: dict[str, str] = field(default_factory=dict)


@cache
def kernel_rules() -> list[Rule]:
    """Return the table of rules, in the order in which they are tried."""
    return [Rule.model_validate(row) for row in reference("kernel_rules")]


def expected_path(case: Case) -> ExpectedPath:
    """Return what should run; kind ``unknown`` where no rule speaks about the case."""
    version = parse_version(case.version)
    for rule in kernel_rules():
        if in_range(version, rule.model_dump()) and _holds(rule, case):
            return _answer(rule, case)
    return _no_rule(case, version)


def _answer(rule: Rule, case: Case) -> ExpectedPath:
    why = rule.why.format(
        capability=case.device.capability or "unknown", architecture=case.device.architecture
    )
    unknown = rule.kind == "unknown"
    return ExpectedPath(
        kind=rule.kind,
        scheme="unknown" if unknown else rule.scheme or case.scheme.scheme,
        kernel_families=rule.families,
        why=why,
        source=f"{rule.source} [rule {rule.id}]",
    )


def _no_rule(case: Case, version: Version | None) -> ExpectedPath:
    device = case.device
    where = device.name
    if device.capability:
        where += f" (compute capability {device.capability})"
    method = f" by {case.scheme.method}" if case.scheme.method else ""
    engine = f"vLLM {version}" if version else "vLLM"
    if device.kind == "none":
        why = f"The device is not known ({device.name}); name one with host: {{gpu: ...}}."
    elif case.scheme.scheme == "mixed":
        why = "Layers of this checkpoint have different schemes, for which there is no rule here."
    else:
        why = f"No rule for {case.scheme.scheme}{method} on {where} with {engine}."
    return ExpectedPath(kind="unknown", scheme="unknown", why=why)


def _holds(rule: Rule, case: Case) -> bool:
    when = rule.when
    if when.device != case.device.kind or case.scheme.scheme not in when.schemes:
        return False
    if (when.forced is not None) and case.forced not in when.forced:
        return False
    return (
        _scheme_holds(when, case.scheme)
        and _device_holds(when, case.device)
        and _among(when.dtype, case.dtype)
        and (when.split is None or when.split == (case.tensor_parallel > 1))
        and not any(case.environment.get(k) == v for k, v in (when.unless_env or {}).items())
        and _widths_hold(rule, case.layers)
    )


def _scheme_holds(when: When, scheme: Scheme) -> bool:
    group = -1 if scheme.group_size is None and scheme.strategy == "channel" else scheme.group_size
    if when.not_group_sizes is not None and (group is None or group in when.not_group_sizes):
        return False
    if when.group_parity and not (group == -1 or (group is not None and group % 2 == 0)):
        return False
    if when.act_order is not None and when.act_order != bool(scheme.act_order):
        return False
    return (
        _among(when.methods, scheme.method)
        and _among(when.strategy, scheme.strategy)
        and _among(when.group_sizes, group)
        and _among(when.weight_bits, scheme.weight_bits)
        and (when.symmetric is None or when.symmetric is scheme.symmetric)
    )


def _device_holds(when: When, device: Device) -> bool:
    if when.capability is not None:
        lowest, highest = when.capability
        if device.capability is None:
            return False
        own = _capability(device.capability)
        if lowest is not None and own < _capability(lowest):
            return False
        if highest is not None and own > _capability(highest):
            return False
    flags = set(device.cpu_flags)
    if when.cpu_flags is not None and not flags.issuperset(when.cpu_flags):
        return False
    if when.no_cpu_flags is not None and flags & set(when.no_cpu_flags):
        return False
    return _among(when.architectures, device.architecture)


def _widths_hold(rule: Rule, layers: list[Layer] | None) -> bool:
    if rule.fits is None and rule.breaks is None:
        return True
    if layers is None:
        return False
    if rule.fits is not None:
        return _all_multiples(layers, rule.fits)
    assert rule.breaks is not None
    return not _all_multiples(layers, rule.breaks)


def _all_multiples(layers: list[Layer], of: Multiples) -> bool:
    return all(layer.inputs % of.input == 0 and layer.outputs % of.output == 0 for layer in layers)


def _among(wanted: list[Any] | None, value: object) -> bool:
    return wanted is None or value in wanted


def _capability(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)
