"""A data set with the vectors of its texts: similarities under any name, and the score that its kind of data allows.

What needs no network: word overlap, and the mean of the checkpoint's own input embeddings.

A network that does no better than these adds nothing to its words; a trained one does on any texts with paraphrases.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy

from embaudit.checkpoint import Checkpoint
from embaudit.embedders.checkpoint import declared_similarity
from embaudit.measures.quality.material import Collection, ScoredPairs
from embaudit.measures.quality.passes import POOLINGS, SERVED, MultiPoolingEncoder, Pass, of_all, of_pairs
from embaudit.measures.quality.scores import CollectionScorer, PairScorer, ResampledScore
from embaudit.words.estimate import Numbers

TFIDF, BM25, INPUT_EMBEDDINGS = "TF-IDF", "BM25", "its own input embeddings"
# Words of any script, single characters included: Chinese and Japanese have no spaces between words.
WORDS = r"(?u)[^\W_]+"


def pair_baselines(checkpoint: Checkpoint, firsts: Sequence[str], seconds: Sequence[str]) -> dict[str, np.ndarray]:
    """(n,) similarity of each pair by TF-IDF cosine and by input embeddings."""
    first, second = (mean_input_embeddings(checkpoint, texts) for texts in (firsts, seconds))
    return {INPUT_EMBEDDINGS: of_pairs(first, second)} | pair_overlap(firsts, seconds)


def pair_overlap(firsts: Sequence[str], seconds: Sequence[str]) -> dict[str, np.ndarray]:
    """(n,) similarity of each pair by TF-IDF cosine; nothing if there is no word."""
    rows = _tfidf([*firsts, *seconds])
    if rows is None:
        return {}
    return {TFIDF: np.asarray(rows[: len(firsts)].multiply(rows[len(firsts) :]).sum(axis=1)).ravel()}


def collection_baselines(
    checkpoint: Checkpoint, queries: Sequence[str], documents: Sequence[str]
) -> dict[str, np.ndarray]:
    """(queries, documents) similarity by BM25, TF-IDF cosine and input embeddings."""
    asked = mean_input_embeddings(checkpoint.reading("query"), queries)
    known = mean_input_embeddings(checkpoint.reading("document"), documents)
    return {INPUT_EMBEDDINGS: of_all(asked, known)} | collection_overlap(queries, documents)


def collection_overlap(queries: Sequence[str], documents: Sequence[str]) -> dict[str, np.ndarray]:
    """(queries, documents) similarity by TF-IDF cosine and BM25; nothing if there is no word."""
    tfidf = word_cosines(queries, documents)
    return {} if tfidf is None else {TFIDF: tfidf, BM25: _bm25(queries, documents)}


def word_cosines(queries: Sequence[str], documents: Sequence[str]) -> np.ndarray | None:
    """(queries, documents) similarity by TF-IDF cosine; None if there is no word."""
    rows = _tfidf([*documents, *queries])
    return None if rows is None else (rows[len(documents) :] @ rows[: len(documents)].T).toarray()


def mean_input_embeddings(checkpoint: Checkpoint, texts: Sequence[str]) -> np.ndarray:
    """(n, d) float32 mean of the rows of a text's own tokens, as many as the checkpoint reads; 0 for no token."""
    import torch

    limit = checkpoint.content_limit
    own = [checkpoint.cut(ids, limit) for ids in checkpoint.own_ids(texts)]
    table = checkpoint.model.get_input_embeddings().weight
    with torch.inference_mode():
        ids = torch.tensor([token for one in own for token in one], dtype=torch.int64, device=table.device)
        starts = torch.tensor(np.r_[0, np.cumsum([len(one) for one in own])[:-1]], device=table.device)
        # The table may be larger than everything else, and in half precision.
        rows, places = torch.unique(ids, return_inverse=True)
        means = torch.nn.functional.embedding_bag(places, table[rows].float(), starts.long(), mode="mean")
    return np.asarray(means.cpu().numpy())


