"""Compression as a step: one row for each way to store vectors, and whether a cut is declared (Matryoshka)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from embaudit.checkpoint.files import read_object
from embaudit.corpora.downstream.retrieval import ranked
from embaudit.measures.collection import Searched, collection_of, read_collection
from embaudit.measures.compression import MEASURE_VERSION, CompressionRow, CompressionSettings
from embaudit.measures.compression.compression import MIN_DOCUMENTS, Compressed, estimate, search_compressed
from embaudit.measures.run import Run
from embaudit.steps.results import CheckpointSpec, Staged, checkpoint_of
from embaudit.steps.step import Outputs, step
from embaudit.system.small_files import card_text
from embaudit.words.errors import NotMeasurable
from embaudit.words.estimate import Estimate

# Keys of config.json that servers read (vLLM).
KEYS = ("matryoshka_dimensions", "is_matryoshka")
WORD = "matryoshka"


def declared_cut(folder: Path, truncate_dim: int | None) -> str | None:
    """Where it says so, in words; None if it does not.

    Args:
        truncate_dim: how many dimensions it serves by its own settings.
    """
    if truncate_dim is not None:
        return f"truncate_dim is {truncate_dim} in config_sentence_transformers.json"
    config = folder / "config.json"
    content = read_object(config) if config.is_file() else {}
    for key in KEYS:
        if content.get(key):
            return f"{key} in config.json"
    card = folder / "README.md"
    if card.is_file() and WORD in card_text(card).lower():
        return "its model card mentions Matryoshka"
    return None


@step("compression", version=MEASURE_VERSION, tables=(CompressionRow,), name="compression")
def compressed_search(out: Outputs, spec: CheckpointSpec, collection: Staged) -> None:
    """Table ``compression``.

    Args:
        collection: the file of ``collection_text``.

    Raises:
        NotMeasurable: if there are too few documents for ten of them to say anything.
    """
    searched = read_collection(collection)
    documents = len(searched.documents)
    if documents < MIN_DOCUMENTS:
        raise NotMeasurable(f"of {documents} documents, the ten nearest are most or all.")
    checkpoint = checkpoint_of(spec)
    shared = {
        "data_set": searched.collection.name,
        "queries": len(searched.queries),
        "documents": documents,
        "dimension": searched.documents.shape[1],
        "words_ndcg": words_ndcg(searched),
    }
    declared = declared_cut(checkpoint.resolved.folder, checkpoint.recipe.truncate_dim)
    whole, *others = search_compressed(searched)
    rows = [{**shared, "declared": declared, **_columns(one, whole, searched)} for one in (whole, *others)]
    out.rows(CompressionRow, rows)


def words_ndcg(searched: Searched) -> float | None:
    """nDCG@10 of BM25; None if no text has a word."""
    from embaudit.measures.quality.baselines import BM25, collection_overlap

    one = searched.collection
    found = collection_overlap(one.queries, one.documents)
    return float(searched.ndcg(ranked(found[BM25], one.own)).mean()) if found else None


def _columns(one: Compressed, whole: Compressed, searched: Searched) -> dict[str, Any]:
    values: dict[str, np.ndarray | None] = {
        "recall": one.recall,
        "ndcg": one.ndcg,
        "ndcg_change": one.ndcg - whole.ndcg,
        "beyond_random": None if one.control is None else one.recall - one.control.recall,
        "ndcg_beyond_random": None if one.control is None else one.ndcg - one.control.ndcg,
    }
    found: dict[str, Any] = {
        "way": one.way,
        "kept": one.kept,
        "bytes": one.bytes,
        "of_float32": one.bytes / whole.bytes,
        "random_recall": None if one.control is None else float(one.control.recall.mean()),
        "random_spread": None if one.control is None else one.control.spread,
    }
    for name, own in values.items():
        found |= (Estimate() if own is None else estimate(own, searched.collection.units)).columns(name)
    return found


def measure(run: Run) -> list[Staged]:
    """A judged collection searched with smaller vectors."""
    try:
        collection = collection_of(run, run.settings(CompressionSettings))
        return run(compressed_search, run.spec, collection)
    except NotMeasurable as error:
        return [run.skipped("compression", error)]
