"""Which kinds of stores there are: embaudit's own, and those of other packages (group ``embaudit.stores``)."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from embaudit.stores.place import StorePlace
from embaudit.stores.table import StoreKind
from embaudit.system.files import installed

GROUP = "embaudit.stores"
# In the order in which they are asked: what is told by its content before what is told by a suffix.
OWN = (
    "remote_parquet",
    "postgres",
    "chroma",
    "chroma_old",
    "lancedb",
    "qdrant",
    "milvus",
    "milvus_file",
    "duckdb",
    "sqlite",
    "numpy",
    "faiss",
    "hnswlib",
    "usearch",
    "annoy",
    "langchain_faiss",
    "llama_index",
    "beside",
    "parquet",
    "arrow",
    "tensors",
    "hdf5",
    "pickles",
    "csv",
    "word_vectors",
    "openai_batch",
    "bulk",
    "json",
)


def store_kinds() -> Iterator[StoreKind]:
    """All of them, those of other packages first: who installs one wants it to be used.

    Raises:
        UsageError: if one of another package cannot be used.
    """
    for _, kind in installed(GROUP, StoreKind, "store"):
        yield kind
    for name in OWN:
        yield from import_module(f"embaudit.stores.{name}").KINDS


def kind_of(place: StorePlace) -> StoreKind | None:
    """The first kind that recognises a place."""
    return next((kind for kind in store_kinds() if kind.recognises(place)), None)
