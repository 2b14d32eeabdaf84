"""A judged collection with its vectors, as a step: several measures search it, and each text is encoded once.

The user's own collection (``--corpus retrieval=FOLDER``); without one, the passages and queries of the embedded sample
that ``quality`` reads, too.

Long texts in pieces, as text: what a piece holds is what somebody would store who cuts documents before encoding.

A piece is a run of whole sentences with at most so many tokens. A sentence that is longer is cut between words (its
beginning fills the piece before), and a word, or a script without spaces, between characters. Pieces do not overlap,
and only the spaces around them are lost.
Tokens are counted part by part, which is exact where a tokenizer never joins words. One that joins a space to the word
behind it has one token more for each part: pieces are then shorter, not longer (GPT-2's: .90 of 256 tokens, .58 of 32).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from embaudit.corpora.downstream.retrieval import evaluate, ranked
from embaudit.corpora.judged import label_of, own_of, relevant_of
from embaudit.measures.measure import CollectionSettings
from embaudit.measures.run import Run
from embaudit.measures.task_material import corpora_of
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, checkpoint_of, encoder_of
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import Outputs, step
from embaudit.words.errors import NotMeasurable

if TYPE_CHECKING:
    from embaudit.measures.quality.material import Collection


# Increase this when other texts are picked, or vectors are computed differently.
VERSION = 1
TABLE = "collection_text"
SCHEMA = {"side": "string", "text": "string", "label": "string", "vector": "binary"}
RESAMPLES = 1_000


@dataclass(frozen=True)
class CollectionFound:
    """A collection's name, and the similarity that the checkpoint declares."""

    name: str
    similarity: str


@step("collection", version=VERSION, tables=(TABLE,), name="a collection's vectors", reads=("documents", "queries"))
def collection_vectors(
    out: Outputs, spec: CheckpointSpec, corpora: list[StagedCorpus], settings: CollectionSettings
) -> None:
    """The texts of a judged collection with their vectors: queries first, documents after them.

    Args:
        corpora: documents with their queries; empty: the embedded sample.

    Raises:
        NotMeasurable: if there are too few to search.
    """
    from embaudit.embedders.checkpoint import declared_similarity

    collection = _picked(corpora, settings)
    asked, known = encoder_of(spec, "query"), encoder_of(spec, "document")
    count = len(collection.documents)
    own = collection.own or (frozenset(),) * len(collection.queries)
    labels = [label_of(relevant, mine) for relevant, mine in zip(collection.relevant, own, strict=True)]
    sides = (
        ("query", collection.queries, labels, asked.encode_texts(collection.queries)),
        (
            "document",
            collection.documents,
            [None] * count,
            known.encode_texts(collection.documents),
        ),
    )
    rows = (
        {"side": side, "text": text, "label": label, "vector": vector.astype(np.float32).tobytes()}
        for side, texts, labels_of_side, vectors in sides
        for text, label, vector in zip(texts, labels_of_side, vectors, strict=True)
    )
    out.rows(
        TABLE,
        rows,
        SCHEMA,
        encodes=asked.texts + known.texts,
        detail=CollectionFound(collection.name, declared_similarity(checkpoint_of(spec))),
    )


def collection_of(run: Run, settings: CollectionSettings) -> Staged:
    """The collection that a measure searches, encoded once for all measures with the same settings.

    Raises:
        NotMeasurable: if there are too few queries or documents.
    """
    corpora = [corpus for name in settings.corpora for corpus in corpora_of(name, run.corpora)]
    part = CollectionSettings(**{name: getattr(settings, name) for name in CollectionSettings.model_fields})
    (staged,) = run(collection_vectors, run.spec, corpora, part)
    return staged


@dataclass(frozen=True)
class Searched:
    """A collection with the vectors of its (q) queries and (n) documents, (q, d) and (n, d) float32."""

    collection: Collection
    queries: np.ndarray
    documents: np.ndarray
    similarity: str

    def similarities(self, queries: np.ndarray | None = None, documents: np.ndarray | None = None) -> np.ndarray:
        """(q, n) float64 by the declared similarity; of other vectors of the same texts, if given."""
        from embaudit.measures.quality.passes import of_all

        asked, known = (
            own if other is None else other for own, other in ((self.queries, queries), (self.documents, documents))
        )
        return of_all(asked, known, self.similarity)

    def ranking(self, similarities: np.ndarray) -> np.ndarray:
        """(q, ≤ 10) places of the most similar documents."""
        return ranked(similarities, self.collection.own)

    def ndcg(self, ranking: np.ndarray) -> np.ndarray:
        """(q,) nDCG@10 of each query."""
        return evaluate(self.collection.relevant, ranking)["ndcg_10"]

    def only(self, queries: np.ndarray) -> Searched:
        """Some of the queries, by place, with all documents."""
        one = self.collection
        kept = replace(
            one,
            queries=tuple(one.queries[place] for place in queries),
            relevant=tuple(one.relevant[place] for place in queries),
            own=tuple(one.own[place] for place in queries) if one.own else (),
        )
        return replace(self, collection=kept, queries=self.queries[queries])


