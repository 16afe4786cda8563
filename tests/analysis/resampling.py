"""Simulates studies from recorded requests, to learn how often the comparison is wrong.

Source: two recorded sessions of one and the same H200 server (``bf16``, and ``gptq``, which
was served unquantized), one run a level, at four levels. So a recorded spread is that between two
sessions and has one degree of freedom; up to 10 requests were sent at once at the lowest two
levels. A simulated study has a baseline ``a`` and a variant ``b``, three repetitions of each
level, and one server for each session.
"""

import heapq
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from scipy.stats import norm

from scripts.lib.analysis.comparison.comparisons import compare
from scripts.lib.analysis.points.digest import Digest
from scripts.lib.study.models import Study
from tests import factories

SESSIONS = ("bf16", "gptq")
ONE = [factories.record(sent_s=0, first_token_s=1, last_token_s=2, input_tokens=1, output_tokens=2)]
POINT = factories.make_point(ONE)
Rng = np.random.Generator


@dataclass(frozen=True)
class Recorded:
    """One level in both sessions; arrays of shape (2, requests)."""

    level: int
    ttft_s: np.ndarray
    decode_s: np.ndarray
    tokens: np.ndarray
    duration_s: np.ndarray

    @property
    def spread(self) -> dict[str, float]:
        """How far one run is from the mean of both, in relative terms, for each metric."""
        tpot = [
            np.mean((d / (t - 1))[t > 1]) for d, t in zip(self.decode_s, self.tokens, strict=True)
        ]
        pairs = {
            "ttft": self.ttft_s.mean(axis=1),
            "tpot": tpot,
            "throughput": self.tokens.sum(axis=1) / self.duration_s,
        }
        return {name: abs(float(np.log(a / b))) / 2**0.5 for name, (a, b) in pairs.items()}


def record_levels(levels=factories.H200_LEVELS) -> list[Recorded]:
    return [_recorded(level) for level in levels]


def _recorded(level: int) -> Recorded:
    both = [factories.h200_records(name, level) for name in SESSIONS]
    return Recorded(
        level,
        np.array([[r["first_token_s"] - r["sent_s"] for r in s] for s in both]),
        np.array([[r["last_token_s"] - r["first_token_s"] for r in s] for s in both]),
        np.array([[r["output_tokens"] for r in s] for s in both]),
        np.array([max(r["last_token_s"] for r in s) - s[0]["sent_s"] for s in both]),
    )


def draw_requests(rng: Rng, point: Recorded) -> Callable[[float], dict]:
    """Draw a study's prompts at one level once; then runs that resample their requests.

    Each request of a run takes its times from one of the two sessions at random.
    """
    prompts = rng.integers(0, point.tokens.shape[1], point.tokens.shape[1])

    def run(factor: float) -> dict:
        source = rng.integers(0, 2, len(prompts))
        ttft, decode, tokens = (
            values[source, prompts] for values in (point.ttft_s, point.decode_s, point.tokens)
        )
        return _measured(point, factor * ttft, factor * decode, tokens)

    return run


def draw_spread(rng: Rng, point: Recorded) -> Callable[[float], dict]:
    """Draw runs that differ, in each metric, by as much as the two recorded sessions did."""
    spread = point.spread
    once = _measured(point, point.ttft_s[0], point.decode_s[0], point.tokens[0])

    def run(factor: float) -> dict:
        slower = {"ttft": factor, "tpot": factor, "throughput": 1 / factor}
        return {
            name: value * slower[name] * rng.lognormal(0, spread[name])
            for name, value in once.items()
        }

    return run


def _measured(point: Recorded, ttft, decode, tokens) -> dict:
    several = tokens > 1
    return {
        "ttft": 1000 * ttft,
        "tpot": 1000 * decode[several] / (tokens[several] - 1),
        "throughput": float(tokens.sum() / makespan(ttft + decode, point.level)),
    }


def makespan(durations, concurrency: int) -> float:
    """Return how long a closed loop takes for requests of these durations."""
    free = [0.0] * concurrency
    for duration in durations:
        heapq.heapreplace(free, free[0] + duration)
    return max(free)


