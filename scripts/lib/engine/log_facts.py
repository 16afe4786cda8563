"""From what was gathered of a start to the facts of the contract."""

from __future__ import annotations

import re

from scripts.lib.engine.log_causes import SPECIFIC
from scripts.lib.engine.log_failures import (
    DEATH_HINT,
    EXCEPTION,
    WRAPPER_HINT,
    last_exception,
)
from scripts.lib.engine.log_hints import capability_number
from scripts.lib.engine.log_lines import OPEN_END, clean, quote
from scripts.lib.engine.log_scheme import Inference, infer
from scripts.lib.engine.log_start import EMULATED_ON_CPU, Failed, Start
from scripts.lib.engine.startup import Degradation, Failure, LogFacts

_AFTER_ALL = re.compile(r"\bINFO \d\d-\d\d \d\d:\d\d:\d\d\b(?!.*[Ss]hut)")
_NOT_FATAL = re.compile(r"KeyboardInterrupt|CancelledError|SystemExit|Exception ignored")


def facts_of(start: Start, tail: str, starts: int) -> LogFacts:
    """Return the facts of one start.

    Args:
        start: what was gathered.
        tail: the end of the start's text before it was ready, for unknown exceptions.
        starts: how many starts the file holds.
    """
    for failed in start.failures:
        if has := failed.values.get("has"):
            start.capability = start.capability or capability_number(has)
    failure = _failure(start, tail)
    evidence = start.to_evidence()
    evidence.died = failure is not None and start.served_at is None
    inference = infer(evidence)
    degradations = _degradations(start, inference)
    return LogFacts(
        vllm_version=start.version,
        quantization=_named(start.settings.get("quantization")),
        kernels=sorted({kernel for kernel, _ in start.kernels}),
        scheme=inference.scheme,
        kernel_family=inference.families,
        weights_gib=start.weights if start.weights is not None else start.profiled_weights,
        kv_cache_tokens=start.kv_tokens,
        gpu_blocks=start.gpu_blocks,
        max_concurrency=start.concurrency,
        max_concurrency_tokens=start.concurrency_tokens,
        tensor_parallel_size=_tensor_parallel(start),
        dtype=_named(start.settings.get("dtype")),
        kv_cache_dtype=_named(start.settings.get("kv_cache_dtype"), "auto") or start.kv_dtype,
        attention_backend=start.attention,
        ready=start.ready_at is not None,
        degraded=bool(degradations),
        degradations=degradations,
        failure=failure,
        model_load_s=start.model_load_s,
        kv_cache_gib=start.kv_gib,
        graph_capture_s=start.graph_s,
        graph_capture_gib=start.graph_gib,
        compile_s=start.compile_s,
        engine_init_s=start.engine_init_s,
        max_model_len=_length(start),
        kv_cache_tokens_from_blocks=start.tokens_from_blocks(),
        model=_named(start.settings.get("model")),
        device=start.device,
        load_format=_named(start.settings.get("load_format")),
        speculative=start.speculative,
        moe_backends=sorted(f"{backend} {weights}" for backend, weights in start.moe),
        moe_methods=sorted(start.moe_methods),
        kernel_methods=sorted(
            f"{kernel} for {method}" for kernel, method in start.kernels if method
        ),
        starts_in_file=starts,
        evidence=_evidence(start),
    )


def _named(value: str | None, *unset: str) -> str | None:
    """Return a setting, None where the engine printed that it has none."""
    return None if value is None or value in {"None", *unset} else value


def _tensor_parallel(start: Start) -> int | None:
    configured = start.settings.get("tensor_parallel_size")
    if configured is not None and configured.isdecimal():
        return int(configured)
    return start.argument_tp or (1 if start.world_of_one else None)


def _length(start: Start) -> int | None:
    configured = start.settings.get("max_seq_len")
    if start.fitted_length is not None:
        return start.fitted_length
    if configured is not None and configured.isdecimal():
        return int(configured)
    wanted = next((f.values["wanted"] for f in start.failures if f.values.get("wanted")), None)
    return int(wanted) if wanted else None


def _degradations(start: Start, inference: Inference) -> list[Degradation]:
    found = dict(start.degradations)
    if inference.unoptimized and not {"unoptimized-kernel", "forced-unoptimized-method"} & set(
        found
    ):
        found["unoptimized-kernel"] = start.evidence.get("quantization", "")
    if start.device == "cpu":
        for (kernel, _), line in start.kernels.items():
            if EMULATED_ON_CPU.search(kernel):
                found.setdefault("fp8-emulated-on-cpu", line)
    return [Degradation(kind=kind, line=line) for kind, line in found.items()]


