"""The texts that quality is measured on: scored pairs and judged collections, the user's own or those of the sample.

Scores of different data sets are on different scales, so they are never pooled: each data set has figures of its own.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from embaudit.corpora.downstream import units_of
from embaudit.corpora.downstream.material import pick_graded, pick_judged
from embaudit.corpora.draw import Corpus, TextPair, content_order
from embaudit.corpora.judged import JudgedCollection, own_of, relevant_of
from embaudit.measures.quality import GOLDEN_DOCUMENTS
from embaudit.words.errors import NotMeasurable

if TYPE_CHECKING:
    from embaudit.checkpoint import TextKind

SAMPLE_FOLDER = Path(__file__).parents[2] / "corpora" / "sample"
SAMPLE = "sample"
# Together over all data sets: what is encoded in the few seconds that a check may take.
MAX_PAIRS, MAX_DOCUMENTS, MAX_QUERIES = 600, 270, 120
# More data sets would have too few pairs each to tell anything.
MAX_DATA_SETS = 4
# Shares of a data set's range of scores: on 0 to 5, a pair matches from 4 and is unrelated up to 1.
MATCHING, UNRELATED = 0.8, 0.2
SEED = 0
# What to do where there are too few to tell.
MORE_PAIRS = "Give more scored pairs (500)."
MORE = "Give more scored pairs (500) or judged queries (100)."
MEND = "Mend the file, or give another; docs/corpora.md says what a row needs."
# Queries with the grades of their relevant documents by place, and the places of documents that are the query itself.
Asked = list[tuple[str, Mapping[int, float], frozenset[int]]]


@dataclass(frozen=True)
class MaterialLimits:
    """How many of the user's texts are read, together over all data sets."""

    pairs: int = MAX_PAIRS
    documents: int = MAX_DOCUMENTS
    queries: int = MAX_QUERIES


FEW = MaterialLimits()


@dataclass(frozen=True)
class ScoredPairs:
    """Sentence pairs of one data set with people's scores, on any scale; higher is more alike."""

    name: str
    firsts: tuple[str, ...]
    seconds: tuple[str, ...]
    scores: tuple[float, ...]

    @cached_property
    def wanted(self) -> np.ndarray:
        """(n,) float64 scores."""
        return np.array(self.scores, dtype=np.float64)

    @property
    def is_matching(self) -> np.ndarray:
        """(n,) whether a pair's score is in the top fifth of the scale."""
        return self._height >= MATCHING - 1e-9

    @property
    def is_unrelated(self) -> np.ndarray:
        """(n,) whether a pair's score is in the bottom fifth of the scale."""
        return self._height <= UNRELATED + 1e-9

    @cached_property
    def _height(self) -> np.ndarray:
        low, high = self.wanted.min(), self.wanted.max()
        return np.asarray((self.wanted - low) / max(high - low, 1e-12))

    @cached_property
    def units(self) -> np.ndarray:
        """(n,) unit of each pair: pairs that share a sentence are resampled together."""
        sentences: dict[str, int] = {}
        links = [
            (pair, len(self.scores) + sentences.setdefault(text, len(sentences)))
            for side in (self.firsts, self.seconds)
            for pair, text in enumerate(side)
        ]
        return units_of(len(self.scores) + len(sentences), links)[: len(self.scores)]

    def at(self, places: np.ndarray) -> ScoredPairs:
        """The pairs at these places."""
        return ScoredPairs(
            self.name,
            tuple(self.firsts[one] for one in places),
            tuple(self.seconds[one] for one in places),
            tuple(self.scores[one] for one in places),
        )

    def first(self, most: int) -> ScoredPairs:
        """The first pairs; their order is random (``of_pairs``), so this is a random part."""
        return ScoredPairs(self.name, self.firsts[:most], self.seconds[:most], self.scores[:most])


