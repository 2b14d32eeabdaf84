"""Hosted models are asked as their documentation says, and their documented answers are read: over real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from embaudit.embedders.endpoint.client import KEY_VARIABLE
from embaudit.embedders.endpoint.dialects import DIALECTS, hosted_at
from embaudit.embedders.endpoint.recognise import open_endpoint
from embaudit.words.errors import UsageError

ROWS = [[0.1, 0.2], [0.3, 0.4]]
OF_OPENAI = {
    "object": "list",
    "data": [{"object": "embedding", "index": 1, "embedding": ROWS[1]}, {"index": 0, "embedding": ROWS[0]}],
    "model": "m",
    "usage": {"prompt_tokens": 5, "total_tokens": 5},
}
BEARER = ("Authorization", "Bearer k3y-of-mine")
# As pasted after the server's address; the answer; then what must have been sent for a query: path, key, body.
FORMS: dict[str, tuple[str, dict[str, Any], str, tuple[str, str], dict[str, Any]]] = {
    "openai": (
        "/v1/embeddings",
        OF_OPENAI,
        "/v1/embeddings",
        BEARER,
        {"input": ["a", "b"], "model": "m", "encoding_format": "float", "dimensions": 2},
    ),
    "azure": (
        "/openai/deployments/my-own/embeddings?api-version=2023-05-15",
        OF_OPENAI,
        "/openai/deployments/my-own/embeddings?api-version=2023-05-15",
        ("api-key", "k3y-of-mine"),
        {"input": ["a", "b"], "model": "my-own", "encoding_format": "float", "dimensions": 2},
    ),
    "tei": ("/embed", ROWS, "/embed", BEARER, {"inputs": ["a", "b"], "truncate": True, "dimensions": 2}),  # type: ignore[dict-item]
    "ollama": (
        "/api/embed",
        {"model": "m", "embeddings": ROWS, "total_duration": 1},
        "/api/embed",
        BEARER,
        {"model": "m", "input": ["a", "b"], "truncate": True, "dimensions": 2},
    ),
    "cohere": (
        "/v2/embed",
        {"id": "x", "embeddings": {"float": ROWS}, "texts": ["a", "b"], "meta": {"api_version": {"version": "2"}}},
        "/v2/embed",
        BEARER,
        {
            "texts": ["a", "b"],
            "model": "m",
            "embedding_types": ["float"],
            "input_type": "search_query",
            "output_dimension": 2,
        },
    ),
    "voyage": (
        "/v1",
        OF_OPENAI,
        "/v1/embeddings",
        BEARER,
        {"input": ["a", "b"], "model": "m", "input_type": "query", "output_dimension": 2},
    ),
    "jina": (
        "/v1/embeddings",
        OF_OPENAI,
        "/v1/embeddings",
        BEARER,
        {"input": ["a", "b"], "model": "m", "task": "retrieval.query", "dimensions": 2},
    ),
    "gemini": (
        "/v1beta/models/m:batchEmbedContents",
        {"embeddings": [{"values": row} for row in ROWS]},
        "/v1beta/models/m:batchEmbedContents",
        ("x-goog-api-key", "k3y-of-mine"),
        {
            "requests": [
                {
                    "model": "models/m",
                    "content": {"parts": [{"text": text}]},
                    "taskType": "RETRIEVAL_QUERY",
                    "outputDimensionality": 2,
                }
                for text in ("a", "b")
            ]
        },
    ),
}


@contextmanager
def answering(answer: Any, seen: list[tuple[str, dict[str, str], Any]]) -> Iterator[str]:
    """The address of a server that gives one answer to whatever is posted."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            self.send_error(404)

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append((self.path, dict(self.headers), body))
            content = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("api", list(FORMS))
def test_a_query_is_asked_for_as_documented(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pasted, answer, path, (header, key), body = FORMS[api]
    monkeypatch.setenv(KEY_VARIABLE, "k3y-of-mine")
    seen: list[tuple[str, dict[str, str], Any]] = []
    model = None if api in ("azure", "gemini") else "m"
    with (
        answering(answer, seen) as address,
        open_endpoint(address + pasted, api=api, model=model, dimensions=2) as endpoint,
    ):
        found = endpoint.encode(["a", "b"], "query")
        assert endpoint.tells_roles_apart == bool(DIALECTS[api].roles)
    assert (found.vectors.tolist(), found.failures) == (ROWS, {})
    ((sent_to, headers, sent),) = seen
    assert (sent_to, sent) == (path, body)
    assert {name.lower(): value for name, value in headers.items()}[header.lower()] == key


def test_every_api_has_a_form() -> None:
    assert FORMS.keys() == DIALECTS.keys()


@pytest.mark.parametrize(
    ("host", "api"),
    [
        ("api.openai.com", "openai"),
        ("my-company.openai.azure.com", "azure"),
        ("api.cohere.com", "cohere"),
        ("api.voyageai.com", "voyage"),
        ("api.jina.ai", "jina"),
        ("generativelanguage.googleapis.com", "gemini"),
        ("localhost", None),
        ("api.openai.com.example.org", None),
    ],
)
def test_a_known_host_says_which_api_it_has(host: str, api: str | None) -> None:
    found = hosted_at(host)
    assert (found.name if found else None) == api


def test_fields_of_the_users_own_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, dict[str, str], Any]] = []
    with (
        answering(OF_OPENAI, seen) as address,
        open_endpoint(
            address, api="openai", model="m", fields={"query": {"input_type": "query"}, "text": {"user": "me"}}
        ) as endpoint,
    ):
        assert endpoint.tells_roles_apart
        for role in ("text", "query", "document"):
            endpoint.encode(["a", "b"], role)
    assert [{"input_type", "user"} & body.keys() for _, _, body in seen] == [{"user"}, {"input_type"}, set()]


def test_azure_needs_a_deployment() -> None:
    with pytest.raises(UsageError, match="names no deployment"):
        open_endpoint("https://mine.openai.azure.com")
    endpoint = open_endpoint("https://mine.openai.azure.com/", model="deployed")
    assert endpoint.address == "https://mine.openai.azure.com/openai/deployments/deployed"
    assert endpoint.dialect.path.startswith("/embeddings?api-version=20")


def test_the_first_version_of_coheres_answer_is_read_too() -> None:
    assert DIALECTS["cohere"].rows({"embeddings": ROWS}) == ROWS
