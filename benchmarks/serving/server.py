"""A server of one model that speaks OpenAI's, TEI's and ollama's API, and does what it is told to do wrong."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

# (n, D) vectors of one request's texts.
Encode = Callable[[list[str]], np.ndarray]


class Refusal(Exception):
    """What a server answers instead of vectors."""

    def __init__(self, status: int, message: str = "refused", headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}


@dataclass
class Served:
    """How a model is served.

    Attributes:
        encode: may raise ``Refusal``.
        as_bytes: a vector as base64's bytes.
        after: changes the body of an answer.
        models: the names that it lists.
        most: texts that a request may have.
        key: the key that it asks for.
        api: what it says that it speaks: openai, tei or ollama.
    """

    encode: Encode
    as_bytes: Callable[[np.ndarray], bytes] = lambda row: row.astype("<f4").tobytes()
    after: Callable[[bytes], bytes] = bytes
    models: tuple[str, ...] = ("the-model",)
    most: int = 1_000
    key: str = ""
    api: str = "openai"
    requests: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def serving(served: Served) -> Iterator[str]:
    """The address of a running server."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Otherwise each answer waits 40 ms for the other side's delayed acknowledgement.
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            names = served.models
            listed: dict[str, Any] = {
                "openai": ("/v1/models", {"data": [{"id": name} for name in names]}),
                "tei": ("/info", {"max_client_batch_size": served.most, "model_id": names[0]}),
                "ollama": ("/api/tags", {"models": [{"name": name} for name in names]}),
            }
            path, content = listed[served.api]
            is_known = self.path in (path, "/health")
            self._answer(200, content) if is_known else self._answer(404, {"error": "no such page"})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            served.requests.append(asked)
            try:
                if served.key and self.headers.get("Authorization") != f"Bearer {served.key}":
                    raise Refusal(401, "who are you?")
                given = asked.get("input", asked.get("inputs"))
                texts = [given] if isinstance(given, str) else given
                if len(texts) > served.most:
                    raise Refusal(413, f"batch size {len(texts)} > maximum allowed batch size {served.most}")
                vectors = served.encode(texts)
            except Refusal as refusal:
                self._answer(refusal.status, {"error": {"message": str(refusal)}}, refusal.headers)
                return
            numbers = np.asarray(vectors, dtype=float).astype(object)
            numbers[np.isnan(vectors)] = None
            rows = numbers.tolist()
            if self.path.endswith("/v1/embeddings"):
                coded = asked.get("encoding_format") == "base64"
                data = [
                    {
                        "object": "embedding",
                        "index": place,
                        "embedding": base64.b64encode(served.as_bytes(np.asarray(vectors[place]))).decode()
                        if coded
                        else row,
                    }
                    for place, row in enumerate(rows)
                ]
                usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
                self._answer(200, {"object": "list", "data": data, "model": asked.get("model"), "usage": usage})
            elif self.path.endswith("/api/embed"):
                self._answer(200, {"embeddings": rows})
            elif self.path.endswith("/embed"):
                self._answer(200, rows)
            else:
                self._answer(404, {"error": "no such page"})

        def _answer(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
            body = json.dumps(content).encode()
            body = served.after(body) if status == 200 and self.command == "POST" else body
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