def read_collection(staged: Staged) -> Searched:
    """The staged collection."""
    from embaudit.measures.quality.material import Collection

    rows, found = read_rows([staged.path]), staged.found(CollectionFound)
    sides = {side: [row for row in rows if row["side"] == side] for side in ("query", "document")}
    vectors = {
        side: np.stack([np.frombuffer(row["vector"], dtype=np.float32) for row in own]) for side, own in sides.items()
    }
    texts = {side: tuple(row["text"] for row in own) for side, own in sides.items()}
    labels = [row["label"] for row in sides["query"]]
    own = tuple(map(own_of, labels))
    collection = Collection(
        found.name,
        texts["query"],
        texts["document"],
        tuple(map(relevant_of, labels)),
        own if any(own) else (),
    )
    return Searched(collection, vectors["query"], vectors["document"], found.similarity)


def _picked(corpora: Sequence[StagedCorpus], settings: CollectionSettings) -> Collection:
    from embaudit.measures.quality.material import MaterialLimits, asked_of, material_of, sample_material

    if not corpora:
        return sample_material().collections[0]
    documents, queries = (read_rows([corpus.content_path]) for corpus in corpora)
    asked = asked_of((row["text"], row["label"] or "") for row in queries)
    limits = MaterialLimits(documents=settings.documents, queries=settings.queries)
    found = material_of({}, {corpora[0].name: ([row["text"] for row in documents], asked)}, limits)
    if not found.collections:
        raise NotMeasurable("; ".join(found.missing))
    return found.collections[0]


# Own tokens of each text, as ``Checkpoint.own_ids`` gives them.
Tokenized = Callable[[Sequence[str]], list[list[int]]]
# From coarse to fine, each with the spaces after it: together, the parts are the text.
SENTENCE = re.compile(r"\s*.+?(?:[.!?…]+[\"'”’»)\]]*(?=\s)|[。！？]|\n|\Z)\s*", re.DOTALL)
WORD = re.compile(r"\s*\S+\s*")
LEVELS = (SENTENCE, WORD)
# With a larger share of unknown tokens, ids say little of what their text says.
UNKNOWN = 0.5


def pieces_of(text: str, size: int, tokenized: Tokenized) -> list[str]:
    """The pieces of at most ``size`` tokens; a text that is no longer is its only piece, unchanged."""
    if not text.strip() or len(tokenized([text])[0]) <= size:
        return [text]
    pieces: list[str] = []
    tokens = size
    for part, length in _parts(text, size, tokenized, 0):
        if pieces and tokens + length <= size:
            pieces[-1] += part
            tokens += length
        else:
            pieces.append(part)
            tokens = length
    return [piece.strip() for piece in pieces if piece.strip()]


def start_of(text: str, size: int, tokenized: Tokenized) -> list[int]:
    """The first ``size`` tokens of a text, or up to the last sentence's end among them if at least half are left."""
    ids = tokenized([text])[0]
    if len(ids) <= size:
        return ids
    first = tokenized([pieces_of(text, size, tokenized)[0]])[0]
    return first[:size] if len(first) >= size / 2 else ids[:size]


def is_written(ids: Sequence[int], unknown: int | None) -> bool:
    """Whether at least half of a text's tokens are known ones; False for a text without tokens."""
    return len(ids) > 0 and sum(token == unknown for token in ids) <= UNKNOWN * len(ids)


def best_of(grades: Mapping[int, float]) -> int:
    """The place of the document with the highest grade, the first of several."""
    return min(grades, key=lambda place: (-grades[place], place))


def _parts(text: str, size: int, tokenized: Tokenized, level: int) -> Iterator[tuple[str, int]]:
    """Consecutive parts of at most ``size`` tokens, with their numbers of tokens."""
    halves = [text[: len(text) // 2], text[len(text) // 2 :]]
    parts = LEVELS[level].findall(text) if level < len(LEVELS) else halves
    for part, ids in zip(parts, tokenized(parts), strict=True):
        if len(ids) <= size or len(part) == 1:
            yield part, len(ids)
        else:
            yield from _parts(part, size, tokenized, level + 1)
