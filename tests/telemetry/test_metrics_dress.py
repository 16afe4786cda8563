"""A scrape says the same however it was passed on."""

import pytest

from scripts.lib.telemetry.metrics_text import parse_metrics

LABELS = '{engine="0",model_name="org/model"}'
SAMPLES = {
    "num_requests_running": "3.0",
    "num_requests_waiting": "1.0",
    "kv_cache_usage_perc": "0.25",
    "prefix_cache_queries_total": "1000.0",
    "prefix_cache_queries_created": "1.7537953269352946e+09",
    "prefix_cache_hits_total": "400.0",
    "external_prefix_cache_queries_total": "9.0",
    "num_preemptions_total": "2.0",
    "prompt_tokens_total": "5000.0",
    "generation_tokens_total": "600.0",
    "time_to_first_token_seconds_count": "20.0",
    "time_to_first_token_seconds_sum": "4.5",
}
ONLY_SAMPLES = "".join(f"vllm:{name}{LABELS} {value}\n" for name, value in SAMPLES.items())
SCRAPE = "".join(
    f"# HELP {line.split('{')[0]} Help.\n# TYPE {line.split('{')[0]} untyped\n{line}\n"
    for line in ONLY_SAMPLES.splitlines()
)
FACTS = {
    "running": 3.0,
    "waiting": 1.0,
    "kv_cache_usage": 0.25,
    "preemptions": 2.0,
    "prompt_tokens": 5000.0,
    "generation_tokens": 600.0,
    "prefix_cache_queries": 1000.0,
    "prefix_cache_hits": 400.0,
    "histograms": {
        "ttft": {"count": 20.0, "sum_s": 4.5},
        "tpot": None,
        "itl": None,
        "e2el": None,
        "queue_time": None,
    },
}


def each_line(dress):
    return "".join(dress(line) + "\n" for line in ONLY_SAMPLES.splitlines())


CURL = (
    "< HTTP/1.1 200 OK\n< content-type: text/plain; version=0.0.4\n<\n100  9536  100  9536    0\n"
)
DRESSES = {
    "as it is": SCRAPE,
    "samples only": ONLY_SAMPLES,
    "byte order mark": "\ufeff" + ONLY_SAMPLES,
    "Windows": SCRAPE.replace("\n", "\r\n"),
    "OpenMetrics": SCRAPE + "# EOF\n",
    "times": each_line(lambda line: f"{line} 1753795326935"),
    "curl -v": CURL + SCRAPE,
    "a shell's echo": "$ curl -s localhost:8000/metrics | grep vllm\n" + ONLY_SAMPLES,
    "scraped twice": SCRAPE + SCRAPE,
    "grep with file names": each_line(lambda line: f"metrics.txt:{line}"),
    "grep with line numbers": each_line(lambda line: f"/tmp/m.prom:12:{line}"),
    "grep in colours": SCRAPE.replace("vllm:", "\x1b[01;31mvllm:\x1b[0m"),
    "docker compose": each_line(lambda line: f"client-1  | {line}"),
    "quoted": each_line(lambda line: f"> {line}"),
    "list": each_line(lambda line: f"- {line}"),
    "code block": f"Output:\n```\n{SCRAPE}```\n",
    "table of Markdown": each_line(lambda line: "| `{}` | {} |".format(*line.rsplit(" ", 1))),
    "blanks that do not break": SCRAPE.replace("} ", "}\u00a0"),
    "blanks between labels": SCRAPE.replace(",", ", "),
    "Ray": SCRAPE.replace("vllm:", "ray_vllm:"),
    "Ray, newer": SCRAPE.replace("vllm:", "ray_vllm_"),
}


@pytest.mark.parametrize("text", DRESSES.values(), ids=DRESSES)
def test_the_dress_changes_nothing(text):
    found = parse_metrics(text).model_dump()
    assert {key: found[key] for key in FACTS} == FACTS
