"""The diagnosis: each rule on the case it is for, and silence where nothing was measured."""

from __future__ import annotations

import json

import pytest

from scripts.lib.analysis.diagnosis.diagnose import diagnose
from scripts.lib.analysis.summary import Value
from scripts.lib.load.results import Client, Latency, LoadResult, Point, ServerView
from tests.analysis.materials import (
    NOT_MEASURED,
    comparison,
    failure,
    ledger,
    make_material,
    make_study,
    row,
)
from tests.factories import reference

ONE = make_study({"bf16": {}})
TWO = make_study({"bf16": {}, "int8": {}})


def rules(material):
    return {finding.rule for finding in diagnose(material)}


def only(material, rule):
    found = [finding for finding in diagnose(material) if finding.rule == rule]
    assert len(found) == 1, rules(material)
    return found[0]


def pair(before, after, study=ONE):
    return make_material(study, points=[row("bf16", 8, **before), row("bf16", 32, **after)])


def test_queue_and_ttft_up_with_steady_tpot():
    finding = only(
        pair(
            {"queue_mean_ms": 0.0, "ttft_p95_ms": 100, "tpot_p95_ms": 20},
            {"queue_mean_ms": 300, "ttft_p95_ms": 450, "tpot_p95_ms": 21},
        ),
        "arrivals outrun prefill",
    )
    assert finding.where == "concurrency 8 to concurrency 32"
    assert any("mean queue time (ms)" in line and "0 to 300" in line for line in finding.evidence)
    assert any("TTFT p95 (ms)" in line and "100 to 450" in line for line in finding.evidence)
    assert "prefill" in finding.cause
    assert "Arrival rate" in finding.next_check


def test_ttft_that_rises_without_a_queue_is_not_called_a_queue():
    material = pair(
        {"queue_mean_ms": 0.0, "ttft_p95_ms": 100, "tpot_p95_ms": 20},
        {"queue_mean_ms": 5.0, "ttft_p95_ms": 450, "tpot_p95_ms": 21},
    )
    assert "arrivals outrun prefill" not in rules(material)


def test_kv_usage_up_with_preemptions():
    finding = only(
        pair({"kv_usage_peak": 0.5, "preemptions": 0}, {"kv_usage_peak": 1.0, "preemptions": 7}),
        "KV cache pressure",
    )
    assert len(finding.evidence) == 2


def test_kv_usage_up_without_preemptions_is_no_pressure():
    material = pair(
        {"kv_usage_peak": 0.5, "preemptions": 0}, {"kv_usage_peak": 0.9, "preemptions": 0}
    )
    assert "KV cache pressure" not in rules(material)


def test_ttft_steady_with_tpot_up():
    finding = only(
        pair({"ttft_mean_ms": 100, "tpot_mean_ms": 10}, {"ttft_mean_ms": 110, "tpot_mean_ms": 25}),
        "decode pressure",
    )
    assert "Output lengths" in finding.next_check


def test_throughput_up_with_goodput_down():
    only(
        pair(
            {"output_throughput_tok_s": 800, "goodput_req_s": 5.0},
            {"output_throughput_tok_s": 900, "goodput_req_s": 0.0},
        ),
        "batched beyond the SLO",
    )


def test_without_request_records_the_slo_verdicts_stand_in_for_goodput():
    material = make_material(
        ONE,
        points=[
            row("bf16", 8, output_throughput_tok_s=800),
            row("bf16", 32, passed=False, output_throughput_tok_s=900),
        ],
    )
    finding = only(material, "batched beyond the SLO")
    assert any("above the limit" in line for line in finding.evidence)


def test_failed_requests_and_failed_servers():
    point = row("bf16", 8, sent=80, completed=77, valid=False, oom=3.0)
    material = make_material(TWO, points=[point], failures=[failure("int8")])
    assert any("3 of 80" in line for line in only(material, "requests fail").evidence)
    finding = only(material, "server did not run")
    assert finding.variant == "int8"
    assert any("use less memory" in line for line in finding.evidence)


def latency(mean):
    return Latency(mean=mean, p50=mean, p90=mean, p95=mean, p99=mean, n=80)


def load(level, *, ttft=100.0, tpot=20.0, server=None, cpu=0.1, tokens=(100, 100)):
    point = Point(
        workload_point=0,
        repetition=1,
        concurrency=level,
        sent=80,
        completed=80,
        failed=0,
        start_s=0,
        end_s=10,
        duration_s=10,
        input_tokens=80 * tokens[0],
        output_tokens=80 * tokens[1],
        output_throughput_tok_s=800,
        total_throughput_tok_s=1600,
        ttft_ms=latency(ttft),
        tpot_ms=latency(tpot),
        itl_ms=latency(tpot),
        e2el_ms=latency(ttft + 99 * tpot),
        client=Client(processes=1, cpu_share=cpu, send_lag_p99_ms=1),
        server=server,
        valid=True,
        invalid_reasons=[],
    )
    return [LoadResult(points=[point], model="m", origin_unix_s=0)]


