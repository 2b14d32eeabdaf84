"""A hub on localhost: enough of its API for huggingface_hub to resolve, download and stream real bytes."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class FakeHub:
    """Repositories (name -> file -> bytes), all at ``COMMIT``; ``requests`` lists what was asked for."""

    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    endpoint: str = ""
    status: int = 200
    # How many requests get that status; None: all.
    ill_requests: int | None = None


def _handler(hub: FakeHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def _answer(self) -> None:
            path = unquote(urlsplit(self.path).path)
            if path.startswith("/api/") and not path.startswith("/api/datasets/"):
                return self._send(404, b"{}")  # huggingface_hub asks for other things once per process
            hub.requests.append(f"{self.command} {path}")
            if hub.status != 200 and hub.ill_requests != 0:
                if hub.ill_requests is not None:
                    hub.ill_requests -= 1
                return self._send(hub.status, b"{}")
            parts = path.strip("/").split("/")
            is_api = parts[0] == "api"
            repository = "/".join(parts[2:4] if is_api else parts[1:3])
            files = hub.repositories.get(repository)
            if files is None:
                return self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
            revision = parts[5] if is_api else parts[4]
            if revision not in (COMMIT, "main"):
                return self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
            if is_api:
                if parts[4] == "tree":
                    tree = [{"type": "file", "path": n, "size": len(b), "oid": "0"} for n, b in files.items()]
                    return self._send(200, json.dumps(tree).encode(), {"Content-Type": "application/json"})
                siblings = [{"rfilename": name} for name in files]
                info = {"id": repository, "sha": COMMIT, "siblings": siblings, "private": False, "tags": []}
                return self._send(200, json.dumps(info).encode(), {"Content-Type": "application/json"})
            content = files.get("/".join(parts[5:]))
            if content is None:
                return self._send(404, b"{}", {"X-Error-Code": "EntryNotFound"})
            etag = hashlib.sha256(content).hexdigest()
            return self._send(200, content, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT})

        def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                try:
                    self.wfile.write(body)
                except (BrokenPipeError, ConnectionResetError):
                    hub.requests.append(f"DROPPED {self.path}")

    return Handler


@contextmanager
def serving(hub: FakeHub) -> Iterator[FakeHub]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    server.daemon_threads = True
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True, kwargs={"poll_interval": 0.02}).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()


def json_lines(rows: list[object]) -> bytes:
    """Rows as the bytes of a jsonl file."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)