def _evidence(start: Start) -> dict[str, str]:
    names = {
        "weights": "weights_gib",
        "kv_tokens": "kv_cache_tokens",
        "concurrency": "max_concurrency",
        "kv_gib": "kv_cache_gib",
        "graph_s": "graph_capture_s",
        "graph_gib": "graph_capture_gib",
        "max_seq_len": "max_model_len",
        "device_config": "device",
    }
    evidence = {names.get(key, key): line for key, line in start.evidence.items()}
    lines = [*start.kernels.values(), *start.moe.values()]
    if lines:
        evidence["kernels"] = "\n".join(dict.fromkeys(lines))
    return evidence


def _failure(start: Start, tail: str) -> Failure | None:
    if start.served_at is not None:
        return _death(start)
    decisive = _decisive(start, tail)
    if decisive is not None and not decisive.rule.wrapper:
        return _stated(decisive)
    exceptions = [clean(line + "\n") for line in tail.splitlines()]
    root = last_exception(exceptions)
    if decisive is None:
        # Where an engine is ready inside another program, that program's errors are its own.
        offline = start.api_version is None and start.initialised
        return None if offline else _unknown_exception(exceptions)
    if root is not None and (named := _named_cause(root)):
        return named
    died = decisive.rule.kind == "engine-dead-after-start"
    hint = DEATH_HINT if died else WRAPPER_HINT
    return Failure(
        kind=decisive.rule.kind,
        line=quote(root or decisive.line),
        hint=hint if root is None else _look_up(root),
    )


def _named_cause(root: str) -> Failure | None:
    """Return the cause that an exception names; it ended the start, so it was not caught."""
    for rule in SPECIFIC:
        if rule.word in root and (match := rule.pattern.search(root)):
            return _stated(Failed(rule, 0, root, dict(match.groupdict())))
    return None


def _decisive(start: Start, tail: str) -> Failed | None:
    """Return the earliest sentence that names a cause, a caught one only if nothing followed."""
    hard = [f for f in start.failures if not f.rule.soft and not f.rule.wrapper]
    soft = [
        f
        for f in start.failures
        if f.rule.soft and f.order > start.progress and not _went_on_after(f.line, tail)
    ]
    wrappers = [f for f in start.failures if f.rule.wrapper]
    wrappers.sort(key=lambda f: f.rule.kind != "engine-core-failed-to-start")
    # An engine that went on to a step of all its ranks had overcome what was said before.
    fatal = [f for f in hard if f.order >= start.common_progress] or (hard if wrappers else [])
    if fatal:
        return _fullest(fatal)
    return soft[-1] if soft else (wrappers[0] if wrappers else None)


def _went_on_after(line: str, tail: str) -> bool:
    """Say whether the engine still had something to tell after this line."""
    place = tail.rfind(line[-120:].rstrip(OPEN_END))
    return place >= 0 and _AFTER_ALL.search(tail, place + len(line[-120:])) is not None


def _fullest(failed: list[Failed]) -> Failed:
    """Of the first cause's sentences, return the one with most of its values."""
    kind = failed[0].rule.kind
    same = [f for f in failed if f.rule.kind == kind]
    return max(same, key=lambda f: sum(value is not None for value in f.values.values()))


def _stated(failed: Failed) -> Failure:
    return Failure(
        kind=failed.rule.kind, line=quote(failed.line), hint=failed.rule.hint(failed.values)
    )


def _death(start: Start) -> Failure | None:
    """Return the death of an engine that served, not one that was told to stop."""
    deaths = [
        death
        for death in start.deaths
        if start.stopping_at is None or death.order < start.stopping_at
    ]
    for death in deaths:
        if death.rule.kind == "oom":
            return _stated(
                Failed(death.rule, death.order, death.line, {**death.values, "stage": "serving"})
            )
    if not deaths:
        return None
    return Failure(kind="engine-dead-after-start", line=quote(deaths[0].line), hint=DEATH_HINT)


def _unknown_exception(lines: list[str]) -> Failure | None:
    """Return a last exception that ended the text: no sentence of ours names its cause."""
    for index in range(len(lines) - 1, -1, -1):
        line = lines[index]
        if _AFTER_ALL.search(line) or _NOT_FATAL.search(line):
            return None
        if EXCEPTION.search(line) and _in_traceback(lines[:index]):
            return Failure(
                kind="unrecognised-error",
                line=quote(line),
                hint=_look_up(line),
            )
    return None


def _in_traceback(before: list[str]) -> bool:
    return any("Traceback (most recent call last)" in line for line in before[-200:])


def _look_up(line: str) -> str:
    return (
        f"the engine says: {_message(line)}; look that up in vLLM's issues, or try another "
        "release of vLLM"
    )


def _message(line: str) -> str:
    match = EXCEPTION.search(line)
    return quote(line[match.start(1) :] if match else line, 300)