def test_client_bound_from_its_cpu():
    material = make_material(
        ONE, points=[row("bf16", 8)], loads={("bf16", "chat"): load(8, cpu=0.97)}
    )
    finding = only(material, "client-bound")
    assert finding.severity == "critical"
    assert "97 %" in finding.evidence[0]


def test_client_bound_from_the_points_own_reason():
    point = row("bf16", 8, valid=False, invalid_reasons=["the client sent late: 80 ms"])
    assert "sent late" in only(make_material(ONE, points=[point]), "client-bound").evidence[0]


def test_api_server_bound_when_client_and_engine_disagree():
    server = ServerView(ttft_mean_ms=445, tpot_mean_ms=14.6)
    loads = {("bf16", "chat"): load(8, ttft=631, tpot=16.9, server=server)}
    finding = only(make_material(ONE, points=[row("bf16", 8)], loads=loads), "API-server-bound")
    assert "631 ms at the client" in finding.evidence[0]
    assert "16.9" in finding.evidence[1]


def test_a_busy_gpu_or_a_busy_client_is_not_the_api_server():
    server = ServerView(ttft_mean_ms=445, tpot_mean_ms=14.6)
    slow = {"ttft": 631, "tpot": 16.9, "server": server}
    busy_gpu = make_material(
        ONE,
        points=[row("bf16", 8, gpu_utilisation_mean=0.99)],
        loads={("bf16", "chat"): load(8, **slow)},
    )
    busy_client = make_material(
        ONE, points=[row("bf16", 8)], loads={("bf16", "chat"): load(8, cpu=0.99, **slow)}
    )
    assert "API-server-bound" not in rules(busy_gpu) | rules(busy_client)


def test_a_run_that_was_left_out_is_no_evidence():
    server = ServerView(ttft_mean_ms=445, tpot_mean_ms=14.6)
    sound = load(8, ttft=450, tpot=14.7, server=server)
    (late,) = load(8, ttft=900, tpot=20, server=server, cpu=0.97)[0].points
    late = late.model_copy(update={"valid": False, "invalid_reasons": ["the client read late"]})
    runs = [*sound[0].points, *sound[0].points, late]
    loads = {("bf16", "chat"): [sound[0].model_copy(update={"points": runs})]}
    told = row("bf16", 8, runs=2, left_out=["without repetition 3: the client read late"])
    found = rules(make_material(ONE, points=[told], loads=loads))
    assert not found & {"API-server-bound", "client-bound"}
    everything = rules(make_material(ONE, points=[row("bf16", 8)], loads=loads))
    assert "client-bound" in everything


def test_a_gpu_that_waits_for_its_host():
    idle = {"gpu_utilisation_mean": 0.06, "duration_s": 13}
    finding = only(make_material(ONE, points=[row("bf16", 8, **idle)]), "GPU waits for its host")
    assert finding.evidence == ["mean GPU utilisation, concurrency 8: 6 %"]
    assert "enforce-eager" in finding.next_check


@pytest.mark.parametrize(
    ("metrics", "loads", "kind"),
    [
        ({"gpu_utilisation_mean": 0.97, "duration_s": 13}, {}, "concurrency"),
        ({"duration_s": 13}, {}, "concurrency"),
        ({"gpu_utilisation_mean": 0.06, "duration_s": 2}, {}, "concurrency"),  # hardly a sample
        ({"gpu_utilisation_mean": 0.06, "duration_s": 60}, {}, "rate"),  # nobody asks: it may rest
        ({"gpu_utilisation_mean": 0.06, "duration_s": 13}, {"cpu": 0.99}, "concurrency"),
    ],
    ids=["busy", "not measured", "short", "open loop", "slow client"],
)
def test_a_gpu_that_does_not_wait_for_its_host(metrics, loads, kind):
    given = {("bf16", "chat"): load(8, **loads)}
    material = make_material(ONE, points=[row("bf16", 8, kind=kind, **metrics)], loads=given)
    assert "GPU waits for its host" not in rules(material)


def test_throttling():
    finding = only(
        make_material(ONE, points=[row("bf16", 8, thermal_throttled_share=0.4)]), "GPU throttled"
    )
    assert "thermal" in finding.evidence[0]
    assert "40 %" in finding.evidence[0]


def test_starved_baseline():
    levels = {("bf16", "chat"): load(64, tokens=(400, 200))}
    material = make_material(
        TWO,
        points=[row("bf16", 64)],
        loads=levels,
        ledger=[ledger("bf16", kv=20_000), ledger("int8", kv=90_000)],
    )
    finding = only(material, "starved baseline")
    assert "64 requests x 600 tokens = 38,400" in finding.evidence[0]


