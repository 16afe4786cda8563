"""The time series reach from before the first load point to after the last one."""

import http.server
import threading
import time

import pandas as pd
import pytest

from scripts.lib.telemetry.sampler import Sampler


@pytest.fixture
def url():
    """A server whose counter grows by one with each scrape."""
    scrapes = iter(range(1, 1000))

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            text = f'vllm:generation_tokens_total{{engine="0"}} {next(scrapes)}\n'.encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_last_sample_is_taken_after_the_load(url, tmp_path):
    origin = time.monotonic()
    with Sampler(url, tmp_path, origin=origin, gpus=[]):
        time.sleep(1.3)
        end_s = time.monotonic() - origin
    rows = pd.read_csv(tmp_path / "metrics.csv.gz")
    assert rows["t_s"].iloc[0] < 0.5
    assert rows["t_s"].iloc[-1] >= round(end_s, 4)
    assert rows["generation_tokens"].tolist() == [1, 2, 3]


def test_a_server_that_is_gone_gives_no_row(tmp_path):
    with Sampler("http://127.0.0.1:9", tmp_path, origin=time.monotonic(), gpus=[]):
        time.sleep(0.1)
    assert pd.read_csv(tmp_path / "metrics.csv.gz").empty
