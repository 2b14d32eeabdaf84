"""Chunks as a step: a collection of long documents is searched whole and in pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from embaudit.corpora.downstream.retrieval import ranked
from embaudit.measures.chunks import MEASURE_VERSION, ChunkChoiceRow, ChunkLengthRow, ChunkRow, ChunksSettings
from embaudit.measures.collection import Searched, collection_of, is_written, pieces_of, read_collection
from embaudit.measures.run import Run
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, encoder_of
from embaudit.steps.step import Outputs, step
from embaudit.words.errors import NotMeasurable

if TYPE_CHECKING:
    from embaudit.checkpoint import Encoder
    from embaudit.measures.chunks.documents import Key, Searchable, Ways

SEED = 0
# Fewer queries say nothing about a part of them.
FEWEST = 10
PARTS = {True: ("passage read", "passage cut"), False: ("document read whole", "document cut")}


@step(
    "chunks",
    version=MEASURE_VERSION,
    tables=(ChunkRow, ChunkLengthRow, ChunkChoiceRow),
    name="documents in chunks",
    reads=("corpora", "sizes", "passages", "searched"),
)
def searched_in_pieces(out: Outputs, spec: CheckpointSpec, collection: Staged, settings: ChunksSettings) -> None:
    """Tables ``chunk``, ``chunk_length`` and ``chunk_choice``.

    Raises:
        NotMeasurable: if no document is long enough to be cut, or all queries are about one document.
    """
    from embaudit.measures.chunks.documents import as_given, compose, is_long, is_read, part_of

    searched = read_collection(collection)
    encoder = encoder_of(spec, "document")
    limit = encoder.checkpoint.content_limit
    part, _ = part_of(searched.collection, settings.searched)
    own = encoder.own_ids(part.documents)
    # The embedded sample has no long documents: its passages are composed whatever the sizes are.
    is_composed = not settings.corpora or not is_long([len(ids) for ids in own], min(settings.sizes))
    material = compose(part, settings.passages, SEED) if is_composed else as_given(part)
    ways, pieces, words = _searched(encoder, searched, material, [size for size in settings.sizes if size < limit])
    choice = ways.choice(SEED)
    if len(ways.found) == 1:
        raise NotMeasurable(f"no document is cut by a size below the {limit} tokens that are read.")
    if choice is None:
        raise NotMeasurable("all queries are about one document.")
    rows = [
        {**ways.row(key), **pieces[key], "words_score": _mean(words, key), "is_best": key == ways.best}
        for key in ways.found
    ]
    out.rows(ChunkRow, rows, encodes=encoder.texts)
    lengths = [len(ids) for ids in own]
    read = is_read(material, lengths, limit, encoder.checkpoint.tokenizer.truncation_side)
    out.rows(
        ChunkLengthRow,
        [
            {"part": name, **ways.row(key, chosen), "words_score": _mean(words, key, chosen)}
            for name, chosen in zip(PARTS[is_composed], (read, ~read), strict=True)
            if chosen.sum() >= FEWEST
            for key in ways.found
        ],
    )
    whole = encoder.own_ids(material.collection.documents)
    unknown = encoder.checkpoint.tokenizer.unk_token_id
    summary = {
        "data_set": part.name,
        "is_composed": is_composed,
        "passages": settings.passages if is_composed else 1,
        "documents": len(whole),
        "tokens": float(np.mean([len(ids) for ids in whole])),
        "length_limit": limit,
        "truncated": sum(len(ids) > limit for ids in whole),
        "unwritten": sum(not is_written(ids, unknown) for ids in whole),
        **{"way": choice.way[0], "size": choice.way[1]},
        **{"choosing": choice.choosing, "reporting": choice.reporting, "whole": choice.whole},
        **choice.gain.columns("gain"),
    }
    out.rows(ChunkChoiceRow, [summary])


def _searched(
    encoder: Encoder, searched: Searched, material: Searchable, sizes: Sequence[int]
) -> tuple[Ways, dict[Key, dict[str, Any]], dict[Key, np.ndarray]]:
    """nDCG@10 by way; how many pieces there are; and BM25's nDCG@10."""
    from embaudit.measures.chunks.documents import WHOLE, Ways, best_of_pieces, mean_of_pieces, mean_scores
    from embaudit.measures.quality.measured import BM25, collection_overlap

    documents = material.collection.documents
    cut = {size: [pieces_of(text, size, encoder.own_ids) for text in documents] for size in sizes}
    cut = {size: own for size, own in cut.items() if any(len(pieces) > 1 for pieces in own)}
    # A document of one piece is the whole document: its vector is the same, and its gain exactly 0.
    place: dict[str, int] = {}
    for text in (*documents, *(piece for own in cut.values() for pieces in own for piece in pieces)):
        place.setdefault(text, len(place))
    with tracked("chunks", len(place)) as advance:
        vectors = encoder.encode_texts(list(place), advance)
    queries = searched.queries[np.array(material.queries)]

    def scored(similarities: np.ndarray) -> np.ndarray:
        from embaudit.corpora.downstream.retrieval import evaluate

        ranking = ranked(similarities, material.collection.own)
        return evaluate(material.collection.relevant, ranking)["ndcg_10"]

    def similarities(known: np.ndarray) -> np.ndarray:
        return searched.similarities(queries, known)

    def overlap(texts: Sequence[str]) -> np.ndarray | None:
        return collection_overlap(material.collection.queries, texts).get(BM25)

    whole = (WHOLE, encoder.checkpoint.content_limit)
    found: dict[Key, np.ndarray] = {whole: scored(similarities(vectors[[place[text] for text in documents]]))}
    by_words: dict[Key, np.ndarray | None] = {whole: overlap(documents)}
    pieces: dict[Key, dict[str, Any]] = {whole: {"pieces": 1.0, "cut": 0}}
    for size, own in cut.items():
        texts = [piece for of_document in own for piece in of_document]
        owners = np.repeat(np.arange(len(own)), [len(of_document) for of_document in own])
        of_size = vectors[[place[text] for text in texts]]
        best, mean = ("best", size), ("mean", size)
        found[best] = scored(best_of_pieces(similarities(of_size), owners))
        found[mean] = scored(similarities(mean_of_pieces(of_size, owners)))
        words = overlap(texts)
        by_words[best] = None if words is None else best_of_pieces(words, owners)
        by_words[mean] = None if words is None else mean_scores(words, owners)
        count = {"pieces": len(texts) / len(own), "cut": sum(len(of_document) > 1 for of_document in own)}
        pieces |= {best: count, mean: count}
    known = {key: scored(one) for key, one in by_words.items() if one is not None}
    return Ways(material.collection, found), pieces, known


def _mean(scores: Mapping[Key, np.ndarray], key: Key, chosen: np.ndarray | None = None) -> float | None:
    if key not in scores:
        return None
    return float(scores[key].mean() if chosen is None else scores[key][chosen].mean())


def measure(run: Run) -> list[Staged]:
    """Long documents whole and in pieces; a collection that cannot tell gets a note."""
    settings = run.settings(ChunksSettings)
    try:
        staged = run(searched_in_pieces, run.spec, collection_of(run, settings), settings)
    except NotMeasurable as error:
        return [run.skipped("chunks", error)]
    return [part for part in staged if part.rows]
