"""A webhook on this machine that real notification blocks of Prefect post to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

SECRET = "T0000-very-secret"
Webhook = Callable[..., "tuple[Listener, str]"]


class Listener(HTTPServer):
    """A webhook on this machine: what was posted, and to which address."""

    def __init__(self, status: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = status
        self.posts: list[tuple[str, dict[str, str]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook/{SECRET}"


class _Handler(BaseHTTPRequestHandler):
    server: Listener

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posts.append((self.path, json.loads(body)))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def webhook(prefect_api: str) -> Iterator[Webhook]:
    """Makes real notification blocks that post to a server of the test; returns it and the block's name."""
    from prefect.blocks.notifications import CustomWebhookNotificationBlock

    servers = []

    def make(name: str, status: int = 200) -> tuple[Listener, str]:
        server = Listener(status)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        block = CustomWebhookNotificationBlock(
            name=name, url=server.url, method="POST", json_data={"title": "{{subject}}", "text": "{{body}}"}
        )
        block.save(name, overwrite=True)
        return server, f"custom-webhook/{name}"

    yield make
    for server in servers:
        server.shutdown()
        server.server_close()
