"""Realised lengths: the quick way and the careful way agree, and nothing is made up."""

from __future__ import annotations

import gzip
import json

import pytest

from scripts.lib.analysis.points.lengths import _parsed_columns, _two_columns, realised_lengths
from scripts.lib.analysis.points.wholeness import RecordError
from tests.factories import record, write_requests


def rows(count=50):
    times = {"sent_s": 1.0, "first_token_s": 1.5, "last_token_s": 2.0}
    return [
        record(point=0, index=i, input_tokens=i, output_tokens=2 * i + 1, ok=i % 7 > 0, **times)
        for i in range(count)
    ]


def test_both_ways_agree(tmp_path):
    path = tmp_path / "requests.jsonl.gz"
    write_requests(path, rows())
    quick, careful = _two_columns(path), _parsed_columns(path)
    assert [list(a) for a in quick] == [list(b) for b in careful]
    assert len(quick[0]) == sum(i % 7 > 0 for i in range(50))


def test_records_written_in_another_way_are_parsed(tmp_path):
    path = tmp_path / "requests.jsonl.gz"
    with gzip.open(path, "wt") as file:
        for row in rows():
            shuffled = dict(sorted(row.items()))
            file.write(json.dumps(shuffled, separators=(",", ":")) + "\n")
    assert list(_two_columns(path)[1]) == list(_parsed_columns(path)[1])


def test_unknown_token_counts_are_left_out_not_zero(tmp_path):
    path = tmp_path / "runs" / "a" / "chat" / "session1" / "requests.jsonl.gz"
    path.parent.mkdir(parents=True)
    some = rows(8)
    some[1]["input_tokens"] = None
    write_requests(path, some)
    found = realised_lengths(tmp_path, {("a", "chat"): []})
    assert found["a", "chat"]["input"]["min"] == 2.0


def test_a_damaged_file_gives_no_lengths(tmp_path):
    path = tmp_path / "runs" / "a" / "chat" / "session1" / "requests.jsonl.gz"
    path.parent.mkdir(parents=True)
    write_requests(path, rows())
    path.write_bytes(path.read_bytes()[:-20])
    assert realised_lengths(tmp_path, {("a", "chat"): []}) == {("a", "chat"): {}}
    with pytest.raises((RecordError, EOFError)):
        _two_columns(path)