@dataclass(frozen=True)
class Collection:
    """Documents, and queries with the grades (above 0) of their relevant documents by place.

    Attributes:
        own: for each query, the documents that are the query itself and are not ranked for it; empty: none has any.
        is_golden: whether its judgements are a user's own few, of which each counts by its name.
    """

    name: str
    queries: tuple[str, ...]
    documents: tuple[str, ...]
    relevant: tuple[Mapping[int, float], ...]
    own: tuple[frozenset[int], ...] = ()
    is_golden: bool = False

    @cached_property
    def units(self) -> np.ndarray:
        """(queries,) unit of each query: queries that share a relevant document are resampled together."""
        count = len(self.queries)
        links = [(query, count + place) for query, grades in enumerate(self.relevant) for place in grades]
        return units_of(count + len(self.documents), links)[:count]

    def first(self, queries: int, documents: int) -> tuple[Collection, np.ndarray]:
        """The first queries with all their documents and others up to a number; and the places of those documents."""
        kept = self.relevant[:queries]
        needed = {place for grades in kept for place in grades}
        others = [place for place in range(len(self.documents)) if place not in needed]
        places = sorted([*needed, *others[: max(0, documents - len(needed))]])
        new = {place: index for index, place in enumerate(places)}
        relevant = tuple({new[place]: grade for place, grade in grades.items()} for grades in kept)
        own = tuple(frozenset(new[place] for place in one if place in new) for one in self.own[:queries])
        chosen = tuple(self.documents[place] for place in places)
        part = replace(self, queries=self.queries[:queries], documents=chosen, relevant=relevant, own=own)
        return part, np.array(places, dtype=np.int64)


@dataclass(frozen=True)
class Material:
    """Everything that quality is measured on.

    Attributes:
        golden: golden queries, of which all are asked, among more documents than a score needs.
        missing: what was given but cannot be used, and why.
    """

    pairs: tuple[ScoredPairs, ...] = ()
    collections: tuple[Collection, ...] = ()
    golden: tuple[Collection, ...] = ()
    missing: tuple[str, ...] = ()

    def texts_by_role(self) -> dict[TextKind, list[str]]:
        """The texts of its pairs, each once, and of its collections; golden ones left out."""
        return {
            "text": list(dict.fromkeys(text for one in self.pairs for text in (*one.firsts, *one.seconds))),
            "query": [text for one in self.collections for text in one.queries],
            "document": [text for one in self.collections for text in one.documents],
        }

    def part(self, share: float) -> Material:
        """A share of its pairs, queries and documents: the first of each, whose order is random or has a mix."""
        collections, golden = (
            tuple(one.first(int(len(one.queries) * share), int(len(one.documents) * share))[0] for one in some)
            for some in (self.collections, self.golden)
        )
        pairs = tuple(one.first(int(len(one.scores) * share)) for one in self.pairs)
        return Material(pairs, collections, golden, self.missing)


