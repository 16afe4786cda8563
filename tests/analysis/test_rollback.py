"""Rollback conditions and alert rules: thresholds, metric names, what Prometheus makes of them."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
import yaml

from scripts.lib.analysis.decision.alerts import alert_name, alert_rules, alerts_text
from scripts.lib.analysis.decision.decide import decide
from scripts.lib.analysis.summary import Value
from scripts.lib.telemetry.metric_names import EVERY, HISTOGRAMS, exported_name, version_tuple
from scripts.lib.telemetry.metrics_text import parse_metrics
from tests.analysis.materials import failure, make_material, make_study, quality, row, startup

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not installed (Debian package prometheus)"
)
MEASURED = {
    "output_throughput_tok_s": 80.0,
    "ttft_mean_ms": Value(value=100.0, low=95.0, high=105.0),
    "tpot_mean_ms": Value(value=20.0),
    "ttft_p95_ms": 180.0,
    "kv_usage_peak": 0.4,
    "waiting_peak": 2.0,
    "preemptions": 0.0,
}


def decision(version="0.32.0", views=None, **keys):
    study = make_study({"bf16": {}, "int8": {}}, **keys)
    points = [row("int8", 1, **MEASURED), row("int8", 8, **MEASURED)]
    material = make_material(
        study,
        points=points,
        failures=[failure("bf16")],
        startups={"int8": startup("int8", version)},
        **({"quality": views} if views else {}),
    )
    made = decide(material)
    assert made.variant == "int8"
    return made.model_copy(update={"rollback_command": ["python", "-m", "vllm", "--x", '{"a":1}']})


def condition(made, name):
    return next(c for c in made.rollback if c.name.startswith(name))


def test_slo_limits_become_thresholds_in_seconds():
    found = condition(decision(), "TTFT p95 over the SLO")
    assert found.expression == (
        "histogram_quantile(0.95, sum by (le, instance) "
        "(rate(vllm:time_to_first_token_seconds_bucket[5m]))) > 0.5"
    )
    assert "slo.ttft_p95_ms = 500; measured 180 on chat, concurrency 8" in found.from_


def test_drift_threshold_comes_from_the_measured_interval_and_load():
    found = condition(decision(), "TTFT drifts")
    assert "> 0.126)" in found.expression  # 105 ms x 1.2
    assert "vllm:num_requests_running) <= 8" in found.expression
    without_interval = condition(decision(), "TPOT drifts")
    assert "> 0.02568)" in without_interval.expression  # 20 ms x 1.07 x 1.2


def test_kv_preemptions_and_queue():
    made = decision()
    assert condition(made, "KV cache").expression == (
        "max by (instance) (vllm:kv_cache_usage_perc) > 0.9"
    )
    assert condition(made, "Preemptions").expression.endswith("[10m])) > 0")
    assert condition(made, "Queue grows").expression.endswith("> 2")


def test_what_was_not_measured_makes_no_condition():
    study = make_study({"bf16": {}}, slo={"success_rate": None})
    made = decide(make_material(study, points=[row("bf16", 1, output_throughput_tok_s=1.0)]))
    names = {c.name for c in made.rollback}
    assert names == {"Server restarts", "Another kernel path after a restart"}


def test_conditions_no_metric_tells_are_words_only():
    made = decision()
    kernel = condition(made, "Another kernel path")
    assert kernel.expression is None
    assert "SomeKernel" in kernel.words
    assert "lose more than 2 of 48 items" in condition(made, "Quality falls").words


def test_the_allowed_loss_counts_the_items_with_two_grades():
    views = [quality("bf16", "baseline"), quality("int8", "non-inferior")]
    views[1] = views[1].model_copy(update={"paired": 20})
    made = decision(views=views)
    assert "lose more than 1 of 20 items" in condition(made, "Quality falls").words


def test_no_recommendation_no_conditions():
    study = make_study({"bf16": {}})
    made = decide(make_material(study, points=[], failures=[failure("bf16")]))
    assert made.rollback == []
    assert alert_rules("small", made) == {"groups": []}
    assert "nothing to roll back" in alerts_text("small", made)


@pytest.mark.parametrize(
    ("version", "tpot", "itl", "kv"),
    [
        (
            "0.8.5.post1",
            "vllm:time_per_output_token_seconds",
            "vllm:time_per_output_token_seconds",
            "vllm:gpu_cache_usage_perc",
        ),
        (
            "0.10.2",
            "vllm:time_per_output_token_seconds",
            "vllm:inter_token_latency_seconds",
            "vllm:kv_cache_usage_perc",
        ),
        (
            "0.32.0",
            "vllm:request_time_per_output_token_seconds",
            "vllm:inter_token_latency_seconds",
            "vllm:kv_cache_usage_perc",
        ),
        (
            None,
            "vllm:request_time_per_output_token_seconds",
            "vllm:inter_token_latency_seconds",
            "vllm:kv_cache_usage_perc",
        ),
    ],
)
def test_names_follow_the_engines_version(version, tpot, itl, kv):
    assert exported_name("tpot", version) == tpot
    assert exported_name("itl", version) == itl
    assert exported_name("kv_cache_usage", version) == kv


@pytest.mark.parametrize(
    "version", ["0.8.5", "0.9.1", "0.10.1", "0.10.2", "0.14.0", "0.32.0", None]
)
@pytest.mark.parametrize("quantity", sorted(EVERY))
def test_what_a_rule_asks_for_a_scrape_of_that_version_is_read_by(quantity, version):
    """One table: a name in an alert is a name that the reader of scrapes knows."""
    name = exported_name(quantity, version)
    if quantity in HISTOGRAMS:
        text = f"{name}_sum 6\n{name}_count 3\n"
    else:
        text = f'{name}{{finished_reason="stop"}} 1\n'
    found = parse_metrics(text).model_dump(exclude_defaults=True)
    values = found.get("histograms", {}) | found
    old_gaps = quantity == "itl" and version_tuple(version) < (0, 10, 2)  # read as TPOT, once
    wanted = {"finished_requests": "requests_by_finish_reason"}.get(quantity, quantity)
    assert values.get("tpot" if old_gaps else wanted)


def test_versions_are_compared_as_numbers():
    assert version_tuple("0.10.1rc2") < version_tuple("0.10.2") < version_tuple("0.11")
    assert version_tuple("v0.9.2+cu128") == (0, 9, 2)


def test_every_metric_in_the_rules_is_one_vllm_exports():
    from tests.factories import reference

    exported = set(
        re.findall(
            r"^([a-z_]+(?::[a-z0-9_]+)?)[{ ]",
            reference("h200/fp8/metrics.prom").read_text(),
            flags=re.MULTILINE,
        )
    )
    slo = {"ttft_p95_ms": 500, "tpot_mean_ms": 50, "itl_p99_ms": 90, "e2el_p99_ms": 9000}
    made = decision("0.25.1", slo={**slo, "kv_usage_max": 0.9, "preemptions_max": 0})
    used = set()
    for found in made.rollback:
        text = found.expression or ""
        used |= set(re.findall(r"vllm:[a-z0-9_]+|http_requests_total|process_[a-z_]+", text))
    assert len(used) >= 9
    assert used <= exported


def test_alert_file_holds_command_labels_and_unique_names():
    made = decision()
    text = alerts_text("small", made)
    rules = yaml.safe_load(text)["groups"][0]["rules"]
    names = [rule["alert"] for rule in rules]
    assert len(set(names)) == len(names) == sum(c.expression is not None for c in made.rollback)
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) for name in names)
    assert all(rule["labels"]["variant"] == "int8" for rule in rules)
    assert "--x" in rules[0]["annotations"]["rollback_command"]
    assert alert_name("TTFT p95 over the SLO") == "ServingTtftP95OverTheSlo"


def test_braces_in_a_command_are_not_a_prometheus_template():
    made = decision().model_copy(update={"rollback_command": ["x", '{"a":{{"b":1}}}']})
    assert (
        "{{ `{{` }}"
        in yaml.safe_load(alerts_text("small", made))["groups"][0]["rules"][0]["annotations"][
            "rollback_command"
        ]
    )


def promtool(*arguments):
    return subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, check=False)


@needs_promtool
def test_promtool_accepts_the_file(tmp_path):
    path = tmp_path / "alerts.yaml"
    slo = {f"{m}_{s}_ms": 100 for m in ("ttft", "tpot", "itl", "e2el") for s in ("mean", "p99")}
    path.write_text(alerts_text("small", decision(slo={**slo, "preemptions_max": 3})))
    checked = promtool("check", "rules", str(path))
    assert checked.returncode == 0, checked.stderr
    assert "rules found" in checked.stdout


def series(name, values, **labels):
    text = ",".join(f'{k}="{v}"' for k, v in {"instance": "a:8000", **labels}.items())
    return {"series": f"{name}{{{text}}}", "values": values}


@needs_promtool
def test_prometheus_fires_on_bad_series_and_stays_quiet_on_good_ones(tmp_path):
    path = tmp_path / "alerts.yaml"
    path.write_text(alerts_text("small", decision()))
    bucket = "vllm:time_to_first_token_seconds_bucket"
    bad = [
        series(bucket, "0+1x60", le="0.25"),
        series(bucket, "0+10x60", le="2.5"),
        series(bucket, "0+10x60", le="+Inf"),
        series("vllm:kv_cache_usage_perc", "0.95x60", engine="0"),
        series("vllm:num_requests_running", "4x60", engine="0"),
        series("vllm:num_requests_waiting", "9x60", engine="0"),
        series("vllm:num_preemptions_total", "0+1x60", engine="0"),
        series("vllm:request_success_total", "0+1x60", finished_reason="error"),
        series("vllm:request_success_total", "0+9x60", finished_reason="stop"),
        series("vllm:request_time_per_output_token_seconds_sum", "0+1x60"),
        series("vllm:request_time_per_output_token_seconds_count", "0+10x60"),
    ]
    good = [
        series(bucket, "0+10x60", le="0.25", instance="b:8000"),
        series(bucket, "0+10x60", le="+Inf", instance="b:8000"),
        series("vllm:kv_cache_usage_perc", "0.4x60", instance="b:8000"),
        series("vllm:num_requests_running", "4x60", instance="b:8000"),
        series("vllm:num_requests_waiting", "1x60", instance="b:8000"),
        series("vllm:num_preemptions_total", "3x60", instance="b:8000"),
        series("vllm:request_success_total", "0+9x60", finished_reason="stop", instance="b:8000"),
        series("vllm:request_time_per_output_token_seconds_sum", "0+0.2x60", instance="b:8000"),
        series("vllm:request_time_per_output_token_seconds_count", "0+10x60", instance="b:8000"),
    ]
    firing = {
        "Ttft p95 over": "ServingTtftP95OverTheSlo",
        "kv": "ServingKvCacheNearlyFull",
        "queue": "ServingQueueGrowsBeyondWhatWasMeasured",
        "preempted": "ServingPreemptions",
        "errors": "ServingRequestsEndInAnError",
        "drift": "ServingTpotDriftsFromWhatWasMeasured",
    }
    rules = {r["alert"]: r for r in yaml.safe_load(path.read_text())["groups"][0]["rules"]}
    checks = []
    for name in firing.values():
        rule = rules[name]
        expected = {
            "exp_labels": {"instance": "a:8000", **rule["labels"]},
            "exp_annotations": rule["annotations"],
        }
        checks.append({"eval_time": "30m", "alertname": name, "exp_alerts": [expected]})
    test = {
        "rule_files": ["alerts.yaml"],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": [*bad, *good], "alert_rule_test": checks}],
    }
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test))
    checked = promtool("test", "rules", str(tmp_path / "test.yaml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_recommended_baseline_has_conditions_but_nothing_to_go_back_to():
    study = make_study({"bf16": {}})
    made = decide(
        make_material(
            study, points=[row("bf16", 1, **MEASURED)], quality=[quality("bf16", "baseline")]
        )
    )
    assert made.variant == "bf16"
    assert made.rollback
    assert made.rollback_command is None
    assert "rollback_command" not in alerts_text("small", made)
