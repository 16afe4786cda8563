"""Did the engine run what the checkpoint promises? Expected path, log and weights weighed.

The kernel that the log names is believed before the table of rules, and the size of the loaded
weights before both: a quantization *name* proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from scripts.lib.checkpoints.manifest import Manifest
from scripts.lib.engine.startup import LogFacts
from scripts.lib.plan.models import Evidence, ExpectedPath, Verdict, VerdictKind
from scripts.lib.plan.tables import parse_version
from scripts.lib.plan.weights_evidence import (
    UNQUANTIZED,
    Sizes,
    sizes_of,
    speed_evidence,
    weights_evidence,
)

FALLBACKS = {
    "w8a8-fp8": {"w8a16-fp8"},
    "w4a4-nvfp4": {"w4a16-nvfp4"},
    "w4a4-mxfp4": {"w4a16-mxfp4"},
    "w8a8-int8": {"w8a16-int8"},
    "bf16": {"fp16"},
}
"""Coarser paths that engines take when the device lacks the units for the promised one."""
SAME_LINE = {"w4a8-int8"}
"""Coarser paths whose log line is that of the promised one: only the rules can tell."""
WEIGHT_ONLY_INTEGER = {"w4a16", "w8a16-int8", "w3a16", "w2a16"}
"""Served by the same kernels, whose lines do not print the bits."""
SLOW_PATHS = {
    "fp8-weight-only",
    "fp4-weight-only",
    "forced-unoptimized-method",
    "unoptimized-kernel",
    "dtype-fallback",
    "emulated",
    "fp8-emulated-on-cpu",
}
"""Degradations of the weights' path; others (attention, MoE tuning) are reported beside it."""
SLOW_FAMILIES = {"exllama", "conch", "emulation", "awq", "bitsandbytes", "aqlm"}
KERNELS_PRINTED_SINCE = {
    "w8a8-fp8": "0.15",
    "w8a16-fp8": "0.15",
    "w8a8-int8": "0.7.0",
    "w4a4-nvfp4": "0.11.1",
}
"""Before, dense layers of these schemes printed no kernel line (vLLM #27814, #11785)."""


PACKED_METHODS = {"gptq_marlin": "marlin", "awq_marlin": "marlin"}
"""Methods whose kernels (Marlin, Machete, AllSpark, ExLlama) all read packed integer weights, and
the family that their name points to: a hint, since which of them ran is printed elsewhere."""


@dataclass(frozen=True)
class Outcome:
    """A verdict before its evidence is attached."""

    verdict: VerdictKind
    real: str
    summary: str


def judge(
    variant: str,
    expected: ExpectedPath,
    manifest: Manifest | None,
    facts: LogFacts | None,
    *,
    promised: str | None = None,
    gpus: int = 1,
    sizes: Sizes | None = None,
    baseline: LogFacts | None = None,
    speed_ratio: float | None = None,
    kv_cache_dtype: str | None = None,
) -> Verdict:
    """Judge one start of one variant.

    Args:
        variant: Its name.
        expected: What the rules expect of it on this device.
        manifest: Its checkpoint; None: not known.
        facts: What its log says; None: there is no log.
        promised: What it is meant to run, where that is not what the manifest says.
        gpus: Over how many GPUs the weights are split (tensor x pipeline parallel).
        sizes: Sizes of the weights; taken from the manifest's tensors if not given.
        baseline: What the baseline's log says.
        speed_ratio: Time per output token over the baseline's, at the lowest load.
        kv_cache_dtype: The KV cache that the variant asks for; None: as the engine likes.
    """
    claim = promised or (manifest.scheme.scheme if manifest else "unknown")
    evidence = [Evidence(level="table", says=expected.why, supports=None)]
    if facts is None:
        reason = "there is no log of this server, so nothing shows which kernels ran"
        return _verdict(variant, claim, None, _unknown(claim, reason), evidence)
    evidence += _log_evidence(facts, claim)
    if facts.failure and not facts.ready:
        reason = f"the server did not start ({facts.failure.kind})"
        return _verdict(variant, claim, facts, _unknown(claim, reason), evidence)
    loaded = weights_evidence(facts, sizes or sizes_of(manifest, gpus), claim, baseline)
    speed = speed_evidence(speed_ratio, claim)
    evidence += [found for found in (loaded, speed) if found]
    cache = _cache_evidence(facts, kv_cache_dtype)
    outcome = _decide(claim, expected, facts, loaded)
    if cache:
        evidence.append(cache)
        outcome = _with_cache(outcome, cache)
    evidence[0] = evidence[0].model_copy(
        update={"supports": _table_agrees(expected, facts, outcome)}
    )
    return _verdict(variant, claim, facts, outcome, evidence)