def sample_material() -> Material:
    """The embedded sample's first scored pairs, and its first judged queries with all passages judged for them.

    Its pairs are ordered so that the first ones have the mix of the whole, and its wrong passages are written for one
    query each, so a random part would be easier.
    """
    with (SAMPLE_FOLDER / "quality_pairs.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[:MAX_PAIRS]
    firsts, seconds = (tuple(row[side] for row in rows) for side in ("sentence1", "sentence2"))
    pairs = ScoredPairs(SAMPLE, firsts, seconds, tuple(float(row["score"]) for row in rows))
    judged: dict[str, dict[str, float]] = {}
    with (SAMPLE_FOLDER / "quality_judgements.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            judged.setdefault(row["query-id"], {})[row["corpus-id"]] = float(row["score"])
    texts = {row["_id"]: f"{row['title']} {row['text']}" if row.get("title") else row["text"] for row in _passages()}
    places: dict[str, int] = {}
    queries: list[str] = []
    relevant: list[dict[int, float]] = []
    for query in _lines("quality_queries.jsonl"):
        grades = judged.get(query["_id"], {})
        if len({*places, *grades}) > MAX_DOCUMENTS:
            break
        of_query = {places.setdefault(name, len(places)): grade for name, grade in grades.items()}
        queries.append(query["text"])
        relevant.append({place: grade for place, grade in of_query.items() if grade > 0})
    documents = tuple(texts[name] for name in places)
    return Material((pairs,), (Collection(SAMPLE, tuple(queries), documents, tuple(relevant)),))


def user_material(
    pairs: Iterable[Corpus] = (),
    collections: Iterable[JudgedCollection] = (),
    limits: MaterialLimits = FEW,
) -> Material:
    """What the readers of ``embaudit.corpora`` give for the user's own pairs and collections."""
    judged: dict[str, tuple[list[str], Asked]] = {
        one.documents.source: (
            [text.text for text in one.documents.texts],
            asked_of((text.text, text.label or "") for text in one.queries.texts),
        )
        for one in collections
    }
    return material_of({one.source: one.pairs for one in pairs}, judged, limits)


def golden_collection(name: str, documents: Sequence[str], asked: Asked, most: int = GOLDEN_DOCUMENTS) -> Collection:
    """All the queries with the documents that they should find, and others of them, at random, up to a number."""
    answers = {place for _, grades, own in asked for place in (*grades, *own)}
    others = (place for place in content_order(documents, SEED) if place not in answers)
    places = sorted([*answers, *islice(others, max(0, most - len(answers)))])
    new = {place: index for index, place in enumerate(places)}
    return Collection(
        name,
        tuple(text for text, *_ in asked),
        tuple(documents[place] for place in places),
        tuple({new[place]: grade for place, grade in grades.items()} for _, grades, _ in asked),
        tuple(frozenset(new[place] for place in own) for *_, own in asked),
        is_golden=True,
    )


def golden_of(judged: JudgedCollection, most: int = GOLDEN_DOCUMENTS) -> Collection:
    """What the reader of golden queries gives."""
    name = f"{judged.queries.source} in {judged.documents.source}"
    asked = asked_of((text.text, text.label or "") for text in judged.queries.texts)
    return golden_collection(name, [text.text for text in judged.documents.texts], asked, most)


def asked_of(queries: Iterable[tuple[str, str]]) -> Asked:
    """Queries with the labels that ``embaudit.corpora.judged`` gives them."""
    return [(text, relevant_of(label), own_of(label)) for text, label in queries]


def material_of(
    pairs: Mapping[str, Iterable[TextPair]],
    collections: Mapping[str, tuple[list[str], Asked]],
    limits: MaterialLimits = FEW,
) -> Material:
    """A random part of each data set, by seed and content; a data set that cannot be used is listed as missing.

    Args:
        pairs: by source, which may hold several data sets (``TextPair.data_set``), each on its own scale; pairs without
            a score are left out.
        collections: the documents of each, and its queries with grades by the document's place.
    """
    found: list[ScoredPairs] = []
    judged: list[Collection] = []
    missing: list[str] = []
    scored = _by_data_set(pairs)
    kept = sorted(scored, key=lambda name: -len(scored[name]))[:MAX_DATA_SETS]
    for name in [name for name in scored if name in kept]:
        try:
            picked = pick_graded(scored[name], limits.pairs // len(kept), SEED)
            found.append(ScoredPairs(name, picked.firsts, picked.seconds, picked.scores))
        except NotMeasurable as error:
            missing.append(f"the pairs of {name}: {error.happened}")
    if len(kept) < len(scored):
        missing.append(
            f"{len(scored) - len(kept)} smaller data sets of pairs: the {len(kept)} largest of them are read."
        )
    for name, (documents, asked) in collections.items():
        most = limits.documents // len(collections), limits.queries // len(collections)
        try:
            graded = [(text, grades) for text, grades, _ in asked]
            part = pick_judged(documents, graded, *most, SEED, [own for *_, own in asked])
            judged.append(Collection(name, part.queries, part.documents, part.relevant, part.own))
        except NotMeasurable as error:
            missing.append(f"the queries of {name}: {error.happened}")
    return Material(tuple(found), tuple(judged), missing=tuple(missing))


def _by_data_set(pairs: Mapping[str, Iterable[TextPair]]) -> dict[str, list[tuple[str, str, float | None]]]:
    """The pairs of each data set, by its own name where a source holds several."""
    found: dict[str, list[tuple[str, str, float | None]]] = {}
    for source, rows in pairs.items():
        own: dict[str | None, list[tuple[str, str, float | None]]] = {}
        for row in rows:
            own.setdefault(row.data_set, []).append((row.first, row.second, row.score))
        if not own:
            own[None] = []
        for name, graded in own.items():
            found[source if len(own) == 1 else f"{name or 'no data set'} in {source}"] = graded
    return found


def _passages() -> list[dict[str, str]]:
    return _lines("quality_passages.jsonl")


def _lines(name: str) -> list[dict[str, str]]:
    with (SAMPLE_FOLDER / name).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]
