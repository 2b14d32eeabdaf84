"""A model hub on localhost: enough of its API for huggingface_hub to resolve and download real files."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class ModelHub:
    """Repositories (name -> folder), at ``COMMIT`` unless ``commits`` says otherwise; ``status`` makes it
    ill, for ``ill_requests`` if they are given; one that ``is_silent`` answers when it closes; listings are filtered by
    ``tags``."""

    repositories: dict[str, Path] = field(default_factory=dict)
    commits: dict[str, str] = field(default_factory=dict)
    tags: dict[str, list[str]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    endpoint: str = ""
    status: int = 200
    ill_requests: int | None = None
    is_silent: bool = False
    answered: int = 0
    closes: threading.Event = field(default_factory=threading.Event)


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _handler(hub: ModelHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def _answer(self) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.requests.append(path)
            if hub.is_silent:
                hub.closes.wait()
            hub.answered += 1
            if hub.status != 200 and hub.ill_requests != 0:
                if hub.ill_requests is not None:
                    hub.ill_requests -= 1
                return self._send(hub.status, b"{}")
            parts = path.strip("/").split("/")
            is_api = parts[0] == "api"
            if parts == ["api", "models"]:
                return self._send(200, json.dumps(_search(hub, urlsplit(self.path).query)).encode())
            name = "/".join(parts[2:4] if is_api else parts[:2])
            if name not in hub.repositories:
                return self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
            files = _files(hub.repositories[name])
            commit = hub.commits.get(name, COMMIT)
            revision = (parts[5] if len(parts) > 5 else "main") if is_api else parts[3]
            if revision not in (commit, "main", "v1"):
                return self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
            if is_api:
                return self._send(200, json.dumps(_listing(parts, name, commit, files)).encode())
            content = files.get("/".join(parts[4:]))
            if content is None:
                return self._send(404, b"{}", {"X-Error-Code": "EntryNotFound"})
            etag = hashlib.sha256(content).hexdigest()
            return self._send(200, content, {"ETag": f'"{etag}"', "X-Repo-Commit": commit})

        def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            try:
                self.send_response(status)
                for header, value in {"Content-Type": "application/json", **(headers or {})}.items():
                    self.send_header(header, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):  # the client gave up waiting
                pass

    return Handler


def _listing(parts: list[str], name: str, commit: str, files: dict[str, bytes]) -> object:
    if len(parts) > 4 and parts[4] == "tree":
        return [{"type": "file", "path": path, "size": len(body), "oid": "0"} for path, body in files.items()]
    return {"id": name, "sha": commit, "siblings": [{"rfilename": path} for path in files], "tags": []}


def _search(hub: ModelHub, query: str) -> object:
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


@contextmanager
def serving(hub: ModelHub) -> Iterator[ModelHub]:
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
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelHub]:
    """A hub on localhost without a repository yet, and an empty cache."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    with serving(ModelHub()) as running:
        point_to(running.endpoint, monkeypatch)
        yield running
