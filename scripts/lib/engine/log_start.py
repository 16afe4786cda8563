"""One start of a server as its log tells it: facts gathered line by line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from scripts.lib.engine import log_rules as rules
from scripts.lib.engine.log_failures import FailureRule
from scripts.lib.engine.log_kernels import scheme_of, scheme_of_moe
from scripts.lib.engine.log_lines import quote
from scripts.lib.engine.log_scheme import Evidence

_BLOCK_SIZES = (8, 16, 32, 64, 128, 256, 528, 784)
_DEFAULT_BLOCK_SIZE = 16
MANY = 100
"""So many of one kind: an engine that died says so once for every request, one that waits says
what it waits for once a second; more of it tells nothing new."""
_SETTLED_BY_ONE = frozenset(rule.key for rule in rules.DEGRADATIONS) - {
    "forced-unoptimized-method",
    "unoptimized-kernel",
    "dtype-fallback",
}
"""Slower paths that an engine names after its configuration; the others it names before, so a
second engine in the same text may name them again."""
EMULATED_ON_CPU = re.compile(r"^(?:\w*Torch|Emulation)\w*F[Pp]8")


@dataclass
class Failed:
    """A sentence that names a failure, where it stood, and the values it held."""

    rule: FailureRule
    order: int
    line: str
    values: dict[str, str | None]


@dataclass
class Start:
    """What was read of one start so far; the smallest rank's KV cache, the largest weights."""

    order: int = 0
    api_version: str | None = None
    engine_version: str | None = None
    env_version: str | None = None
    front_ends: set[rules.Rule] = field(default_factory=set)
    engine_lines: int = 0
    configuration: str = ""
    siblings: set[str] = field(default_factory=set)
    progress: int = 0
    common_progress: int = 0
    """The last step that an engine takes only when all of its ranks did theirs."""
    ready_at: int | None = None
    served_at: int | None = None
    initialised: int = 0
    """How many engines (one for each data-parallel rank) are done with their start."""
    stopping_at: int | None = None
    settings: dict[str, str] = field(default_factory=dict)
    speculative: bool = False
    argument_tp: int | None = None
    world_of_one: bool = False
    platform: str | None = None
    weights: float | None = None
    profiled_weights: float | None = None
    model_load_s: float | None = None
    kv_tokens: int | None = None
    concurrency: float | None = None
    concurrency_tokens: int | None = None
    gpu_blocks: int | None = None
    kv_gib: float | None = None
    fitted_length: int | None = None
    compile_s: float | None = None
    graph_s: float | None = None
    graph_gib: float | None = None
    engine_init_s: float | None = None
    kernels: dict[tuple[str, str | None], str] = field(default_factory=dict)
    convertible: str | None = None
    forced: str | None = None
    moe: dict[tuple[str, str], str] = field(default_factory=dict)
    moe_methods: set[str] = field(default_factory=set)
    attention: str | None = None
    capability: float | None = None
    kv_dtype: str | None = None
    degradations: dict[str, str] = field(default_factory=dict)
    failures: list[Failed] = field(default_factory=list)
    deaths: list[Failed] = field(default_factory=list)
    said: Counter[str] = field(default_factory=Counter)
    """How many failures of each kind were kept."""
    evidence: dict[str, str] = field(default_factory=dict)

    def settled(self) -> frozenset[str]:
        """Return the subjects of sentences that can tell nothing new about this start."""
        found = _SETTLED_BY_ONE.intersection(self.degradations)
        if self.attention is not None:
            found |= {"attention"}
        if self.ready_at is None:
            found |= {kind for kind, count in self.said.items() if count >= MANY}
        return found

    def note(self, key: str, line: str) -> None:
        """Keep the line that a key was read from."""
        self.evidence[key] = quote(line)

    def smaller(self, key: str, value: float, line: str) -> bool:
        """Keep the smallest value of a field; say whether it is the new one."""
        known = getattr(self, key)
        if known is None or value < known:
            setattr(self, key, value)
            self.note(key, line)
            return True
        return False

    def larger(self, key: str, value: float, line: str) -> None:
        """Keep the largest value of a field."""
        known = getattr(self, key)
        if known is None or value > known:
            setattr(self, key, value)
            self.note(key, line)

    def say_ready(self, line: str) -> None:
        """Note that a web server is ready: the engine's own, if the engine did something before.

        Other programs that write into the same file say the same words, so without any step of
        the engine before them the words count only as long as none follows.
        """
        self.ready_at = self.order
        self.deaths, self.stopping_at = [], None
        self.note("ready", line)
        if self.progress:
            self.served_at = self.order

    def settle(self) -> None:
        """Decide at the end of the text whose words of readiness they were."""
        if self.ready_at is None or self.served_at == self.ready_at:
            return
        if self.progress > self.ready_at:
            self.ready_at, self.stopping_at, self.deaths = None, None, []
            self.evidence.pop("ready", None)
            return
        self.failures = [failed for failed in self.failures if failed.order <= self.ready_at]
        self.served_at = self.ready_at

    def to_evidence(self) -> Evidence:
        """Return what bears on the scheme."""
        quantization = self.settings.get("quantization")
        return Evidence(
            version=self.version,
            configured="quantization" in self.settings,
            quantization=None if quantization == "None" else quantization,
            dtype=self.settings.get("dtype"),
            device=self.device,
            model=self.settings.get("model"),
            loaded=self.weights is not None
            or self.kv_tokens is not None
            or self.ready_at is not None,
            capability=self.capability,
            convertible=self.convertible,
            forced=self.forced,
            kernels=list(self.kernels),
            moe=list(self.moe),
            degradations=set(self.degradations),
            speculative=self.speculative,
        )

    @property
    def version(self) -> str | None:
        """The engine's own version before the front end's."""
        return self.engine_version or self.api_version or self.env_version

    @property
    def device(self) -> str | None:
        """Where it runs: cpu, cuda, rocm, ..."""
        return self.settings.get("device_config") or self.platform

    def tokens_from_blocks(self) -> int | None:
        """Return blocks x block size for engines that print only blocks (V0).

        The block size follows from the printed concurrency where there is one; else it is
        vLLM's default of 16 tokens.
        """
        if self.gpu_blocks is None:
            return None
        if self.concurrency is None or self.concurrency_tokens is None:
            return self.gpu_blocks * _DEFAULT_BLOCK_SIZE
        for size in _BLOCK_SIZES:
            printed = self.gpu_blocks * size / self.concurrency_tokens
            if abs(printed - self.concurrency) <= 0.006:  # noqa: PLR2004 - printed with two decimals
                return self.gpu_blocks * size
        return None


