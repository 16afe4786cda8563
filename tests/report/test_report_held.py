"""Which metric a report shows where imported results do not hold the usual one."""

from __future__ import annotations

import pytest

from scripts.lib.analysis.summary import Value
from scripts.lib.report.held import latency_of, throughput_of
from tests.report.sample_summary import sample_summary

ROWS = sample_summary().points


def without(*names):
    """Return the sample's rows with these metrics gone from every one of them."""
    gone = dict.fromkeys(names, Value(missing="nobody noted it"))
    return [row.model_copy(update={"metrics": row.metrics | gone}) for row in ROWS]


def only(key):
    """Return rows that hold one metric, at one load."""
    rows = without(*{name for row in ROWS for name in row.metrics})
    rows[-1] = rows[-1].model_copy(update={"metrics": rows[-1].metrics | {key: Value(value=5.0)}})
    return rows


def test_the_usual_metric_is_shown_where_any_row_has_it():
    assert throughput_of(ROWS) == "output_throughput_tok_s"
    assert latency_of(ROWS, "tpot") == "tpot_mean_ms"


@pytest.mark.parametrize("key", ["total_throughput_tok_s", "request_throughput"])
def test_another_throughput_stands_in(key):
    assert throughput_of(only(key)) == key


@pytest.mark.parametrize("key", ["ttft_p99_ms", "ttft_p95_ms", "ttft_p50_ms"])
def test_a_percentile_stands_in_for_the_mean(key):
    assert latency_of(only(key), "ttft") == key


def test_with_nothing_at_all_the_usual_one_says_so():
    rows = without(*{name for row in ROWS for name in row.metrics})
    assert throughput_of(rows) == "output_throughput_tok_s"
    assert latency_of(rows, "ttft") == "ttft_mean_ms"
