"""Pipelines of sentence-transformers that are no transformer checkpoint, made in a moment."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tiny import tiny_bert

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

# How a pipeline is called in tests, and its modules in words.
PIPELINES = ("static", "router", "bag of words", "convolution")
WORDS = ["one", "two", "three", "word", "river", "museum", "town", "opens", "nine", "the", "at", "a", "old", "runs"]


def static(seed: int = 0) -> Any:
    """Random vectors of the tokens of a tiny tokenizer, of bytes so that no text is without one."""
    import torch
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({byte: place for place, byte in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    weights = torch.randn(len(alphabet), 12, generator=torch.Generator().manual_seed(seed))
    return StaticEmbedding(tokenizer, embedding_weights=weights)


def pipeline(kind: str, folder: Path) -> SentenceTransformer:
    """A model in memory."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Router
    from sentence_transformers.sentence_transformer.modules import CNN, BoW, Normalize, Pooling, Transformer

    torch.manual_seed(0)
    if kind == "static":
        modules = [static(), Normalize()]
    elif kind == "router":
        modules = [Router.for_query_document([static(1)], [static(2)])]
    elif kind == "bag of words":
        modules = [BoW(WORDS)]
    else:
        transformer = Transformer(str(tiny_bert(folder / "bert")))
        modules = [transformer, CNN(32, out_channels=8), Pooling(24)]
    return SentenceTransformer(modules=modules, device="cpu")