Reader = Callable[[Start, re.Match[str], str], object]


def observe(start: Start, line: str) -> None:
    """Read every fact that a line holds into the start."""
    if "Received request" in line:
        return
    start.order += 1
    for rule in rules.FACTS:
        if rule.word in line:
            for match in rule.pattern.finditer(line):
                READERS[rule.key](start, match, line)
    if rules.WORLD_OF_ONE.word in line and rules.WORLD_OF_ONE.pattern.search(line):
        start.world_of_one = True
        start.evidence.setdefault("tensor_parallel_size", quote(line))
    observe_degradations(start, line)


def observe_degradations(start: Start, line: str) -> None:
    """Keep the first line of every kind of slower path."""
    for rule in rules.DEGRADATIONS:
        if rule.word not in line or rule.key in start.degradations:
            continue
        if match := rule.pattern.search(line):
            start.degradations[rule.key] = quote(line)
            start.forced = start.forced or match.groupdict().get("forced")


def configuration(line: str) -> str:
    """Return the settings of an engine's configuration line."""
    return line[line.find("LLM engine") :]


def observe_engine_line(start: Start, line: str, version: str | None) -> None:
    """Read the engine's configuration line."""
    start.engine_lines += 1
    start.ready_at = None
    start.engine_version = version or start.engine_version
    start.configuration = settings = configuration(line)
    start.evidence.setdefault("vllm_version", quote(line, 200))
    for key, rule in rules.ENGINE_SETTINGS.items():
        if match := rule.pattern.search(settings):
            start.settings.setdefault(key, match[1])
            start.evidence.setdefault(key, f"{quote(line, 120)} {match[0].strip()} ...")
    start.speculative |= bool(rules.SPECULATIVE.search(settings))


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def _integer(text: str) -> int:
    return int(text.replace(",", ""))


def _weights(start: Start, match: re.Match[str], line: str) -> None:
    start.progress = start.order
    start.larger("weights", _number(match[1]), line)
    if match.re.groups > 1:
        start.larger("model_load_s", _number(match[2]), line)


def _kv_tokens(start: Start, match: re.Match[str], line: str) -> None:
    start.progress = start.common_progress = start.order
    start.smaller("kv_tokens", _integer(match[1]), line)


def _concurrency(start: Start, match: re.Match[str], line: str) -> None:
    if start.smaller("concurrency", _number(match[2]), line):
        start.concurrency_tokens = _integer(match[1])


