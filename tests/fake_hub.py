"""A hub on localhost: enough of its API for huggingface_hub to resolve, download and stream real files."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class FakeHub:
    """Models and data sets by name, each a folder or its files' bytes; ``requests`` lists what was asked for.

    Each is at ``COMMIT`` unless ``commits`` says otherwise; ``older`` holds other commits. ``status`` makes the hub
    ill, for ``ill_requests`` if they are given, and ``ill_after`` from the request on whose path holds that. One that
    ``is_silent`` answers when it closes. What is ``gated`` can be listed and not be read; listings of models are
    filtered by ``tags``.
    """

    repositories: dict[str, Any] = field(default_factory=dict)
    commits: dict[str, str] = field(default_factory=dict)
    older: dict[tuple[str, str], Any] = field(default_factory=dict)
    gated: set[str] = field(default_factory=set)
    tags: dict[str, list[str]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    sent: int = 0
    endpoint: str = ""
    status: int = 200
    ill_requests: int | None = None
    ill_after: str | None = None
    is_silent: bool = False
    answered: int = 0
    closes: threading.Event = field(default_factory=threading.Event)


def _files(content: Path | Mapping[str, bytes]) -> Mapping[str, bytes]:
    if isinstance(content, Path):
        return {
            path.relative_to(content).as_posix(): path.read_bytes() for path in content.rglob("*") if path.is_file()
        }
    return content


def _handler(hub: FakeHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._answer()

        def _answer(self) -> None:
            path = unquote(urlsplit(self.path).path)
            if path.startswith("/api/") and not path.startswith(("/api/datasets/", "/api/models")):
                return self._send(404, b"{}")  # huggingface_hub asks for other things once per process
            hub.requests.append(f"{self.command} {path}")
            if hub.is_silent:
                hub.closes.wait()
            hub.answered += 1
            if hub.ill_after is not None and hub.ill_after in path:
                hub.status = 500
            if hub.status != 200 and hub.ill_requests != 0:
                if hub.ill_requests is not None:
                    hub.ill_requests -= 1
                return self._send(hub.status, b"{}")
            if path == "/api/models":
                return self._send_json(_search(hub, urlsplit(self.path).query))
            is_api = path.startswith("/api/")
            # owner, name, and then "revision" or "tree" and the revision; or "resolve", the revision and the file
            parts = path.removeprefix("/api/models").removeprefix("/api").removeprefix("/datasets").split("/")[1:]
            name, revision = "/".join(parts[:2]), parts[3] if len(parts) > 3 else "main"
            if name not in hub.repositories:
                return self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
            commit, content = hub.commits.get(name, COMMIT), hub.repositories[name]
            if revision not in (commit, "main", "v1"):
                commit, content = revision, hub.older.get((name, revision))
            if content is None:
                return self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
            files = _files(content)
            if is_api and parts[2:3] == ["tree"]:
                return self._send_json(
                    [{"type": "file", "path": n, "size": len(b), "oid": "0"} for n, b in files.items()]
                )
            if is_api:
                siblings = [{"rfilename": file} for file in files]
                return self._send_json({"id": name, "sha": commit, "siblings": siblings, "private": False, "tags": []})
            body = files.get("/".join(parts[4:]))
            if body is None:
                return self._send(404, b"{}", {"X-Error-Code": "EntryNotFound"})
            if name in hub.gated:
                return self._send(403, b"{}", {"X-Error-Code": "GatedRepo"})
            headers = {"ETag": f'"{hashlib.sha256(body).hexdigest()}"', "X-Repo-Commit": commit}
            if wanted := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")):
                headers["Content-Range"] = f"bytes {wanted[1]}-{wanted[2]}/{len(body)}"
                return self._send(206, body[int(wanted[1]) : int(wanted[2]) + 1], headers)
            return self._send(200, body, headers)

        def _send_json(self, content: object) -> None:
            self._send(200, json.dumps(content).encode(), {"Content-Type": "application/json"})

        def _send(self, status: int, body: bytes, headers: Mapping[str, str] = {}) -> None:
            with suppress(BrokenPipeError, ConnectionResetError):  # the client has enough, or gave up waiting
                self.send_response(status)
                for header, value in headers.items():
                    self.send_header(header, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    hub.sent += len(body)
                    self.wfile.write(body)

    return Handler


def _search(hub: FakeHub, query: str) -> object:
    """Models by author and tags, as ``HfApi.list_models`` asks for them."""
    wanted = parse_qs(query)
    author, tags = wanted.get("author", [""])[0], set(wanted.get("filter", []))
    return [
        {"id": name, "sha": hub.commits.get(name, COMMIT), "tags": hub.tags.get(name, [])}
        for name in hub.repositories
        if name.startswith(f"{author}/") and tags <= set(hub.tags.get(name, []))
    ]


def forget_sessions() -> None:
    """Those of huggingface_hub 0 stay online, or offline, as they were opened."""
    from huggingface_hub import utils

    getattr(utils, "reset_sessions", lambda: None)()


def point_to(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go online, to this endpoint."""
    from huggingface_hub import constants, file_download

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    for module in (constants, file_download):  # huggingface_hub 0 has the second one
        template = endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(module, "HUGGINGFACE_CO_URL_TEMPLATE", template, raising=False)
    forget_sessions()


def hub_cache() -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def json_lines(rows: list[object]) -> bytes:
    """Rows as the bytes of a jsonl file."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


@contextmanager
def serving(hub: FakeHub) -> Iterator[FakeHub]:
    """Run the hub on a free port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    server.daemon_threads = True
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True, kwargs={"poll_interval": 0.02}).start()
    try:
        yield hub
    finally:
        hub.closes.set()
        server.shutdown()
        server.server_close()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub on localhost without a repository yet, and an empty cache."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    with serving(FakeHub()) as running:
        point_to(running.endpoint, monkeypatch)
        yield running
