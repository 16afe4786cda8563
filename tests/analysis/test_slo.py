import numpy as np
import pytest

from scripts.lib.judging.repeats import select
from scripts.lib.judging.slo import Trial, judge
from scripts.lib.study.models import Slo
from tests import factories

LATE = {"valid": False, "invalid_reasons": ["the client sent late"]}


def trial(ttft_ms=100.0, *, failed=0, kv=None, preemptions=0.0, oom=0, records=True, **values):
    """Return one run of 40 requests."""
    rows = factories.simulate_records(np.random.default_rng(3), 4, 40, ttft_ms, 20, failed=failed)
    done = [row for row in rows if row["ok"]]
    samples = {
        "ttft": np.array([1000 * (r["first_token_s"] - r["sent_s"]) for r in done]),
        "e2el": np.array([1000 * (r["last_token_s"] - r["sent_s"]) for r in done]),
    }
    point = factories.make_point(rows, concurrency=4, **values)
    return Trial(point, samples if records else None, kv, preemptions, oom)


def keys(sentences):
    return [sentence.split(":")[0] for sentence in sentences]


def test_limits_are_kept_or_missed_with_a_sentence():
    assert judge(Slo(ttft_p95_ms=120), [trial()]).passed is True
    missed = judge(Slo(ttft_p95_ms=90, e2el_p99_ms=1e6), [trial()])
    assert missed.passed is False
    assert keys(missed.missed) == ["ttft_p95_ms"]
    assert missed.missed[0].endswith(" ms is above the limit 90 ms")


def test_without_records_the_points_own_numbers_are_judged():
    assert judge(Slo(ttft_p95_ms=120), [trial(records=False)]).passed is True
    assert judge(Slo(ttft_p95_ms=90), [trial(records=False)]).passed is False


def test_failures_kv_cache_and_preemptions():
    slo = Slo(kv_usage_max=0.9, preemptions_max=0)
    verdict = judge(slo, [trial(failed=2, kv=0.95, preemptions=1.0, oom=2)])
    assert keys(verdict.missed) == ["success_rate", "oom", "kv_usage_max", "preemptions_max"]
    assert judge(Slo(success_rate=0.5), [trial(failed=2)]).passed is True


def test_what_was_not_measured_is_not_passed():
    verdict = judge(Slo(kv_usage_max=0.9), [trial(kv=None)])
    assert verdict.passed is None
    assert verdict.unjudged == ["kv_usage_max: not measured, so its limit was not judged"]


def test_without_a_limit_nothing_passes():
    assert judge(Slo(success_rate=None, oom=None), [trial()]).passed is None


def test_a_run_of_a_late_client_is_left_out_of_three():
    slo = Slo(ttft_p95_ms=120)
    assert judge(slo, [trial(), trial(900, **LATE), trial()]).passed is True
    assert judge(slo, [trial(), trial(900), trial()]).passed is False


@pytest.mark.parametrize(
    ("late", "runs", "enough"),
    [(1, 1, False), (1, 2, False), (1, 3, True), (2, 3, False), (1, 4, True), (2, 4, False)],
)
def test_more_than_half_of_the_runs_must_be_sound(late, runs, enough):
    trials = [trial(**LATE)] * late + [trial()] * (runs - late)
    chosen = select(trials)
    assert chosen.enough is chosen.valid is enough
    assert len(chosen.used) == (runs - late if enough else runs)
    assert judge(Slo(ttft_p95_ms=120), trials).passed is (True if enough else None)


def test_failed_requests_are_never_left_out():
    """Neither where they alone are wrong, nor where the client was late besides."""
    both = ["3 of 40 requests failed", "the client sent late"]
    for failing in (trial(failed=3), trial(failed=3, invalid_reasons=both)):
        trials = [trial(), failing, trial()]
        assert select(trials).valid is False
        assert keys(judge(Slo(), trials).missed) == ["success_rate"]
        assert judge(Slo(success_rate=0.9), trials).passed is True
    assert len(select([trial(), trial(failed=3, invalid_reasons=both), trial()]).used) == 2


def test_late_runs_do_not_hide_a_failing_one():
    verdict = judge(Slo(), [trial(**LATE), trial(**LATE), trial(failed=3)])
    assert verdict.passed is False