def _tfidf(texts: Sequence[str]) -> scipy.sparse.csr_array | None:
    """(n, words) sparse rows of length 1; None if there is no word.

    Of word w, which f_w of n texts have and this one t times: (1 + ln t) · (1 + ln((1 + n)/(1 + f_w))), as scikit-learn
    weighs it with sublinear_tf, whose import takes longer than this.
    """
    counts = [Counter(re.findall(WORDS, text.lower())) for text in texts]
    columns: dict[str, int] = {}
    places = [columns.setdefault(word, len(columns)) for one in counts for word in one]
    if not columns:
        return None
    times = np.array([time for one in counts for time in one.values()], dtype=np.float64)
    having = np.bincount(places, minlength=len(columns))
    weights = (1 + np.log(times)) * (1 + np.log((1 + len(texts)) / (1 + having)))[places]
    lengths = np.array([len(one) for one in counts])
    owners = np.repeat(np.arange(len(texts)), lengths)
    norms = np.sqrt(np.bincount(owners, weights=weights**2, minlength=len(texts)))
    return scipy.sparse.csr_array(
        (weights / norms[owners], places, np.r_[0, lengths.cumsum()]), shape=(len(texts), len(columns))
    )


def words_of(text: str) -> list[str]:
    return re.findall(WORDS, text.lower())


class Bm25:
    """Documents by some queries' words (Robertson and Zaragoza 2009, in bm25s's default form).

    A score depends on the query's words, on how many documents have them, and on lengths: all other words are one word,
    which leaves every score as it is and takes a third of the time.

    Attributes:
        having: how many documents have each of the queries' words.
    """

    def __init__(self, documents: Sequence[str], queries: Sequence[str]) -> None:
        import bm25s
        from bm25s.tokenization import Tokenized

        places = {
            word: place for place, word in enumerate(dict.fromkeys(w for one in queries for w in words_of(one)), 1)
        }
        ids = [[places.get(word, 0) for word in words_of(text)] for text in documents]
        counts = Counter(place for one in ids for place in set(one))
        self.having = {word: counts[place] for word, place in places.items()}
        self.known = {word for word, count in self.having.items() if count}
        self._documents = len(documents)
        self._retriever = bm25s.BM25()
        if self.known:
            self._retriever.index(Tokenized(ids, {"": 0, **places}), show_progress=False)

    def scores(self, query: str) -> np.ndarray:
        """(N,) float64; 0 for documents that have none of the query's words."""
        # bm25s cannot score a query without known words, which matches nothing.
        words = [word for word in words_of(query) if word in self.known]
        found = self._retriever.get_scores(words) if words else np.zeros(self._documents)
        return np.asarray(found, dtype=np.float64)


