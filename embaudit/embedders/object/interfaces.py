"""What Python objects offer that give vectors: one row an interface, with how it is recognised and asked.

The first that an object offers is used. What a package's own class offers comes before what any callable does.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from types import FunctionType
from typing import Any

# What an object gives for some texts; ``rows`` makes vectors of it.
Way = Callable[[Any, list[str]], Any]


@dataclass(frozen=True)
class Interface:
    """What one package, or many, promise.

    Attributes:
        name: what people know it as.
        methods: that an object must have.
        document: how it is asked for documents.
        query: for queries; None if it takes all texts alike.
        text: for texts that are neither; by default, as for documents.
        is_offered: what else must be true of it.
    """

    name: str
    methods: tuple[str, ...]
    document: Way
    query: Way | None = None
    text: Way | None = None
    is_offered: Callable[[Any], bool] = field(default=lambda given: True)


def has(given: Any, *methods: str) -> bool:
    """Whether an object has these methods; a stranger's may raise when it is asked."""
    try:
        return all(callable(getattr(given, name, None)) for name in methods)
    except Exception:
        return False


def parameters(given: Any) -> list[inspect.Parameter] | None:
    """Of a callable; None if nobody knows."""
    try:
        return list(inspect.signature(given).parameters.values())
    except (TypeError, ValueError):
        return None


def _takes(method: str, name: str) -> Callable[[Any], bool]:
    """Whether a method has a parameter of that name."""
    return lambda given: any(one.name == name for one in parameters(getattr(given, method)) or ())


def _each(method: str) -> Way:
    """Asked for one text at a time."""
    return lambda given, texts: [getattr(given, method)(text) for text in texts]


def _all(method: str) -> Way:
    return lambda given, texts: getattr(given, method)(texts)


def _listed(method: str) -> Way:
    """Of a generator a text, or one for all, as fastembed gives."""
    return lambda given, texts: [row for text in texts for row in islice(iter(getattr(given, method)(text)), 2)]


def _haystack_documents(given: Any, texts: list[str]) -> Any:
    document = _class_beside(given, "Document", "haystack")
    found = given.run(documents=[document(content=text) for text in texts])
    return [one.embedding for one in found["documents"]]


def _class_beside(given: Any, name: str, package: str) -> Any:
    """The class that an object's own module, or a module of its bases, uses under a name."""
    for base in type(given).__mro__:
        found = getattr(sys.modules.get(base.__module__), name, None)
        if isinstance(found, type):
            return found
    from importlib import import_module

    return getattr(import_module(package), name)


def _encode_if_offered(given: Any, texts: list[str]) -> Any:
    return given.encode(texts) if has(given, "encode") else given.encode_document(texts)


def _is_instance(given: Any) -> bool:
    """Whether it is an object with ``__call__`` rather than a function."""
    return not inspect.isroutine(given) and not isinstance(given, FunctionType | type)


INTERFACES = (
    Interface(
        "LangChain's Embeddings", ("embed_documents", "embed_query"), _all("embed_documents"), _each("embed_query")
    ),
    Interface(
        "LlamaIndex's embedding",
        ("get_text_embedding_batch", "get_query_embedding"),
        _all("get_text_embedding_batch"),
        _each("get_query_embedding"),
    ),
    Interface("Haystack's document embedder", ("run",), _haystack_documents, is_offered=_takes("run", "documents")),
    Interface(
        "Haystack's text embedder",
        ("run",),
        lambda given, texts: [given.run(text=text)["embedding"] for text in texts],
        is_offered=_takes("run", "text"),
    ),
    Interface(
        "fastembed's TextEmbedding",
        ("embed", "query_embed", "passage_embed"),
        _all("passage_embed"),
        _listed("query_embed"),
        _all("embed"),
    ),
    Interface(
        "FlagEmbedding's model",
        ("encode_queries", "encode_corpus"),
        _all("encode_corpus"),
        _all("encode_queries"),
        lambda given, texts: given.encode(texts) if has(given, "encode") else given.encode_corpus(texts),
    ),
    Interface(
        "sentence-transformers' encode_query and encode_document",
        ("encode_query", "encode_document"),
        _all("encode_document"),
        _all("encode_query"),
        _encode_if_offered,
    ),
    # Before what may be an attribute of it: a model's ``encode`` puts no prompts.
    Interface(
        "Chroma's embedding function",
        ("__call__", "embed_query"),
        lambda given, texts: given(input=texts),
        lambda given, texts: given.embed_query(input=texts),
        is_offered=lambda given: _is_instance(given) and _takes("__call__", "input")(given),
    ),
    Interface("encode, as model2vec and sentence-transformers have it", ("encode",), _all("encode")),
    Interface(
        "spaCy's pipeline",
        ("pipe", "__call__"),
        lambda given, texts: [one.vector for one in given.pipe(texts)],
        is_offered=lambda given: hasattr(given, "vocab"),
    ),
    Interface(
        "Chroma's embedding function",
        ("__call__",),
        lambda given, texts: given(input=texts),
        is_offered=lambda given: _is_instance(given) and _takes("__call__", "input")(given),
    ),
    Interface("a callable", ("__call__",), lambda given, texts: given(texts)),
)
# Classes, by name, that give something else than one dense vector a text.
OTHERS = {
    **dict.fromkeys(("SparseEncoder", "SparseTextEmbedding"), "a sparse model: one number a vocabulary entry"),
    **dict.fromkeys(
        ("MultiVectorEncoder", "ColBERT", "LateInteractionTextEmbedding"), "a late-interaction model: a vector a token"
    ),
    **dict.fromkeys(("CrossEncoder", "TextCrossEncoder"), "a reranker: it scores pairs of texts"),
    "PreTrainedTokenizerBase": "a tokenizer: it gives ids of tokens",
    "PreTrainedModel": "a network without its tokenizer and pooling",
}
LOOKED_FOR = (
    "embed_documents and embed_query, get_text_embedding_batch, run, embed, encode, or a call with a list of texts"
)


def interface_of(given: Any) -> Interface | None:
    """The first that an object offers."""
    return next((one for one in INTERFACES if has(given, *one.methods) and one.is_offered(given)), None)


def other_kind(given: Any) -> str | None:
    """What an object gives in place of one dense vector a text, if its class is known for that."""
    return next((OTHERS[base.__name__] for base in type(given).__mro__ if base.__name__ in OTHERS), None)
