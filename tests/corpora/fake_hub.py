"""A hub on localhost: enough of its API for huggingface_hub to resolve, download and stream real bytes."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from model_hub import point_to

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class FakeHub:
    """Repositories (name -> file -> bytes) at the commit ``head``; ``requests`` lists what was asked for.

    ``older`` holds other commits of them, and what is ``gated`` can be listed and not be read.
    """

    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    older: dict[tuple[str, str], dict[str, bytes]] = field(default_factory=dict)
    head: str = COMMIT
    gated: set[str] = field(default_factory=set)
    sent: int = 0
    requests: list[str] = field(default_factory=list)
    endpoint: str = ""
    status: int = 200
    # How many requests get that status; None: all.
    ill_requests: int | None = None
    # From the request whose path holds this on, all get status 500.
    ill_after: str | None = None


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
            if hub.ill_after is not None and hub.ill_after in path:
                hub.status = 500
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
            commit = hub.head if revision == "main" else revision
            if commit != hub.head:
                files = hub.older.get((repository, commit))
            if files is None:
                return self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
            if is_api:
                if parts[4] == "tree":
                    tree = [{"type": "file", "path": n, "size": len(b), "oid": "0"} for n, b in files.items()]
                    return self._send(200, json.dumps(tree).encode(), {"Content-Type": "application/json"})
                siblings = [{"rfilename": name} for name in files]
                info = {"id": repository, "sha": commit, "siblings": siblings, "private": False, "tags": []}
                return self._send(200, json.dumps(info).encode(), {"Content-Type": "application/json"})
            content = files.get("/".join(parts[5:]))
            if content is None:
                return self._send(404, b"{}", {"X-Error-Code": "EntryNotFound"})
            if repository in hub.gated:
                return self._send(403, b"{}", {"X-Error-Code": "GatedRepo"})
            headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Repo-Commit": commit}
            if wanted := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")):
                part = content[int(wanted[1]) : int(wanted[2]) + 1]
                return self._send(
                    206, part, {**headers, "Content-Range": f"bytes {wanted[1]}-{wanted[2]}/{len(content)}"}
                )
            return self._send(200, content, headers)

        def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                hub.sent += len(body)
                with suppress(BrokenPipeError, ConnectionResetError):  # the client has enough
                    self.wfile.write(body)

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


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub on localhost and an empty cache, in place of the real ones."""
    from huggingface_hub import constants

    with serving(FakeHub()) as fake:
        point_to(fake.endpoint, monkeypatch)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
        yield fake
