"""Small classes with exactly the interfaces that packages document; of each, what it gives is told by its texts.

The real ones are asked in ``test_real_packages.py``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

DIMENSION = 6


@functools.cache
def of_word(word: str) -> np.ndarray:
    return np.random.default_rng(list(word.encode("utf-8", "replace"))).normal(size=DIMENSION)


def vector(text: str) -> np.ndarray:
    """A vector of a text: of its words, wherever they stand, so that each counts."""
    found = np.sum([of_word(word) for word in text.split() or [""]], axis=0)
    return np.asarray(found / np.linalg.norm(found))


def expected(text: str, role: str) -> np.ndarray:
    """What every stand-in that tells roles apart gives."""
    return vector(f"find {text}") if role == "query" else vector(text)


class LangChain:
    """langchain_core.embeddings.Embeddings"""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [vector(text).tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return expected(text, "query").tolist()


class LlamaIndex:
    """llama_index.core.base.embeddings.base.BaseEmbedding"""

    def get_query_embedding(self, query: str) -> list[float]:
        return expected(query, "query").tolist()

    def get_text_embedding(self, text: str) -> list[float]:
        return vector(text).tolist()

    def get_text_embedding_batch(
        self, texts: list[str], show_progress: bool = False, **kwargs: Any
    ) -> list[list[float]]:
        return [vector(text).tolist() for text in texts]

    def __call__(self, nodes: list[Any], **kwargs: Any) -> list[Any]:
        raise AssertionError("this takes nodes")


@dataclass
class Document:
    """haystack.Document"""

    content: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    embedding: list[float] | None = None


class HaystackDocuments:
    """haystack.components.embedders.SentenceTransformersDocumentEmbedder"""

    is_warm = False

    def warm_up(self) -> None:
        self.is_warm = True

    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        assert self.is_warm, "asked before it is warm"
        assert all(isinstance(one, Document) for one in documents)
        return {"documents": [Document(one.content, {}, vector(one.content or "").tolist()) for one in documents]}


class HaystackTexts:
    """haystack.components.embedders.SentenceTransformersTextEmbedder"""

    def run(self, text: str) -> dict[str, Any]:
        assert isinstance(text, str)
        return {"embedding": expected(text, "query").tolist(), "meta": {}}


class FastEmbed:
    """fastembed.TextEmbedding"""

    def embed(self, documents: str | Iterable[str], batch_size: int = 256, **kwargs: Any) -> Iterator[np.ndarray]:
        for text in [documents] if isinstance(documents, str) else documents:
            yield vector(text).astype(np.float32)

    def query_embed(self, query: str | Iterable[str], **kwargs: Any) -> Iterator[np.ndarray]:
        for text in [query] if isinstance(query, str) else query:
            yield expected(text, "query").astype(np.float32)

    def passage_embed(self, texts: Iterable[str], **kwargs: Any) -> Iterator[np.ndarray]:
        yield from self.embed(texts)


class Flag:
    """FlagEmbedding.FlagModel"""

    def encode_queries(self, queries: list[str], batch_size: int = 256) -> np.ndarray:
        return np.array([expected(text, "query") for text in queries], dtype=np.float16)

    def encode_corpus(self, corpus: list[str], batch_size: int = 256) -> np.ndarray:
        return np.array([vector(text) for text in corpus], dtype=np.float16)

    def encode(self, sentences: list[str], batch_size: int = 256) -> np.ndarray:
        return self.encode_corpus(sentences)


class Roles:
    """What sentence-transformers' models offer since release 5."""

    max_seq_length = 128
    similarity_fn_name = "dot"

    def encode(self, sentences: list[str]) -> np.ndarray:
        return np.array([vector(text) for text in sentences], dtype=np.float32)

    def encode_query(self, sentences: list[str]) -> np.ndarray:
        return np.array([expected(text, "query") for text in sentences], dtype=np.float32)

    def encode_document(self, sentences: list[str]) -> np.ndarray:
        return self.encode(sentences)


class Static:
    """model2vec.StaticModel"""

    dim = DIMENSION

    def encode(self, sentences: list[str], show_progress_bar: bool = False, max_length: int | None = 512) -> np.ndarray:
        return np.array([vector(text) for text in sentences])


class Spacy:
    """spacy.language.Language, with vectors"""

    vocab = ()

    def __call__(self, text: str) -> Any:
        raise AssertionError("one at a time")

    def pipe(self, texts: Iterable[str]) -> Iterator[Any]:
        @dataclass
        class Doc:
            vector: np.ndarray

        yield from (Doc(vector(text)) for text in texts)


class Chroma:
    """chromadb.EmbeddingFunction"""

    def __call__(self, input: list[str]) -> list[np.ndarray]:
        return [vector(text).astype(np.float32) for text in input]

    def default_space(self) -> str:
        return "l2"


class ChromaOfQueries(Chroma):
    """The same since release 1.0."""

    def embed_query(self, input: list[str]) -> list[np.ndarray]:
        return [expected(text, "query").astype(np.float32) for text in input]


class ChromaWithAModel(ChromaOfQueries):
    """One that keeps its model's method, which puts no prompts, under the name of a method of its own."""

    encode = staticmethod(lambda texts: [[0.0] * 8 for _ in texts])


def callable_of_texts(texts: list[str]) -> list[list[float]]:
    return [vector(text).tolist() for text in texts]


def make() -> LangChain:
    """A factory."""
    return LangChain()


# (the object, part of what it is recognised as, whether it tells roles apart)
STAND_INS: dict[str, tuple[Any, str, bool]] = {
    "LangChain": (LangChain(), "LangChain", True),
    "LlamaIndex": (LlamaIndex(), "LlamaIndex", True),
    "Haystack's documents": (HaystackDocuments(), "document embedder", False),
    "Haystack's two": ((HaystackTexts(), HaystackDocuments()), "text embedder for queries", True),
    "fastembed": (FastEmbed(), "fastembed", True),
    "FlagEmbedding": (Flag(), "FlagEmbedding", True),
    "encode_query": (Roles(), "encode_query", True),
    "encode": (Static(), "model2vec", False),
    "spaCy": (Spacy(), "spaCy", False),
    "Chroma": (Chroma(), "Chroma", False),
    "Chroma 1": (ChromaOfQueries(), "Chroma", True),
    "Chroma 1 with encode": (ChromaWithAModel(), "Chroma", True),
    "a callable": (callable_of_texts, "a callable", False),
    "a lambda": (lambda texts: np.array([vector(text) for text in texts]), "a callable", False),
    "a class": (LangChain, "LangChain's Embeddings, made by calling it", True),
    "a factory": (make, "made by calling it", True),
    "a pair": (
        {"query": lambda texts: [expected(text, "query") for text in texts], "document": Static()},
        "a callable for queries, encode",
        True,
    ),
}
