"""One scrape of an engine's ``/metrics``, read without guessing.

Each quantity has a list of names, newest first (:mod:`metric_names`), and the first one present
in the text is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from prometheus_client.parser import text_string_to_metric_families
from pydantic import Field

from scripts.lib.base.printed_text import plain
from scripts.lib.base.schema import Strict
from scripts.lib.telemetry import metric_names
from scripts.lib.telemetry.metric_names import names_to_read


class HistogramTotals(Strict):
    """What a Prometheus histogram adds up to since the server started."""

    count: float | None
    sum_s: float | None = Field(description="Sum of the observations, in seconds.")


class Histograms(Strict):
    """The engine's own latency histograms; None: this text does not hold them."""

    ttft: HistogramTotals | None = None
    tpot: HistogramTotals | None = None
    itl: HistogramTotals | None = None
    e2el: HistogramTotals | None = None
    queue_time: HistogramTotals | None = None


class Scrape(Strict):
    """The keys of ``python -m scripts.read_metrics``; None = the text does not hold it."""

    running: float | None = None
    waiting: float | None = None
    kv_cache_usage: float | None = Field(
        default=None, description="0 to 1; of several engines, the fullest."
    )
    preemptions: float | None = None
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    prefix_cache_queries: float | None = None
    prefix_cache_hits: float | None = None
    histograms: Histograms = Histograms()
    # Beyond the contract.
    engines: list[str] = Field(default=[], description="The values of the label `engine`.")
    models: list[str] = []
    kv_cache_usage_by_engine: dict[str, float] = {}
    requests_by_finish_reason: dict[str, float] = {}
    spec_decode_draft_tokens: float | None = None
    spec_decode_accepted_tokens: float | None = None
    gpu_blocks: int | None = None
    block_size: int | None = None


class Sample(Strict):
    """One line of the text: a series and its value."""

    name: str
    labels: dict[str, str]
    value: float


COUNTED = (
    *metric_names.GAUGES,
    "preemptions",
    "prompt_tokens",
    "generation_tokens",
    "prefix_cache_queries",
    "prefix_cache_hits",
    "spec_decode_draft_tokens",
    "spec_decode_accepted_tokens",
)
"""What is added up over the engines of one server."""
OTHER_SERVERS = {
    "sglang:": "SGLang",
    "tgi_": "Text Generation Inference",
    "trtllm_": "TensorRT-LLM",
    "nv_inference_": "Triton Inference Server",
    "lmdeploy:": "LMDeploy",
    "llamacpp:": "llama.cpp",
}

_VLLM = re.compile(r"^(?:ray_)?vllm[:_](.+)$")
_NAME = re.compile(r"[a-zA-Z_:][\w:]*")
_LINE = re.compile(
    r"(?:^|[\s>|`])(?P<name>[a-zA-Z_][\w:]*)"
    r"(?:\{(?P<labels>(?:[^\"{}]|\"(?:[^\"\\]|\\.)*\")*)\})?"
    r"[ \t`|]+(?P<value>[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+|Inf|NaN))"
    r"(?:[ \t]+-?\d+(?:\.\d+)?)?[ \t]*(?:#.*)?$"
)
_IN_LINE = re.compile(r"(?<![a-zA-Z_])(?:ray_)?vllm[:_][a-z]")
"""Where a series begins behind what `grep` prints before it."""
_LABEL = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')
_COMPLETE = re.compile(r"\d\.0$")


def parse_metrics(text: str) -> Scrape:
    """Read one scrape.

    Series of several engines are added up when they count something, never when they are a
    usage: of those the fullest engine is reported. A last line that lacks its line end may have
    been cut inside its number; it is used only where that cannot be.

    Raises:
        ValueError: the text is empty, not Prometheus text, or another server's.
    """
    samples = _samples(text)
    _refuse_other_text(samples)
    series: dict[str, dict[tuple[tuple[str, str], ...], Sample]] = {}
    for sample in samples:
        if match := _VLLM.match(sample.name):
            # A series that occurs twice was scraped twice: the last value counts.
            key = tuple(sorted(sample.labels.items()))
            series.setdefault(match[1], {})[key] = sample
    by_name = {name: list(of_name.values()) for name, of_name in series.items()}
    usage = _first(by_name, names_to_read("kv_cache_usage"))
    config = _labels_of(by_name, "cache_config_info")
    counts = {key: _total(_first(by_name, names_to_read(key))) for key in COUNTED}
    labels = [sample.labels for of_name in by_name.values() for sample in of_name]
    return Scrape(
        **counts,
        kv_cache_usage=max((sample.value for sample in usage), default=None),
        kv_cache_usage_by_engine={
            sample.labels.get("engine", str(index)): sample.value
            for index, sample in enumerate(usage)
        },
        histograms=Histograms(
            **{key: _histogram(by_name, names_to_read(key)) for key in metric_names.HISTOGRAMS}
        ),
        engines=sorted({label["engine"] for label in labels if "engine" in label}),
        models=sorted({label["model_name"] for label in labels if "model_name" in label}),
        requests_by_finish_reason=_by_label(
            by_name, names_to_read("finished_requests"), "finished_reason"
        ),
        gpu_blocks=_integer(config.get("num_gpu_blocks")),
        block_size=_integer(config.get("block_size")),
    )