def simulate_study(
    rng: Rng,
    recorded: list[Recorded],
    draw: Callable[[Rng, Recorded], Callable[[float], dict]],
    *,
    slowdown: float = 1.0,
    repetitions: int = 3,
    sessions: int = 1,
    session_spread: float = 0.0,
    variants: str = "ab",
    disturbed: Mapping[str, float] = MappingProxyType({}),
) -> list[Digest]:
    """Return the digests of equal variants but for ``b``, which takes ``slowdown`` times as long.

    ``session_spread``: relative spread between servers, on top of that of runs.
    ``disturbed``: variant -> relative spread of each of its runs, on top of the recorded one.
    """
    runs = [draw(rng, point) for point in recorded]
    digests = []
    for variant in variants:
        factor = slowdown if variant == "b" else 1.0
        for session in range(1, sessions + 1):
            server = factor * rng.lognormal(0, session_spread)
            for point, run in zip(recorded, runs, strict=True):
                digests += [
                    _digest(
                        point,
                        _disturbed(rng, run(server), disturbed.get(variant, 0.0)),
                        variant,
                        session,
                        repetition,
                    )
                    for repetition in range(1, repetitions + 1)
                ]
    return digests


def _disturbed(rng: Rng, measured: dict, spread: float) -> dict:
    return {name: value * rng.lognormal(0, spread) for name, value in measured.items()}


def _digest(point: Recorded, measured: dict, variant: str, session: int, repetition: int) -> Digest:
    raw = POINT.model_copy(
        update={
            "concurrency": point.level,
            "repetition": repetition,
            "output_throughput_tok_s": measured["throughput"],
        }
    )
    return Digest(
        variant=variant,
        workload="w",
        session=session,
        kind="concurrency",
        level=float(point.level),
        point=raw,
        samples={"ttft": measured["ttft"], "tpot": measured["tpot"]},
        good=None,
        series={},
        oom=0,
        warnings=(),
        source=f"runs/{variant}/w/session{session}/load.json",
    )


def study_of_two() -> Study:
    return Study.model_validate(
        {
            "study": "two",
            "baseline": "a",
            "engine": {"address": "http://127.0.0.1:8000"},
            "checkpoints": {"a": {"path": "a"}},
            "variants": {"a": {"checkpoint": "a"}, "b": {"checkpoint": "a"}},
            "workloads": {
                "w": {
                    "dataset": {"sharegpt": "x.json"},
                    "concurrency": list(factories.H200_LEVELS),
                }
            },
        }
    )


def rates(draw, studies: int, **how) -> dict[str, float]:
    """Return the share of simulated studies, and of comparisons, that call a difference."""
    rng, study, recorded = np.random.default_rng(11), study_of_two(), record_levels()
    found: dict[str, int] = {"any": 0}
    for _ in range(studies):
        called = [
            f"{c.metric} at {c.level:g}"
            for c in compare(study, simulate_study(rng, recorded, draw, **how))
            if c.outcome in ("better", "worse")
        ]
        found["any"] += bool(called)
        for name in called:
            found[name] = found.get(name, 0) + 1
    return {name: count / studies for name, count in found.items()}


def ceiling(spread: float, runs: int) -> float:
    """Return how often one z-test alone, told the true spread, finds 10 % at the 5 % level."""
    error = spread * (2 / runs) ** 0.5
    return float(norm.sf(norm.isf(0.025) - np.log(1.1) / error))


METRICS = {
    "throughput": "output_throughput_tok_s",
    "ttft": "ttft_mean_ms",
    "tpot": "tpot_mean_ms",
}


def print_table(studies: int, **how) -> None:
    """Print for each metric and level: called different when equal, found when 10 % apart."""
    equal = rates(draw_spread, studies, **how)
    apart = rates(draw_spread, studies, slowdown=1.1, **how)
    runs = 3 * how.get("sessions", 1)
    print(f"{how}: equal, any of the study's comparisons: {equal['any']:.2%}")
    for point in record_levels():
        for metric, spread in point.spread.items():
            name = f"{METRICS[metric]} at {point.level}"
            print(
                f"{name:32} spread {spread:7.2%}  equal {equal.get(name, 0):7.2%}  "
                f"10 % {apart.get(name, 0):7.2%}  ceiling {ceiling(spread, runs):7.2%}"
            )


if __name__ == "__main__":  # python -m tests.analysis.resampling [STUDIES]
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for settings in ({}, {"sessions": 3}, {"variants": "abcd"}):
        print_table(number, **settings)
        print(f"requests resampled, equal: {rates(draw_requests, number, **settings)['any']:.2%}")