def _bm25(queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
    index = Bm25(documents, queries)
    return np.stack([index.scores(query) for query in queries])


Ids = Sequence[Sequence[int]]


@dataclass(frozen=True)
class MeasuredPairs:
    """Scored pairs; their score is Spearman's ρ.

    Attributes:
        by_layer: the similarities if the network stopped after its embeddings and each layer; empty if not known.
    """

    pairs: ScoredPairs
    scorer: PairScorer
    firsts: Pass
    seconds: Pass
    firsts_ids: Ids
    seconds_ids: Ids
    similarity: str
    baselines: dict[str, np.ndarray] = field(default_factory=dict)
    by_layer: tuple[np.ndarray, ...] = ()

    metric, kind = "Spearman's ρ", "pairs"

    @property
    def name(self) -> str:
        return f"the {self.items} pairs of {self.data_set}"

    @property
    def data_set(self) -> str:
        return self.pairs.name

    @property
    def items(self) -> int:
        """Number of pairs."""
        return len(self.pairs.scores)

    def similarities(
        self, name: str = SERVED, similarity: str | None = None, dimensions: int | None = None
    ) -> np.ndarray:
        """(n,) similarity of each pair under one of the pass's vectors, or their first dimensions."""
        one, two = (side.vectors[name][:, :dimensions] for side in (self.firsts, self.seconds))
        return of_pairs(one, two, similarity or self.similarity)

    def score(self, similarities: np.ndarray) -> ResampledScore:
        return self.scorer.spearman(similarities)


@dataclass(frozen=True)
class MeasuredCollection:
    """A judged collection; its score is nDCG@10.

    Attributes:
        by_layer: the similarities if the network stopped after its embeddings and each layer; empty if not known.
    """

    collection: Collection
    scorer: CollectionScorer
    queries: Pass
    documents: Pass
    query_ids: Ids
    document_ids: Ids
    similarity: str
    baselines: dict[str, np.ndarray] = field(default_factory=dict)
    by_layer: tuple[np.ndarray, ...] = ()

    metric, kind = "nDCG@10", "queries"

    @property
    def name(self) -> str:
        return f"the {self.items} queries of {self.data_set}"

    @property
    def data_set(self) -> str:
        return self.collection.name

    @property
    def items(self) -> int:
        """Number of queries."""
        return len(self.collection.queries)

    def similarities(
        self, name: str = SERVED, similarity: str | None = None, dimensions: int | None = None
    ) -> np.ndarray:
        """(queries, documents) similarity under one of the pass's vectors, or their first dimensions."""
        one, two = (side.vectors[name][:, :dimensions] for side in (self.queries, self.documents))
        return of_all(one, two, similarity or self.similarity)

    def score(self, similarities: np.ndarray) -> ResampledScore:
        return self.scorer.ndcg(similarities)


Measured = MeasuredPairs | MeasuredCollection


def measure_pairs(checkpoint: Checkpoint, pairs: ScoredPairs) -> MeasuredPairs:
    """Encode each sentence once.

    Raises:
        MeasureError: if a vector is not finite.
    """
    encoder = MultiPoolingEncoder(checkpoint.reading("text"))
    distinct = list(dict.fromkeys([*pairs.firsts, *pairs.seconds]))
    place = {text: index for index, text in enumerate(distinct)}
    ids = encoder.tokenize(distinct)
    found = encoder.passes(ids, POOLINGS, with_layers=True)
    similarity = declared_similarity(checkpoint)
    first, second = ([place[text] for text in side] for side in (pairs.firsts, pairs.seconds))
    return MeasuredPairs(
        pairs,
        PairScorer(pairs),
        _rows(found, first),
        _rows(found, second),
        [ids[row] for row in first],
        [ids[row] for row in second],
        similarity,
        pair_baselines(encoder.checkpoint, pairs.firsts, pairs.seconds),
        # Of many layers, vectors would be most of what is in memory.
        tuple(of_pairs(rows[first], rows[second], similarity) for rows in found.layers),
    )


def measure_collection(checkpoint: Checkpoint, collection: Collection) -> MeasuredCollection:
    """Encode each query and document once, with its prompt.

    Raises:
        MeasureError: if a vector is not finite.
    """
    queries, documents = (
        MultiPoolingEncoder(checkpoint.reading("query")),
        MultiPoolingEncoder(checkpoint.reading("document")),
    )
    asked, known = queries.tokenize(collection.queries), documents.tokenize(collection.documents)
    of_queries, of_documents = (
        encoder.passes(ids, POOLINGS, with_layers=True) for encoder, ids in ((queries, asked), (documents, known))
    )
    similarity = declared_similarity(checkpoint)
    return MeasuredCollection(
        collection,
        CollectionScorer(collection),
        Pass(of_queries.vectors),
        Pass(of_documents.vectors),
        asked,
        known,
        similarity,
        collection_baselines(checkpoint, collection.queries, collection.documents),
        tuple(of_all(*rows, similarity) for rows in zip(of_queries.layers, of_documents.layers, strict=True)),
    )


def as_json(score: ResampledScore) -> Numbers:
    """Value and interval of a score."""
    return score.estimate().as_json()


def _rows(found: Pass, places: Sequence[int]) -> Pass:
    rows = np.asarray(places, dtype=np.int64)
    return Pass({name: part[rows] for name, part in found.vectors.items()})
