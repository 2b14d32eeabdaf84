"""Compression as a step: one row for each way to store vectors, and whether a cut is declared (Matryoshka).

A collection searched with smaller vectors: their codes, what is still found, and whether first dimensions hold more.

q is a query, x a document, both (d,) float32; only documents are stored, so only they are coded. The query stays as it
is, except for Hamming distances.

    int8              c_i = ⌊(x_i − l_i)/s_i⌋ with s_i = (h_i − l_i)/255, l_i the least and h_i the greatest x_i of all
                      documents; read back as l_i + s_i (c_i + ½), and compared with q by the declared similarity
    binary            b_i = 1 if x_i > 0, otherwise 0; similarity −Σ_i |b_i(q) − b_i(x)|, of bits of both (Hamming)
    binary, rescored  of the 40 most similar by Hamming, the order of Σ_i q_i (2 b_i(x) − 1)
    a cut to D        x_i for i ∈ D, scaled to the length of x; of the query, too

Codes are those of sentence-transformers' ``quantize_embeddings`` with the documents as calibration (its
``semantic_search_usearch`` reads codes back at the lower edge of each step: the half step more moves all documents
alike), and rescoring is that of ``semantic_search_faiss`` with ``rescore_multiplier`` 4 and of the blog
"Binary and Scalar Embedding Quantization" (huggingface.co/blog/embedding-quantization, 2024), without its second
rescoring by int8. Cuts are those of Matryoshka representation learning (Kusupati et al. 2022, arXiv 2205.13147).

R(q) are the ten documents that float32 finds for query q, R_w(q) those that way w finds.

    recall of w           mean over q of |R(q) ∩ R_w(q)| / |R(q)|
    nDCG change of w      mean over q of nDCG@10_w(q) − nDCG@10(q)
    beyond random of k    mean over q of recall(first k dimensions) − mean over ten draws of recall(k random dimensions)

A checkpoint trained to be cut (Matryoshka) has more in its first dimensions than in random ones; in any other, the
first k are k like all others. Recall is among few documents here: among millions, the tenth and the eleventh are closer
together, and every way loses more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from embaudit.checkpoint.files import read_object
from embaudit.corpora.downstream.retrieval import CUT as NEAREST
from embaudit.corpora.downstream.retrieval import overlaps, ranked
from embaudit.measures.collection import RESAMPLES, Searched, collection_of, read_collection
from embaudit.measures.compression import MEASURE_VERSION, CompressionRow, CompressionSettings, Way
from embaudit.measures.run import Run
from embaudit.statistics import mean_interval
from embaudit.steps.results import CheckpointSpec, Staged, checkpoint_of
from embaudit.steps.step import Outputs, step
from embaudit.system.small_files import card_text
from embaudit.words.errors import NotMeasurable
from embaudit.words.estimate import Estimate

STEPS = 255
# 10 results times sentence-transformers' ``rescore_multiplier`` of its examples, 4.
CANDIDATES = 40
# Ties of Hamming distances are broken at random, not by place: relevant documents often come first in a file.
TIE = 0.5


def read_back(documents: np.ndarray) -> np.ndarray:
    """(n, d) float64 documents after a round trip through int8, with a scale for each dimension."""
    low, high = (end(axis=0).astype(np.float64) for end in (documents.min, documents.max))
    step = (high - low) / STEPS
    # A dimension with one value keeps it.
    whole = np.where(step == 0, 1.0, step)
    codes = np.clip(np.floor((documents - low) / whole), 0, STEPS)
    return np.asarray(low + step * (codes + 0.5))


def bits(vectors: np.ndarray) -> np.ndarray:
    """(n, d) float32 of 0 and 1: whether a coordinate is above 0."""
    return (vectors > 0).astype(np.float32)


def hamming(queries: np.ndarray, documents: np.ndarray, seed: int) -> np.ndarray:
    """(q, n) float64 similarities: minus the number of bits that differ, with ties in random order."""
    asked, known = bits(queries), bits(documents)
    # |a − b| = a + b − 2ab for bits; exact in float32 up to 2²⁴ dimensions.
    apart = asked.sum(axis=1)[:, None] + known.sum(axis=1)[None, :] - 2 * asked @ known.T
    order = np.random.default_rng([seed, *apart.shape]).random(apart.shape)
    return np.asarray(-apart.astype(np.float64) - TIE * order)


def rescored(similarities: np.ndarray, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """(q, n) float64: of each query's best candidates the product with the documents' signs; −∞ of all others."""
    signed = queries.astype(np.float64) @ (2 * bits(documents) - 1).T
    best = np.argsort(-similarities, axis=1, kind="stable")[:, :CANDIDATES]
    found = np.full(similarities.shape, -np.inf)
    np.put_along_axis(found, best, np.take_along_axis(signed, best, axis=1), axis=1)
    return found


def cut(vectors: np.ndarray, dimensions: Sequence[int] | np.ndarray) -> np.ndarray:
    """(n, k) float64 coordinates in some dimensions, scaled to the length that each vector had in all of them.

    So unit vectors stay unit vectors, and a dot product of others still counts their lengths. A vector that is 0 in
    these dimensions stays 0, which has a cosine of 0 with everything.
    """
    kept = vectors[:, dimensions].astype(np.float64)
    lengths = np.linalg.norm(kept, axis=1)
    whole = np.linalg.norm(vectors.astype(np.float64), axis=1)
    return np.asarray(kept * (whole / np.where(lengths == 0, 1.0, lengths))[:, None])


SEED = 0
DRAWS = 10
WAYS: tuple[Way, ...] = get_args(Way)
# The dimensions that are kept: one in so many.
CUTS: dict[Way, int] = {"first half": 2, "first quarter": 4, "first eighth": 8, "first quarter, int8": 4}
BITS: dict[Way, int] = {"int8": 8, "binary": 1, "binary, rescored": 1, "first quarter, int8": 8}
FLOAT_BITS = 32
# Among fewer, ten are most of what there is, whatever the vectors.
MIN_DOCUMENTS = 2 * NEAREST


@dataclass(frozen=True)
class Control:
    """The search by random dimensions: (q,) recall and nDCG of each query, mean over draws.

    Attributes:
        spread: standard deviation over draws of their mean recall.
    """

    recall: np.ndarray
    ndcg: np.ndarray
    spread: float


@dataclass(frozen=True)
class Compressed:
    """One way to store vectors, with (q,) figures of each query.

    Attributes:
        bytes: of a stored vector.
        control: of a cut.
    """

    way: Way
    kept: int
    bytes: int
    recall: np.ndarray
    ndcg: np.ndarray
    control: Control | None = None


def search_compressed(searched: Searched) -> Iterator[Compressed]:
    """Every way that the dimension allows, float32 first."""
    d = searched.documents.shape[1]
    whole = searched.ranking(searched.similarities())
    controls: dict[int, Control] = {}
    for way in WAYS:
        kept = d // CUTS.get(way, 1)
        if not kept:
            continue
        ranking = searched.ranking(similarities(searched, way, kept))
        if kept < d and kept not in controls:
            controls[kept] = _random_dimensions(searched, whole, kept)
        yield Compressed(
            way,
            kept,
            -(-kept * BITS.get(way, FLOAT_BITS) // 8),
            overlaps(whole, ranking),
            searched.ndcg(ranking),
            controls.get(kept),
        )


def similarities(searched: Searched, way: Way, kept: int) -> np.ndarray:
    """(q, n) similarities of queries and stored documents."""
    queries, documents = searched.queries, searched.documents
    if way in ("binary", "binary, rescored"):
        found = hamming(queries, documents, SEED)
        return found if way == "binary" else rescored(found, queries, documents)
    if kept < documents.shape[1]:
        queries, documents = (cut(vectors, np.arange(kept)) for vectors in (queries, documents))
    return searched.similarities(queries, read_back(documents) if way in BITS else documents)


def estimate(values: np.ndarray, units: np.ndarray) -> Estimate:
    """The mean of (q,) values with its interval over queries; queries that share a document are drawn together."""
    return Estimate.holding(float(values.mean()), mean_interval(values, units, RESAMPLES, SEED))


def _random_dimensions(searched: Searched, whole: np.ndarray, kept: int) -> Control:
    generator = np.random.default_rng([SEED, kept])
    recalls, gains = [], []
    for _ in range(DRAWS):
        chosen = generator.choice(searched.documents.shape[1], kept, replace=False)
        ranking = searched.ranking(
            searched.similarities(cut(searched.queries, chosen), cut(searched.documents, chosen))
        )
        recalls.append(overlaps(whole, ranking))
        gains.append(searched.ndcg(ranking))
    spread = float(np.mean(recalls, axis=1).std(ddof=1))
    return Control(np.mean(recalls, axis=0), np.mean(gains, axis=0), spread)


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
    from embaudit.measures.quality.measured import BM25, collection_overlap

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