def _samples(text: str) -> list[Sample]:
    """Return every sample; prometheus_client reads well-formed text, we read the rest."""
    if not text.strip():
        raise ValueError("the text is empty; give the body of GET /metrics")
    if "\0" in text:
        raise ValueError("this is binary data, not the text of GET /metrics")
    complete, cut_off = _split_last_line(text.lstrip("\ufeff"))
    complete, cut_off = plain(complete), cut_off.rstrip("\r")
    try:
        families = list(text_string_to_metric_families(complete))
        samples = [
            Sample(name=sample.name, labels=dict(sample.labels), value=sample.value)
            for family in families
            for sample in family.samples
        ]
    except (ValueError, KeyError, IndexError, AttributeError):
        samples = []
    if not samples or not all(_NAME.fullmatch(sample.name) for sample in samples):
        samples = list(_lenient(complete.splitlines()))
    return samples + [
        sample for sample in _lenient([cut_off]) if _COMPLETE.search(cut_off.rstrip())
    ]


def _split_last_line(text: str) -> tuple[str, str]:
    """Return the terminated lines and the unterminated rest."""
    end = text.rfind("\n") + 1
    return text[:end], text[end:]


def _lenient(lines: Iterable[str]) -> Iterable[Sample]:
    """Read the lines that are samples, whatever stands around them."""
    for line in lines:
        if line.lstrip().startswith("#"):
            continue
        if begin := _IN_LINE.search(line):
            line = line[begin.start() :]  # noqa: PLW2901
        if match := _LINE.search(line):
            labels = dict(_LABEL.findall(match["labels"] or ""))
            yield Sample(name=match["name"], labels=labels, value=float(match["value"]))


def _refuse_other_text(samples: list[Sample]) -> None:
    if any(_VLLM.match(sample.name) for sample in samples):
        return
    for prefix, server in OTHER_SERVERS.items():
        if any(sample.name.startswith(prefix) for sample in samples):
            raise ValueError(f"these are the metrics of {server}, not of vLLM")
    if not samples:
        raise ValueError("no line is a Prometheus sample; give the body of GET /metrics")


def _first(series: dict[str, list[Sample]], names: tuple[str, ...]) -> list[Sample]:
    """Return the finite samples of the first name that is in the text."""
    for name in names:
        if name in series:
            return [sample for sample in series[name] if math.isfinite(sample.value)]
    return []


def _total(samples: list[Sample]) -> float | None:
    return sum(sample.value for sample in samples) if samples else None


def _histogram(series: dict[str, list[Sample]], names: tuple[str, ...]) -> HistogramTotals | None:
    for name in names:
        count = _total(_first(series, (f"{name}_count",)))
        total = _total(_first(series, (f"{name}_sum",)))
        if count is not None or total is not None:
            return HistogramTotals(count=count, sum_s=total)
    return None


def _by_label(
    series: dict[str, list[Sample]], names: tuple[str, ...], label: str
) -> dict[str, float]:
    """Add up a counter's series by one label."""
    totals: dict[str, float] = {}
    for sample in _first(series, names):
        if label in sample.labels:
            key = sample.labels[label]
            totals[key] = totals.get(key, 0.0) + sample.value
    return totals


def _labels_of(series: dict[str, list[Sample]], name: str) -> dict[str, str]:
    """Return the labels of an information series, {} when engines disagree or it is absent."""
    found = [sample.labels for sample in series.get(name, [])]
    without_engine = [{k: v for k, v in labels.items() if k != "engine"} for labels in found]
    same = without_engine and all(labels == without_engine[0] for labels in without_engine)
    return without_engine[0] if same else {}


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
