"""The forms of request of hosted models, a row each, as their documentation has them, and the table of all APIs.

None of them can be asked from where embaudit is built: tests hold the requests and answers against the documented
forms (docs/functions.md says what ran against which server).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from embaudit.embedders.endpoint.dialects import OLLAMA, OPENAI, TEI, BadAnswer, Dialect, Encoding, Fields


def _texts_and_model(texts: Sequence[str], model: str | None, encoding: Encoding) -> dict[str, Any]:
    return {"input": list(texts), "model": model}


def _cohere_body(texts: Sequence[str], model: str | None, encoding: Encoding) -> dict[str, Any]:
    return {"texts": list(texts), "model": model, "embedding_types": ["float"]}


def _cohere_rows(answer: Any) -> list[Any]:
    found = answer.get("embeddings") if isinstance(answer, dict) else None
    # The first version of the API has a list where the second has one for each type of number.
    rows = found.get("float") if isinstance(found, dict) else found
    if not isinstance(rows, list):
        raise BadAnswer('it has no "embeddings" with "float"')
    return rows


def _gemini_body(texts: Sequence[str], model: str | None, encoding: Encoding) -> dict[str, Any]:
    name = f"models/{(model or '').removeprefix('models/')}"
    return {"requests": [{"model": name, "content": {"parts": [{"text": text}]}} for text in texts]}


def _in_each_request(body: dict[str, Any], fields: Fields) -> dict[str, Any]:
    return {"requests": [{**request, **fields} for request in body["requests"]]}


def _gemini_rows(answer: Any) -> list[Any]:
    found = answer.get("embeddings") if isinstance(answer, dict) else None
    if not isinstance(found, list) or not all(isinstance(entry, dict) and "values" in entry for entry in found):
        raise BadAnswer('it has no "embeddings" with "values" each')
    return [entry["values"] for entry in found]


# A deployment stands for the model, in the address: /openai/deployments/NAME/embeddings?api-version=…
AZURE = replace(
    OPENAI,
    name="azure",
    path="/embeddings?api-version={version}",
    models=None,
    key=lambda key: {"api-key": key},
    hosts=(".openai.azure.com", ".cognitiveservices.azure.com"),
)
COHERE = Dialect(
    "cohere",
    "/v2/embed",
    True,
    _cohere_body,
    _cohere_rows,
    # It refuses a request without a role.
    roles={
        "text": {"input_type": "clustering"},
        "query": {"input_type": "search_query"},
        "document": {"input_type": "search_document"},
    },
    dimensions="output_dimension",
    hosts=("api.cohere.com", "api.cohere.ai"),
    most_texts=96,
)
VOYAGE = Dialect(
    "voyage",
    "/v1/embeddings",
    True,
    _texts_and_model,
    OPENAI.rows,
    roles={"text": {}, "query": {"input_type": "query"}, "document": {"input_type": "document"}},
    dimensions="output_dimension",
    hosts=("api.voyageai.com", "ai.mongodb.com"),
)
JINA = Dialect(
    "jina",
    "/v1/embeddings",
    True,
    _texts_and_model,
    OPENAI.rows,
    roles={
        "text": {"task": "text-matching"},
        "query": {"task": "retrieval.query"},
        "document": {"task": "retrieval.passage"},
    },
    hosts=("api.jina.ai",),
)
GEMINI = Dialect(
    "gemini",
    "/v1beta/models/{model}:batchEmbedContents",
    True,
    _gemini_body,
    _gemini_rows,
    key=lambda key: {"x-goog-api-key": key},
    roles={
        "text": {"taskType": "SEMANTIC_SIMILARITY"},
        "query": {"taskType": "RETRIEVAL_QUERY"},
        "document": {"taskType": "RETRIEVAL_DOCUMENT"},
    },
    dimensions="outputDimensionality",
    hosts=("generativelanguage.googleapis.com",),
    with_fields=_in_each_request,
)
DIALECTS = {dialect.name: dialect for dialect in (OPENAI, TEI, OLLAMA, AZURE, COHERE, VOYAGE, JINA, GEMINI)}


def hosted_at(host: str) -> Dialect | None:
    """The API that is known to be at a host; None if anything may be."""
    return next((one for one in DIALECTS.values() if any(host.endswith(end) for end in one.hosts)), None)
