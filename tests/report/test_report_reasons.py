"""The decision's reasons: each said once, in a reader's words."""

from __future__ import annotations

import copy

from scripts.lib.analysis.summary import Summary
from scripts.lib.report.reasons import headline, reasons
from scripts.lib.report.render import render_markdown
from scripts.lib.report.view import build_report
from tests.report.sample_summary import sample

LATE = "no valid load point on chat: the client read late"
FEW = "3 lost and 0 gained of 96 items"


def undecided() -> Summary:
    """Return a study that was too noisy to decide, as ``decide`` words it."""
    data = copy.deepcopy(sample()) | {"timelines": []}
    told = [f"bf16: not measured soundly: {LATE}", f"int8-w8a8: quality not proven: {FEW}"]
    data["decision"] |= {
        "outcome": "undecided",
        "variant": None,
        "headline": f"No recommendation yet, for want of evidence. {told[0]}. {told[1]}.",
        "reasons": told,
        "rejected": {},
        "rollback": [],
        "rollback_command": None,
    }
    return Summary.model_validate(data)


def test_the_headline_is_one_sentence():
    assert headline(undecided().decision) == "No recommendation yet, for want of evidence."


def test_each_reason_is_said_once():
    assert reasons(undecided()) == [
        f"bf16: not measured soundly: {LATE}.",
        f"int8-w8a8: quality not proven: {FEW}.",
    ]


def test_answer_and_decision_say_the_same():
    markdown = render_markdown(build_report(undecided()))
    assert markdown.count(f"- bf16: not measured soundly: {LATE}") == 2


def test_without_reasons_the_rejected_say_why():
    data = copy.deepcopy(sample())
    data["decision"] |= {
        "outcome": "none qualifies",
        "variant": None,
        "headline": "No variant qualifies. bf16: slo: too slow. int8-w8a8: slo: too slow.",
        "reasons": [],
        "rejected": {"bf16": ["slo: too slow"], "int8-w8a8": ["slo: too slow"]},
    }
    found = reasons(Summary.model_validate(data))
    assert found == ["bf16: slo: too slow.", "int8-w8a8: slo: too slow."]


def test_a_recommendation_keeps_what_its_headline_adds():
    data = copy.deepcopy(sample())
    data["decision"]["headline"] = "Serve int8-w8a8. Provided that its kernel is shown."
    found = reasons(Summary.model_validate(data))
    assert found[0] == "Provided that its kernel is shown."
    assert len(found) == 1 + len(data["decision"]["reasons"])


def test_a_variant_that_might_be_better_is_said_once_and_at_length():
    data = copy.deepcopy(sample())
    gain = "fp8 yields 1.33 times bf16's output tokens/s, but its quality is undecided"
    other = "int8 yields 1.2 times bf16's output tokens/s, but its SLO is undecided"
    data["decision"] |= {
        "headline": f"Keep bf16: 98.32 tokens/s. Provided that it holds. {gain} "
        f"(1,775 more probe items might prove it). {other}.",
        "reasons": ["Kernel path: ran.", f"{gain}: {FEW}", f"{other}: not judged"],
    }
    assert reasons(Summary.model_validate(data)) == [
        "Provided that it holds.",
        f"{gain}: {FEW}.",
        f"{other}: not judged.",
        "Kernel path: ran.",
    ]


def test_a_cause_that_several_variants_share_is_said_once():
    data = sample()
    shared = data["findings"][0] | {"rule": "GPU waits for its host", "where": "concurrency 1"}
    data["findings"] = [
        shared | {"variant": name, "evidence": [f"mean GPU utilisation: {share} %"]}
        for name, share in (("bf16", 9), ("int8-w8a8", 6))
    ] + [data["findings"][0]]
    markdown = render_markdown(build_report(Summary.model_validate(data)))
    assert markdown.count("GPU waits for its host (concurrency 1 of chat)") == 1
    assert markdown.count(f"Likely cause: {shared['cause']}") == 2  # the other rule has its own
    assert "- bf16: mean GPU utilisation: 9 %\n- int8-w8a8: mean GPU utilisation: 6 %" in markdown


def test_findings_of_several_loads_name_them():
    data = sample()
    data["findings"] = [
        data["findings"][0] | {"variant": name, "where": where}
        for name, where in (("bf16", "concurrency 1"), ("int8-w8a8", "concurrency 4"))
    ]
    markdown = render_markdown(build_report(Summary.model_validate(data)))
    assert markdown.count("TTFT up TPOT steady (chat)") == 1
    assert "- int8-w8a8, concurrency 4: TTFT mean rose" in markdown