def test_no_starving_when_nobody_could_hold_it_or_everybody_can():
    levels = {("bf16", "chat"): load(64, tokens=(400, 200))}
    for own, other in ((20_000, 30_000), (90_000, 95_000)):
        material = make_material(
            TWO,
            points=[row("bf16", 64)],
            loads=levels,
            ledger=[ledger("bf16", kv=own), ledger("int8", kv=other)],
        )
        assert "starved baseline" not in rules(material)


def test_prefix_cache_decisive_or_useless():
    assert (
        "60 %"
        in only(
            make_material(ONE, points=[row("bf16", 8, prefix_hit_share=0.6)]),
            "prefix cache is decisive",
        ).evidence[0]
    )
    asked = make_study({"bf16": {"enable_prefix_caching": True}})
    cold = [row("bf16", 8, prefix_hit_share=0.0)]
    only(make_material(asked, points=cold), "prefix cache is useless")
    assert "prefix cache is useless" not in rules(make_material(ONE, points=cold))


def test_smaller_but_slower():
    found = [comparison("int8", 8, "worse", 1.4, metric="tpot_mean_ms")]
    sizes = [ledger("bf16", weights=14.2), ledger("int8", weights=8.1)]
    material = make_material(
        TWO, points=[row("bf16", 8), row("int8", 8)], ledger=sizes, comparisons=found
    )
    finding = only(material, "smaller but slower")
    assert "8.1 GiB" in finding.evidence[0]
    assert "x 1.4" in finding.evidence[1]


def test_answers_of_another_length():
    loads = {
        ("bf16", "chat"): load(8, tokens=(100, 100)),
        ("int8", "chat"): load(8, tokens=(100, 130)),
    }
    material = make_material(TWO, points=[row("bf16", 8), row("int8", 8)], loads=loads)
    assert "+30 %" in only(material, "answers of another length").evidence[0]


METRICS = (
    "queue_mean_ms",
    "ttft_p95_ms",
    "ttft_mean_ms",
    "tpot_p95_ms",
    "tpot_mean_ms",
    "kv_usage_peak",
    "preemptions",
    "waiting_peak",
    "goodput_req_s",
    "prefix_hit_share",
    "output_throughput_tok_s",
    "throttled_share",
    "oom",
    "gpu_utilisation_mean",
)


def test_nothing_is_said_when_nothing_was_measured():
    silent = dict.fromkeys(METRICS, NOT_MEASURED)
    points = [row(v, level, **silent) for v in ("bf16", "int8") for level in (1, 4, 8)]
    assert diagnose(make_material(TWO, points=points)) == []
    assert diagnose(make_material(TWO, points=[])) == []


@pytest.mark.parametrize("gone", METRICS)
def test_a_missing_metric_never_adds_a_finding(gone):
    def points(without):
        values = [dict.fromkeys(METRICS, 1.0), dict.fromkeys(METRICS, 900.0)]
        values[1] |= {"kv_usage_peak": 1.0, "goodput_req_s": 0.1, "tpot_p95_ms": 1.1}
        if without:
            values = [v | {without: Value(missing="not measured")} for v in values]
        return [row("bf16", level, **v) for level, v in zip((1, 8), values, strict=True)]

    everything = rules(make_material(ONE, points=points(None)))
    missing = rules(make_material(ONE, points=points(gone)))
    # Without p95 a rule may look at the mean, which here says "decode" too.
    assert missing - everything <= {"decode pressure"}


def test_every_finding_names_evidence_cause_and_next_check():
    points = [
        row("bf16", 1, kv_usage_peak=0.2, preemptions=0, output_throughput_tok_s=10),
        row(
            "bf16",
            8,
            kv_usage_peak=1.0,
            preemptions=4,
            waiting_peak=3,
            completed=1,
            output_throughput_tok_s=10.5,
        ),
    ]
    findings = diagnose(make_material(ONE, points=points, failures=[failure("bf16")]))
    assert len(findings) >= 4
    for finding in findings:
        assert finding.evidence
        assert finding.cause
        assert finding.next_check
        assert finding.where
    order = [f.severity for f in findings]
    assert order == sorted(order, key=["critical", "warning", "info"].index)


def test_the_teaching_load_model_reads_as_its_authors_read_it():
    model = json.loads(reference("load_model.json").read_text())
    points = [
        row(
            "bf16",
            r["concurrency"],
            passed=r["concurrency"] in model["verdict"]["passes"],
            output_throughput_tok_s=r["output_tok_s"],
            ttft_p95_ms=r["ttft_p95_ms"],
            tpot_p95_ms=r["tpot_p95_ms"],
            kv_usage_peak=r["kv_usage"],
            oom=float(r["oom"]),
        )
        for r in model["rows"]
    ]
    findings = {f.rule: f for f in diagnose(make_material(ONE, points=points))}
    assert findings["batched beyond the SLO"].where == "concurrency 32 to concurrency 64"
    assert findings["throughput has levelled off"].where == "concurrency 32 to concurrency 64"
    assert findings["requests fail"].where == "concurrency 64"
    assert "decode pressure" not in findings
