"""The workload part of a study file: prompts, load points, repetitions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from scripts.lib.base.schema import Commit, Sha256, Strict

REQUESTS_PER_CONCURRENCY = 10
"""Requests of a closed-loop point per stream: below it, start and end of the run weigh heavily."""

OPEN_LOOP_S = 60
"""So long an open-loop point lasts at its rate."""


class HubFile(Strict):
    """One file of a data set on the Hugging Face hub."""

    repo: str
    revision: Commit
    file: str
    sha256: Sha256


class RandomDataset(Strict):
    """Prompts of random tokens."""

    input_tokens: int = Field(gt=0)
    output_tokens: int = Field(gt=0)
    range_ratio: float = Field(
        default=0.0, ge=0, lt=1, description="Lengths vary by this share around the given ones."
    )


class PrefixDataset(Strict):
    """Random prompts that share prefixes: for prefix caching."""

    prefix_tokens: int = Field(gt=0)
    suffix_tokens: int = Field(gt=0)
    output_tokens: int = Field(gt=0)
    prefixes: int = Field(default=1, gt=0, description="How many different prefixes.")


class Dataset(Strict):
    """Where the prompts come from: exactly one of the kinds."""

    sharegpt: str | HubFile | None = Field(
        default=None, description="A file in ShareGPT format, or one on the hub."
    )
    random: RandomDataset | None = None
    prefix: PrefixDataset | None = None
    jsonl: str | None = Field(
        default=None,
        description="One JSON object a line: {prompt | messages, output_tokens?}.",
    )
    trace: str | None = Field(
        default=None,
        description="JSONL with time stamps: {timestamp_s, input_tokens, output_tokens} or "
        "{timestamp_s, prompt | messages, output_tokens}.",
    )

    @model_validator(mode="after")
    def _exactly_one_kind(self) -> Dataset:
        given = [k for k in ("sharegpt", "random", "prefix", "jsonl", "trace") if getattr(self, k)]
        if len(given) != 1:
            raise ValueError(
                "give exactly one of sharegpt, random, prefix, jsonl or trace"
                + (f", not {' and '.join(given)}" if given else "")
            )
        return self


class Arrival(Strict):
    """How open-loop requests arrive."""

    process: Literal["poisson", "gamma", "constant"] = "poisson"
    burstiness: float = Field(default=1.0, gt=0, description="Shape of gamma; 1 is Poisson.")


class Ramp(Strict):
    """A load that grows during one point, from one rate to another."""

    start_rate: float = Field(gt=0, description="requests/s at the start")
    end_rate: float = Field(gt=0, description="requests/s at the end")
    shape: Literal["linear", "exponential"] = "linear"
    requests: int = Field(gt=0)


class Workload(Strict):
    """A data set and the load points at which it is sent.

    Closed loop: ``concurrency`` levels. Open loop: ``rate`` levels in requests/s, or ``ramp``.
    A ``trace`` data set brings its own times and takes neither.
    """

    dataset: Dataset
    concurrency: list[Annotated[int, Field(gt=0)]] = Field(
        default=[], description="Closed loop: so many requests at a time."
    )
    rate: list[Annotated[float, Field(gt=0)]] = Field(
        default=[], description="Open loop: so many requests a second."
    )
    ramp: Ramp | None = None
    arrival: Arrival = Arrival()
    max_concurrency: int | None = Field(
        default=None, gt=0, description="Open loop: never more than this many in flight."
    )
    requests_per_point: int | list[int] | None = Field(
        default=None,
        description="Requests of each point, or one number per point; 10 x the concurrency "
        "(open loop: 60 s of the rate) unless given.",
    )
    warmup_requests: int | None = Field(
        default=None,
        ge=0,
        description="Uncounted requests before each session's first point; "
        "2 x the highest concurrency unless given.",
    )
    repetitions: int = Field(
        default=1, gt=0, le=1000, description="Times each point is run in a session."
    )
    sessions: int = Field(default=1, gt=0, le=1000, description="Fresh servers.")
    endpoint: Literal["completions", "chat"] = "completions"
    temperature: float = Field(default=0.0, ge=0)
    ignore_eos: bool = Field(
        default=False, description="Run each answer to its full length (fixed lengths)."
    )
    max_input_tokens: int | None = Field(
        default=None, gt=0, description="Leave out longer prompts (ShareGPT: 1024 unless given)."
    )
    max_output_tokens: int | None = Field(
        default=None, gt=0, description="Cut answers at this length."
    )
    max_total_tokens: int | None = Field(
        default=None, gt=0, description="Leave out longer ones (ShareGPT: 2048 unless given)."
    )
    request_timeout_s: float = Field(default=600, gt=0)
    point_time_limit_s: float | None = Field(
        default=None,
        gt=0,
        description="Closed loop: a point sends no further request after so long, so that a "
        "hopelessly slow variant does not hold the study up; the report says where it cut.",
    )
    reset_prefix_cache: bool = Field(default=True, description="Between points.")
    seed: int = 42

    @property
    def points(self) -> int:
        """The number of load points of one repetition."""
        return len(self.concurrency) + len(self.rate) + bool(self.ramp or self.dataset.trace)

    def requests_at(self, index: int) -> int | None:
        """Return how many requests point ``index`` sends; None: as the ramp or trace says."""
        if isinstance(self.requests_per_point, list):
            return self.requests_per_point[index]
        if self.requests_per_point is not None:
            return self.requests_per_point
        if self.concurrency:
            return REQUESTS_PER_CONCURRENCY * self.concurrency[index]
        if self.rate:
            return max(1, round(OPEN_LOOP_S * self.rate[index]))
        return None
