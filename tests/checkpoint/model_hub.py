"""A model hub on localhost: enough of its API for huggingface_hub to resolve and download real files."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class ModelHub:
    """Repositories (name -> folder), all at ``COMMIT``; ``status`` and ``silence_s`` make it ill."""

    repositories: dict[str, Path] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    endpoint: str = ""
    status: int = 200
    silence_s: float = 0.0


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
            time.sleep(hub.silence_s)
            if hub.status != 200:
                return self._send(hub.status, b"{}")
            parts = path.strip("/").split("/")
            is_api = parts[0] == "api"
            name = "/".join(parts[2:4] if is_api else parts[:2])
            if name not in hub.repositories:
                return self._send(404, b"{}", {"X-Error-Code": "RepoNotFound"})
            files = _files(hub.repositories[name])
            revision = (parts[5] if len(parts) > 5 else "main") if is_api else parts[3]
            if revision not in (COMMIT, "main", "v1"):
                return self._send(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
            if is_api:
                return self._send(200, json.dumps(_listing(parts, name, files)).encode())
            content = files.get("/".join(parts[4:]))
            if content is None:
                return self._send(404, b"{}", {"X-Error-Code": "EntryNotFound"})
            etag = hashlib.sha256(content).hexdigest()
            return self._send(200, content, {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT})

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


def _listing(parts: list[str], name: str, files: dict[str, bytes]) -> object:
    if len(parts) > 4 and parts[4] == "tree":
        return [{"type": "file", "path": path, "size": len(body), "oid": "0"} for path, body in files.items()]
    return {"id": name, "sha": COMMIT, "siblings": [{"rfilename": path} for path in files], "tags": []}


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
        server.shutdown()
        server.server_close()