def worst(verdicts: list[Verdict]) -> Verdict:
    """Return the verdict over several starts: the worst one, with the evidence of its start."""
    order = ("as expected", "unknown", "degraded", "not what the checkpoint says")
    found = max(verdicts, key=lambda verdict: order.index(verdict.verdict))
    if len({(v.verdict, v.real_scheme) for v in verdicts}) > 1:
        note = f"{found.summary} (Its {len(verdicts)} starts did not all say the same.)"
        return found.model_copy(update={"summary": note})
    return found


def _decide(
    claim: str, expected: ExpectedPath, facts: LogFacts, loaded: Evidence | None
) -> Outcome:
    if loaded and loaded.supports is False and claim not in UNQUANTIZED:
        return _not_quantized(claim, facts)
    if any(sign.kind == "not-quantized" for sign in facts.degradations):
        return _not_quantized(claim, facts)
    if claim == "unknown":
        return _unknown(claim, "what the checkpoint promises is not known")
    real = facts.scheme
    if real == "unknown":
        return _without_scheme(claim, expected, facts, loaded)
    if _same(real, claim):
        return _same_scheme(claim, expected, facts, loaded)
    if real == "mixed":
        return _unknown(claim, "several schemes ran side by side and their lines name no layers")
    return _other_scheme(claim, real, facts)


def _not_quantized(claim: str, facts: LogFacts) -> Outcome:
    dtype = (facts.dtype or "").removeprefix("torch.")
    real = {"bfloat16": "bf16", "float16": "fp16"}.get(dtype, "unknown")
    named = f" although quantization={facts.quantization} is named" if facts.quantization else ""
    summary = (
        f"The checkpoint says {claim}, but the engine loaded unquantized 16-bit weights{named}: "
        f"these are {real.upper() if real != 'unknown' else '16-bit'} numbers."
    )
    return Outcome("not what the checkpoint says", real, summary)


def _other_scheme(claim: str, real: str, facts: LogFacts) -> Outcome:
    fell_back = real in FALLBACKS.get(claim, set())
    if fell_back and (claim not in UNQUANTIZED or _slow_signs(facts)):
        summary = f"The checkpoint says {claim}; it was served as {real}, the coarser path."
        return Outcome("degraded", real, summary)
    summary = f"The checkpoint says {claim}, and the log shows that {real} ran."
    return Outcome("not what the checkpoint says", real, summary)


def _same_scheme(
    claim: str, expected: ExpectedPath, facts: LogFacts, loaded: Evidence | None
) -> Outcome:
    """Judge a log whose scheme is the promised one: by a slow path, or how it is known."""
    signs, families = _slow_signs(facts), set(facts.kernel_family)
    if signs:
        how = f"it took a slower path ({', '.join(sorted(signs))})"
        return Outcome("degraded", claim, f"{claim} ran as the checkpoint says, but {how}.")
    if families and families <= SLOW_FAMILIES:
        how = f"through a kernel that is not the fast one ({', '.join(sorted(families))})"
        return Outcome("degraded", claim, f"{claim} ran as the checkpoint says, but {how}.")
    if _is_expected_degradation(expected, claim, families):
        return Outcome("degraded", claim, f"{claim} ran, but not natively: {expected.why}")
    if expected.scheme in SAME_LINE and families & set(expected.kernel_families):
        summary = f"The checkpoint says {claim}; the log cannot tell, but by the rules it was "
        summary += f"served as {expected.scheme}. {expected.why}"
        return Outcome("degraded", expected.scheme, summary)
    if claim in UNQUANTIZED:
        return Outcome("as expected", claim, f"{claim} ran, unquantized, as the checkpoint says.")
    if not facts.kernels and not families:
        return _without_scheme(claim, expected, facts, loaded)
    kernels = ", ".join(facts.kernels) or ", ".join(sorted(families))
    return Outcome("as expected", claim, f"{claim} ran as the checkpoint says ({kernels}).")


def _is_expected_degradation(expected: ExpectedPath, claim: str, families: set[str]) -> bool:
    """Say if the table expects this very path and calls it degraded (FP8 emulated on a CPU)."""
    same_path = bool(families & set(expected.kernel_families))
    return expected.kind == "degraded" and expected.scheme == claim and same_path


def _without_scheme(
    claim: str, expected: ExpectedPath, facts: LogFacts, loaded: Evidence | None
) -> Outcome:
    """Judge a log that names no kernel: indirect evidence, where versions printed none."""
    fits = loaded is not None and loaded.supports is True
    if claim in UNQUANTIZED:
        if fits and facts.quantization is None:
            how = "no quantization is named, and the loaded weights have the size of 16-bit ones"
            return _by_indirect_evidence(claim, how)
        return _unknown(claim, "the log does not say in which number format the weights ran")
    signs = _slow_signs(facts)
    if signs:
        return _unknown(claim, f"it took a slower path ({', '.join(sorted(signs))})")
    if not fits:
        return _unknown(
            claim, "the log names no kernel and the size of the weights settles nothing"
        )
    if claim in WEIGHT_ONLY_INTEGER and facts.quantization in PACKED_METHODS:
        how = f"quantization={facts.quantization} was resolved, which only runs packed weights, "
        how += "and the loaded weights have the promised size; its name points to "
        how += f"{PACKED_METHODS[facts.quantization]}, but which kernel ran is not proven"
        return _by_indirect_evidence(claim, how)
    if expected.kind != "native":
        return _unknown(claim, "the log names no kernel and the rules do not expect a native one")
    if not _silent(claim, facts):
        return _unknown(claim, "this version prints the kernel, and the log names none")
    printed = "printed" if facts.evidence else "noted"
    how = (
        "this version names no kernel for it, the device has the units, no fallback was "
        f"{printed}, and the loaded weights have the promised size"
    )
    return _by_indirect_evidence(claim, how)


