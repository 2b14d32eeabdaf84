"""Objects of the real packages, each of a factory that takes the address of a server."""

import hashlib
import os
from typing import Any


def numbers(text: str) -> list[float]:
    """A vector of a text."""
    return [byte / 100 - 1.2 for byte in hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8]]


def langchain(address: str) -> Any:
    from langchain_core.embeddings import DeterministicFakeEmbedding

    return DeterministicFakeEmbedding(size=8)


def langchain_openai(address: str, **settings: Any) -> Any:
    """As it is by default: it sends ids of tiktoken's tokens. Their table is on the net; one of bytes stands in."""
    import tiktoken
    import tiktoken.registry
    from langchain_openai import OpenAIEmbeddings

    ranks = {bytes([byte]): 255 - byte for byte in range(256)}
    tiktoken.registry.ENCODINGS["cl100k_base"] = tiktoken.Encoding(
        "cl100k_base", pat_str=r"[\s\S]+", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 256}
    )
    return OpenAIEmbeddings(model="the-model", base_url=f"{address}/v1", api_key="none", max_retries=0, **settings)


def langchain_openai_texts(address: str) -> Any:
    """As a server of another model needs it: it sends texts."""
    return langchain_openai(address, check_embedding_ctx_length=False)


def llama_index(address: str) -> Any:
    from llama_index.core.base.embeddings.base import BaseEmbedding

    class Numbers(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return numbers(text)

        def _get_query_embedding(self, query: str) -> list[float]:
            return numbers(f"find {query}")

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

    return Numbers(model_name="numbers")


def haystack(address: str) -> Any:
    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
    from haystack.components.embedders import MockDocumentEmbedder, MockTextEmbedder

    return MockTextEmbedder(embedding_fn=numbers), MockDocumentEmbedder(embedding_fn=numbers)


def haystack_openai(address: str) -> Any:
    """Asks a server, and asks for queries as for documents."""
    os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
    from haystack.components.embedders import OpenAIDocumentEmbedder, OpenAITextEmbedder
    from haystack.utils import Secret

    settings: dict[str, Any] = {
        "model": "the-model",
        "api_base_url": f"{address}/v1",
        "api_key": Secret.from_token("none"),
        "max_retries": 0,
    }
    return OpenAITextEmbedder(**settings), OpenAIDocumentEmbedder(**settings, progress_bar=False)


def chroma(address: str) -> Any:
    from chromadb.api.types import EmbeddingFunction

    class Numbers(EmbeddingFunction):  # type: ignore[type-arg, misc]
        def __init__(self) -> None:
            pass

        def __call__(self, input: list[str]) -> list[list[float]]:
            return [numbers(text) for text in input]

    return Numbers()


def model2vec(address: str) -> Any:
    import numpy as np
    from model2vec import StaticModel
    from tokenizers import Tokenizer, models, pre_tokenizers

    alphabet = ["[UNK]", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(
        models.WordPiece(
            {piece: place for place, piece in enumerate(alphabet)}, unk_token="[UNK]", max_input_chars_per_word=100_000
        )
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.ByteLevel(add_prefix_space=True), pre_tokenizers.Split("", "isolated")]
    )
    return StaticModel(np.random.default_rng(0).normal(size=(len(alphabet), 8)), tokenizer)