def _gpu_blocks(start: Start, match: re.Match[str], line: str) -> None:
    start.progress = start.common_progress = start.order
    start.smaller("gpu_blocks", int(match[1]), line)


def _kernel(start: Start, match: re.Match[str], line: str) -> None:
    kernel, method = match[1], match[2]
    start.kernels.setdefault((kernel, method), quote(line))
    weight_only = scheme_of(kernel, method, None) == "w8a16-fp8"
    if weight_only and "W8A16" not in (method or "W8A16"):
        start.degradations.setdefault("fp8-weight-only", quote(line))
    if "Emulation" in kernel:
        start.degradations.setdefault("emulated", quote(line))


def _moe_backend(start: Start, match: re.Match[str], line: str) -> None:
    backend, weights = match[1].strip(), match[2].lower().replace("w4a8 int8", "w4a8")
    start.moe.setdefault((backend, weights), quote(line))
    if weights == "fp8" and scheme_of_moe(backend, weights) == "w8a16-fp8":
        start.degradations.setdefault("fp8-weight-only", quote(line))


def _wna16_backend(start: Start, match: re.Match[str], line: str) -> None:
    start.moe.setdefault((match[1], f"w{match[2]}a16"), quote(line))


def _backend_of(weights: str) -> Reader:
    def read(start: Start, match: re.Match[str], line: str) -> None:
        start.moe.setdefault((match[1].strip(), weights), quote(line))
        if scheme_of_moe(match[1], weights) == "w8a16-fp8":
            start.degradations.setdefault("fp8-weight-only", quote(line))

    return read


def _attention(start: Start, match: re.Match[str], line: str) -> None:
    name = match[1].removeprefix("AttentionBackendEnum.").removeprefix("_Backend.")
    name = name.removesuffix(" attention")
    before = line[: match.start()].rsplit("[", 1)[-1]
    if name == "Triton" and not match[0].endswith((".", "V1 engine")):
        # Without a full stop the experts' backend is meant.
        return
    if start.attention is not None or rules.NOT_ATTENTION.search(f"{before} {name}"):
        return
    if rules.ATTENTION_NAME.search(name):
        start.attention = name
        start.note("attention_backend", line)


def _arguments(start: Start, match: re.Match[str], _line: str) -> None:
    if found := rules.ARGUMENT_TP.search(match[1]):
        start.argument_tp = int(found[1])


def _capability(start: Start, match: re.Match[str], _line: str) -> None:
    start.capability = float(match[1])


def _graphs(start: Start, match: re.Match[str], line: str) -> None:
    start.progress = start.order
    start.larger("graph_s", _number(match[1]), line)
    if match[2]:
        start.larger("graph_gib", _number(match[2]), line)


def _engine_init(start: Start, match: re.Match[str], line: str) -> None:
    start.progress = start.common_progress = start.order
    start.initialised += 1
    start.larger("engine_init_s", _number(match[1]), line)


def _setter(key: str) -> Reader:
    def read(start: Start, match: re.Match[str], line: str) -> None:
        setattr(start, key, match[1])
        start.note(key, line)

    return read


def _fitted_length(start: Start, match: re.Match[str], line: str) -> None:
    start.fitted_length = int(match[1])
    start.note("max_model_len", line)


READERS: dict[str, Reader] = {
    "collect_env_version": _setter("env_version"),
    "platform": _setter("platform"),
    "arguments": _arguments,
    "weights": _weights,
    "profiled_weights": lambda s, m, line: s.larger("profiled_weights", _number(m[1]), line),
    "kv_tokens": _kv_tokens,
    "concurrency": _concurrency,
    "gpu_blocks": _gpu_blocks,
    "kv_gib": lambda s, m, line: s.smaller("kv_gib", _number(m[1]), line),
    "fitted_length": _fitted_length,
    "compile": lambda s, m, line: s.larger("compile_s", _number(m[1]), line),
    "graphs": _graphs,
    "engine_init": _engine_init,
    "kernel": _kernel,
    "convertible": _setter("convertible"),
    "moe_backend": _moe_backend,
    "moe_method": lambda s, m, _line: s.moe_methods.add(m[1]),
    "wna16_backend": _wna16_backend,
    "mxfp4_backend": _backend_of("mxfp4"),
    "fp8_backend": _backend_of("fp8"),
    "fp4_backend": _backend_of("nvfp4"),
    "kv_dtype": _setter("kv_dtype"),
    "attention": _attention,
    "capability": _capability,
}
