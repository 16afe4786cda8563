"""What a load point's remarks say about how far it may be trusted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from scripts.lib.analysis.summary import PointRow

_JUDGED = re.compile(r"(?P<key>\w+) is judged from (?P<n>\d+) samples; ")
_WITHHELD = re.compile(r"too few: n=(?P<n>\d+), ")
_RUNS = re.compile(r" \(in (?P<some>\d+) of (?P<all>\d+) runs\)$")
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_CUT = re.compile(r"cut short: (?P<sent>\d+) of (?P<wanted>\d+) requests were sent ")


def thin_samples(row: PointRow, keys: Iterable[str] | None = None) -> dict[str, int]:
    """Return the latency limits that were judged from too few samples, each with how many.

    Args:
        row: The load point.
        keys: The limits of the SLO, whose percentile may be withheld without a remark on it;
            None: only remarks count.
    """
    if row.slo_pass is None:
        return {}
    found: dict[str, int] = {}
    for key in keys or ():
        value = row.metrics.get(key)
        withheld = _WITHHELD.match(value.missing or "") if value else None
        if withheld:
            found[key] = int(withheld["n"])
    for warning in row.warnings:
        if judged := _JUDGED.match(warning):
            found[judged["key"]] = int(judged["n"])
    return found


def samples_of_verdict(row: PointRow) -> int | None:
    """Return from how few samples a point passed or failed the SLO; None: from enough.

    A point that misses one limit for which it has enough samples fails for certain.
    """
    thin = thin_samples(row)
    if row.slo_pass is False:
        missed = {sentence.partition(":")[0] for sentence in row.slo_failed}
        if not missed <= set(thin):
            return None
        thin = {key: n for key, n in thin.items() if key in missed}
    return min(thin.values(), default=None)


def cut_words(row: PointRow) -> str | None:
    """Return how many requests each run of a point cut by its time limit sent; None: not cut."""
    cuts = [cut for warning in row.warnings if (cut := _CUT.match(warning))]
    if not cuts:
        return None
    sent = sorted({int(cut["sent"]) for cut in cuts})
    span = str(sent[0]) if len(sent) == 1 else f"{sent[0]} to {sent[-1]}"
    return f"cut: {span} of {max(int(cut['wanted']) for cut in cuts)} requests"


def fold_remarks(remarks: Sequence[str]) -> list[str]:
    """Return remarks of runs that differ in numbers only as one, with the range of each number."""
    alike: dict[str, list[str]] = {}
    for remark in remarks:
        some_runs = _RUNS.search(remark)
        words = _NUMBER.sub("#", _RUNS.sub("", remark))
        alike.setdefault(words if some_runs else remark, []).append(remark)
    return [group[0] if len(group) == 1 else _folded(group) for group in alike.values()]


def _folded(remarks: Sequence[str]) -> str:
    runs = [found for remark in remarks if (found := _RUNS.search(remark))]
    bare = [_RUNS.sub("", remark) for remark in remarks]
    columns = zip(*(_NUMBER.findall(text) for text in bare), strict=True)
    numbers = iter([_range(column) for column in columns])
    text = _NUMBER.sub(lambda _: next(numbers), bare[0])
    some, total = sum(int(found["some"]) for found in runs), int(runs[0]["all"])
    return text if some >= total else f"{text} (in {some} of {total} runs)"


def _range(numbers: Sequence[str]) -> str:
    ordered = sorted(numbers, key=lambda text: float(text.replace(",", "")))
    return ordered[0] if ordered[0] == ordered[-1] else f"{ordered[0]} to {ordered[-1]}"
