"""A small server that speaks as much of the Hugging Face hub's API as a download needs."""

import hashlib
import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE = (".safetensors", ".bin")


class FakeHub:
    """Repositories of one commit, and the ways in which the hub refuses."""

    def __init__(self, endpoint_port=0):
        self.repos = {}  # name → {file: bytes}
        self.gated = set()
        self.token = None  # the one that opens gated repositories
        self.status = None  # answer everything with this
        self.cut = set()  # files of which half is sent once
        self.damaged = set()  # files that arrive with other bytes
        self.fetched = []
        self.unknown = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self):
                hub.answer(self, body=False)

            def do_GET(self):
                hub.answer(self, body=True)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", endpoint_port), Handler)
        self.server.daemon_threads = True
        Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request, body):
        path = request.path.split("?")[0]
        api = re.fullmatch(r"/api/models/([^/]+/[^/]+)/(?:tree|revision)/(\w+)(?:/.*)?", path)
        file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/(\w+)/(.+)", path)
        if self.status:
            return self.refuse(request, self.status, {})
        if not (api or file):
            self.unknown.append(path)
            return self.refuse(request, 404, {})
        repo, commit = (api or file).group(1, 2)
        if repo not in self.repos:
            return self.refuse(request, 404, {"X-Error-Code": "RepoNotFound"})
        sent = (request.headers.get("Authorization") or "").removeprefix("Bearer ")
        if repo in self.gated and (not self.token or sent != self.token):
            return self.refuse(request, 403 if sent else 401, {"X-Error-Code": "GatedRepo"})
        if commit != COMMIT:
            return self.refuse(request, 404, {"X-Error-Code": "RevisionNotFound"})
        if api:
            return self.send(request, 200, {}, json.dumps(self.tree(repo)).encode(), body)
        return self.send_file(request, repo, file.group(3), body)

    def tree(self, repo):
        entries = []
        for name, content in self.repos[repo].items():
            entry = {"type": "file", "path": name, "size": len(content), "oid": sha1(content)}
            if name.endswith(LARGE):
                digest = hashlib.sha256(content).hexdigest()
                entry["lfs"] = {"oid": digest, "size": len(content), "pointerSize": 100}
            entries.append(entry)
        return entries

    def send_file(self, request, repo, name, body):
        if name not in self.repos[repo]:
            return self.refuse(request, 404, {"X-Error-Code": "EntryNotFound"})
        content = self.repos[repo][name]
        digest = hashlib.sha256(content).hexdigest() if name.endswith(LARGE) else sha1(content)
        headers = {"ETag": f'"{digest}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        if name in self.damaged:
            content = bytes(byte ^ 1 for byte in content)
        start = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", ""))
        if body:
            self.fetched.append((name, request.headers.get("Range")))
        if start:
            begin, size = int(start.group(1)), len(content)
            headers["Content-Range"] = f"bytes {begin}-{size - 1}/{size}"
            return self.send(request, 206, headers, content[begin:], body)
        if body and name in self.cut:
            self.cut.discard(name)
            return self.send(request, 200, headers, content, body, stop=len(content) // 2)
        return self.send(request, 200, headers, content, body)

    def send(self, request, status, headers, content, body, stop=None):
        request.send_response(status)
        for key, value in headers.items():
            request.send_header(key, value)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        if body:
            request.wfile.write(content[:stop])
        if stop is not None:
            request.close_connection = True

    def refuse(self, request, status, headers):
        self.send(request, status, {**headers, "X-Error-Message": "no"}, b"{}", True)


def sha1(content):
    header = f"blob {len(content)}\0".encode()
    return hashlib.sha1(header + content).hexdigest()