def _by_indirect_evidence(claim: str, how: str) -> Outcome:
    summary = f"{claim} ran as far as indirect evidence goes: {how}."
    return Outcome("as expected", claim, summary)


def _silent(claim: str, facts: LogFacts) -> bool:
    version, since = parse_version(facts.vllm_version), KERNELS_PRINTED_SINCE.get(claim)
    bound = parse_version(since)
    return version is not None and bound is not None and version < bound


def _same(real: str, claim: str) -> bool:
    return real == claim or {real, claim} <= WEIGHT_ONLY_INTEGER


def _slow_signs(facts: LogFacts) -> set[str]:
    return {sign.kind for sign in facts.degradations} & SLOW_PATHS


def _unknown(claim: str, reason: str) -> Outcome:
    promised = "" if claim == "unknown" else f" whether {claim} ran"
    return Outcome("unknown", "unknown", f"Unknown{promised}: {reason}.")


def _table_agrees(expected: ExpectedPath, facts: LogFacts, outcome: Outcome) -> bool | None:
    """Say if what ran is what the rules expected; None: they expected nothing, or nobody knows."""
    if expected.kind == "unknown" or outcome.verdict == "unknown":
        return None
    if expected.kind == "unsupported" or not _same(outcome.real, expected.scheme):
        return False
    families, wanted = set(facts.kernel_family), set(expected.kernel_families)
    return not (families and wanted) or bool(families & wanted)


def _log_evidence(facts: LogFacts, claim: str) -> list[Evidence]:
    found = []
    told = "The log names" if facts.evidence else "What was noted of its start names"
    if facts.kernels:
        agrees = None if facts.scheme in ("unknown", "mixed") else _same(facts.scheme, claim)
        says = f"{told} {', '.join(facts.kernels)}."
        found.append(_line_evidence(says, agrees, facts.evidence.get("kernels")))
    elif facts.quantization:
        says = f"{told} quantization={facts.quantization} and no kernel; "
        says += _name_words(facts.quantization)
        found.append(_line_evidence(says, None, facts.evidence.get("quantization")))
    elif facts.scheme in UNQUANTIZED:
        agrees = facts.scheme == claim
        says = f"{told} no quantization and dtype {facts.dtype}."
        found.append(_line_evidence(says, agrees, facts.evidence.get("quantization")))
    for sign in facts.degradations:
        counts = sign.kind in SLOW_PATHS or sign.kind == "not-quantized"
        found.append(_line_evidence(f"Sign of {sign.kind}.", False if counts else None, sign.line))
    return found


def _name_words(quantization: str) -> str:
    """Say what the name of a resolved method is worth."""
    family = PACKED_METHODS.get(quantization)
    if family is None:
        return "a name proves nothing."
    return (
        "it is only resolved for packed weights, and its name points to the kernels of the family "
        f"{family}; others serve it too, so the family is not proven."
    )


def _cache_evidence(facts: LogFacts, wanted: str | None) -> Evidence | None:
    """Compare the KV cache of the engine's configuration line with the one that was asked for."""
    line = facts.evidence.get("kv_cache_dtype")
    real = facts.kv_cache_dtype or ("auto" if line else None)
    if wanted is None or real is None:
        return None
    same = real == wanted or (real.startswith("fp8") and wanted in ("fp8", "fp8_e4m3"))
    says = f"The variant asks for a KV cache in {wanted}, and the engine kept it in {real}."
    return _line_evidence(says, same, line)


def _with_cache(outcome: Outcome, cache: Evidence) -> Outcome:
    if cache.supports or outcome.verdict == "not what the checkpoint says":
        return outcome
    return Outcome("not what the checkpoint says", outcome.real, cache.says)


def _line_evidence(says: str, supports: bool | None, line: str | None) -> Evidence:
    return Evidence(level="log", says=says, supports=supports, line=line)


def _verdict(
    variant: str, claim: str, facts: LogFacts | None, outcome: Outcome, evidence: list[Evidence]
) -> Verdict:
    return Verdict(
        variant=variant,
        verdict=outcome.verdict,
        promised_scheme=claim,
        real_scheme=outcome.real,
        kernels=facts.kernels if facts else [],
        kernel_family=facts.kernel_family if facts else [],
        summary=outcome.summary,
        evidence=evidence,
    )
