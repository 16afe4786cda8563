"""A server process with bad habits, for the tests of the server's life cycle.

Usage: python process_server.py --port N [--habit HABIT ...]
Habits: never-ready, silent, die-early, die-later, ignore-int, ignore-term, grandchild,
detached-grandchild (leaves the process group).
"""

import argparse
import http.server
import os
import signal
import subprocess
import sys
import threading
import time

SLEEPER = [sys.executable, "-c", "import time; time.sleep(120)"]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"data": [{"id": "m"}]}')

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--habit", action="append", default=[])
    arguments, _ = parser.parse_known_args()
    habits = arguments.habit
    if "ignore-int" in habits:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if "ignore-term" in habits:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "grandchild" in habits:
        print("child", subprocess.Popen(SLEEPER).pid, flush=True)
    if "detached-grandchild" in habits:
        print("child", subprocess.Popen(SLEEPER, start_new_session=True).pid, flush=True)
    print("loading", os.getpid(), flush=True)
    if "die-early" in habits:
        print("ModuleNotFoundError: No module named 'pandas'", flush=True)
        sys.exit(3)
    if "silent" in habits:
        time.sleep(120)
    while "never-ready" in habits:
        print("still loading", flush=True)
        time.sleep(0.05)
    if "die-later" in habits:
        threading.Timer(0.5, lambda: os._exit(7)).start()
    http.server.ThreadingHTTPServer(("127.0.0.1", arguments.port), Handler).serve_forever()


main()
