"""The HTTP APIs that serve embeddings: OpenAI's, text-embeddings-inference's (TEI), ollama's, and hosted models'.

The forms of request of hosted models are a row each, as their documentation has them.
None of them can be asked from where embaudit is built: tests hold the requests and answers against the documented
forms (docs/functions.md says what ran against which server).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from embaudit.embedders.endpoint.exchange import MOST_NUMBERS
from embaudit.words.sentences import cut, quoted

if TYPE_CHECKING:
    from embaudit.checkpoint import TextKind

Encoding = Literal["float", "base64"]
# More of a request, by name.
Fields = Mapping[str, Any]


NO_STRINGS = (
    "Have the server (or the gateway before it) send vectors as lists of JSON numbers: a vector printed into strings "
    "was rounded or cut by whoever printed it."
)
KINDS = {bool: "true or false", list: "a list", dict: "an object"}


class BadAnswer(Exception):
    """An answer that is not what the API promises; the message says how.

    Attributes:
        advice: what to do about it, if it is more than to look.
    """

    def __init__(self, reason: str, advice: str = "") -> None:
        super().__init__(reason)
        self.advice = advice


@dataclass(frozen=True)
class Dialect:
    """One API.

    Attributes:
        name: as in ``--api``.
        path: after the server's address; ``{model}`` stands for the model's name.
        needs_model: whether a request must name a model.
        body: the request for some texts, without ``fields``.
        rows: the vectors in an answer, in the order of the texts; raises ``BadAnswer``.
        models: where it lists its models, under which key, and the key of a model's name; None if it serves one.
        key: the headers that carry a key.
        roles: the fields by which it is told what texts are used as; empty if it knows no roles.
        dimensions: the field for the number of dimensions; None if it gives all of them.
        hosts: how the addresses end at which it is to be had; for others, it is recognised by what it lists, or named.
        most_texts: that it takes in a request.
    """

    name: str
    path: str
    needs_model: bool
    body: Callable[[Sequence[str], str | None, Encoding], dict[str, Any]]
    rows: Callable[[Any], list[Any]]
    models: tuple[str, str, str] | None = None
    key: Callable[[str], dict[str, str]] = lambda key: {"Authorization": f"Bearer {key}"}
    roles: Mapping[TextKind, Fields] = field(default_factory=dict)
    dimensions: str | None = "dimensions"
    hosts: tuple[str, ...] = ()
    most_texts: int = 32
    # Where the fields stand: beside the texts, or once for each of them.
    with_fields: Callable[[dict[str, Any], Fields], dict[str, Any]] = lambda body, fields: body | dict(fields)


def as_vectors(rows: Sequence[Any], texts: int) -> np.ndarray:
    """(texts, D) float64 from an answer's rows: lists of numbers, or base64 of little-endian float32.

    A null stands for NaN, which JSON cannot hold.

    Raises:
        BadAnswer: if there are more or fewer rows than texts, or they are of different length or no numbers.
    """
    if len(rows) != texts:
        raise BadAnswer(f"it gives {len(rows)} vectors for {texts} texts")
    vectors = [_vector(row) for row in rows]
    if len({len(vector) for vector in vectors}) > 1:
        raise BadAnswer(f"its vectors have {' and '.join(str(n) for n in sorted({len(v) for v in vectors}))} numbers")
    return np.array(vectors, dtype=np.float64).reshape(texts, -1)


def _vector(row: Any) -> np.ndarray:
    if isinstance(row, str):
        return _from_base64(row)
    if not isinstance(row, list) or not row:
        raise BadAnswer("a vector is no list of numbers")
    if len(row) > MOST_NUMBERS:
        raise BadAnswer(f"a vector has {len(row):,} numbers, where no model gives more than {MOST_NUMBERS:,}")
    # Not what numpy can read as a number: it takes "0.1" and True for one.
    other = next((value for value in row if type(value) not in (float, int, NoneType)), None)
    if isinstance(other, str):
        raise BadAnswer(f"a vector holds something that is no number: the string {quoted(other)}", NO_STRINGS)
    if other is not None:
        raise BadAnswer(f"a vector holds something that is no number: {KINDS[type(other)]}")
    try:
        return np.array([np.nan if value is None else float(value) for value in row], dtype=np.float64)
    except OverflowError as error:
        raise BadAnswer("a vector holds an integer that is larger than any float") from error


def _from_base64(row: str) -> np.ndarray:
    if row.lstrip()[:1] == "[":
        raise BadAnswer(f"a vector is a list that was printed into a string ({quoted(row)})", NO_STRINGS)
    if len(row) > MOST_NUMBERS * 4 * 4 // 3 + 4:
        raise BadAnswer(f"a base64 vector has more than {MOST_NUMBERS:,} numbers, where no model gives more")
    try:
        content = base64.b64decode(row, validate=True)
    except ValueError as error:
        raise BadAnswer(f"a vector is a string that is no base64: {quoted(row)}", NO_STRINGS) from error
    if not content or len(content) % 4:
        raise BadAnswer(f"a base64 vector of {len(content)} bytes is no float32")
    with np.errstate(invalid="ignore"):  # NaN that says so is not for this place to warn of
        return np.frombuffer(content, dtype="<f4").astype(np.float64)


def _openai_rows(answer: Any) -> list[Any]:
    data = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(data, list) or not all(isinstance(entry, dict) and "embedding" in entry for entry in data):
        raise BadAnswer('it has no "data" with an "embedding" each')
    places = [entry.get("index", place) for place, entry in enumerate(data)]
    if sorted(places, key=str) != sorted(range(len(data)), key=str):
        raise BadAnswer(f'the "index" of its vectors is {cut(str(places), 120)}')
    # The index says which text a vector is of, wherever it stands.
    return [entry["embedding"] for _, entry in sorted(zip(places, data, strict=True), key=lambda pair: pair[0])]


def _tei_rows(answer: Any) -> list[Any]:
    if not isinstance(answer, list):
        raise BadAnswer("it is no list of vectors")
    return answer


def _ollama_rows(answer: Any) -> list[Any]:
    rows = answer.get("embeddings") if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        raise BadAnswer('it has no "embeddings"')
    return rows


OPENAI = Dialect(
    "openai",
    "/v1/embeddings",
    False,
    lambda texts, model, encoding: {"input": list(texts), "model": model or "default", "encoding_format": encoding},
    _openai_rows,
    ("/v1/models", "data", "id"),
    hosts=("api.openai.com",),
)
# As infinity serves it, and as it is behind a proxy that adds the prefix.
OPENAI_WITHOUT_PREFIX = replace(OPENAI, path="/embeddings", models=("/models", "data", "id"))
TEI = Dialect("tei", "/embed", False, lambda texts, *_: {"inputs": list(texts), "truncate": True}, _tei_rows)
OLLAMA = Dialect(
    "ollama",
    "/api/embed",
    True,
    lambda texts, model, _: {"model": model, "input": list(texts), "truncate": True},
    _ollama_rows,
    ("/api/tags", "models", "name"),
)


def _texts_and_model(texts: Sequence[str], model: str | None, encoding: Encoding) -> dict[str, Any]:
    return {"input": list(texts), "model": model}


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
    lambda texts, model, _: {"texts": list(texts), "model": model, "embedding_types": ["float"]},
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
    with_fields=lambda body, fields: {"requests": [{**request, **fields} for request in body["requests"]]},
)
DIALECTS = {dialect.name: dialect for dialect in (OPENAI, TEI, OLLAMA, AZURE, COHERE, VOYAGE, JINA, GEMINI)}


def hosted_at(host: str) -> Dialect | None:
    """The API that is known to be at a host; None if anything may be."""
    return next((one for one in DIALECTS.values() if any(host.endswith(end) for end in one.hosts)), None)
