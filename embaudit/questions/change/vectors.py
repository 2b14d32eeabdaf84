"""What comes out of the two: how far vectors moved by kind of text, and whether the neighbours are the same.

moved          1 − cos(v', v) of a text's two vectors
overlap@10     share of a text's ten nearest texts (a query's ten best documents) that are the same in both
agreement      Spearman's ρ between the similarities that the two give to the same pairs
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.agreement import KINDS
from embaudit.corpora.downstream.retrieval import CUT as NEIGHBOURS
from embaudit.corpora.downstream.retrieval import overlaps, ranked
from embaudit.declared.rule import Finding, Rule
from embaudit.declared.rule import number as number_of
from embaudit.measures.quality.material import SAMPLE
from embaudit.measures.quality.measured import MeasuredPairs
from embaudit.measures.quality.passes import of_all
from embaudit.questions.change.gains import BaseComparison
from embaudit.questions.parity.compare import number
from embaudit.statistics import spearman

# 1 − cosine that batches and the order of sums change by themselves.
ROUNDING = 1e-6
HARDLY = Rule(
    "hardly_changed",
    look_if="only input embeddings changed, and no text read here has their tokens",
    problem_if=f"other weights changed, but 1 − cosine is at most {number_of(ROUNDING)} for every text",
    reason="what batches and the order of sums change by themselves",
)
RULE = Rule("vectors_moved", reason="`ok`: by how much, and how many neighbours are the same")
# Of one data set's texts: neighbours are a product of all of them with each other.
MOST_TEXTS = 2_000
# The vector of each hard text, by kind.
HardVectors = dict[str, dict[str, np.ndarray]]
# What has changed beside the vectors: only input embeddings (a text may contain none of their tokens), or more.
Changed = Literal["nothing", "rows", "more"]


@dataclass(frozen=True)
class Moved:
    """1 − cosine of the texts of one kind between the two checkpoints.

    Attributes:
        furthest: the text that moved most.
    """

    kind: str
    texts: int
    median: float
    most: float
    furthest: str


@dataclass(frozen=True)
class Neighbours:
    """How far the two agree on which texts of one data set are close.

    Attributes:
        overlap: share of the ten nearest that are the same.
        agreement: Spearman's ρ of the pairs' similarities; None for collections.
    """

    name: str
    overlap: float
    agreement: float | None


def hard_vectors(encoder: Encoder) -> HardVectors:
    """Of the hard texts that have a token.

    Raises:
        MeasureError: if a vector is not finite.
    """
    found: HardVectors = {}
    for kind, some in KINDS.items():
        ids = {text: own for text, own in zip(some, encoder.tokenize(list(some)), strict=True) if own}
        found[kind] = dict(zip(ids, encoder.encode_ids(list(ids.values())), strict=True))
    return found


def compare_vectors(tuned: HardVectors, base: HardVectors, beside: Sequence[BaseComparison]) -> list[Moved]:
    """Hard texts by kind, then the texts of each data set; empty if the two have other dimensions."""
    if {len(rows) for some in tuned.values() for rows in some.values()} != {
        len(rows) for some in base.values() for rows in some.values()
    }:
        return []
    found = []
    for kind, ours in tuned.items():
        kept = [text for text in ours if text in base[kind]]
        if kept:
            one, two = (np.stack([side[kind][text] for text in kept]) for side in (tuned, base))
            found.append(_moved(kind, kept, one, two))
    for each in beside:
        for kind, texts, one, two in _sides(each):
            found.append(_moved(kind, texts, one, two))
    return found


def compare_neighbours(beside: Sequence[BaseComparison]) -> list[Neighbours]:
    """Of each data set."""
    found = []
    for each in beside:
        if isinstance(each.tuned, MeasuredPairs):
            _, places = _distinct(each.tuned)
            kept = places[:MOST_TEXTS]
            nearest = [
                _nearest(of_all(rows, rows, one.similarity), is_self=True)
                for one in (each.tuned, each.base)
                for rows in [np.concatenate([one.firsts.served, one.seconds.served])[kept]]  # type: ignore[union-attr]
            ]
            agreement = spearman(each.tuned.similarities(), each.base.similarities())
        else:
            nearest = [_nearest(one.similarities(), is_self=False) for one in (each.tuned, each.base)]
            agreement = None
        found.append(Neighbours(each.name, overlap(*nearest), agreement))
    return found


def overlap(first: np.ndarray, second: np.ndarray) -> float:
    """Mean share of the places of (n, ≤ 10) rankings that the two have in common."""
    return float(overlaps(first, second).mean()) if len(first) else 1.0


def vector_findings(moved: Sequence[Moved], neighbours: Sequence[Neighbours], changed: Changed) -> list[Finding]:
    """One finding: how far vectors moved, or that they hardly did although the weights did."""
    if not moved:
        sentence = "Its vectors have other dimensions than the base's"
        said = _of_neighbours(neighbours)
        return [RULE.finding("ok", f"{sentence}.{said}" if said else f"{sentence}.")]
    furthest = max(moved, key=lambda one: one.most)
    texts = sum(one.texts for one in moved)
    if furthest.most > ROUNDING:
        return [_far(moved, neighbours)]
    if changed == "nothing":
        sentence = f"The vectors of all {texts:,} texts are the base's (1 − cosine at most {furthest.most:.1e})."
        return [RULE.finding("ok", sentence, value=furthest.most)]
    return [
        HARDLY.finding(
            "look" if changed == "rows" else "problem",
            f"The weights have changed, but no vector of {texts:,} texts has: 1 − cosine to the base's is at most "
            f"{furthest.most:.1e}, which is rounding.",
            "What is served is the base in all but name."
            if changed == "more"
            else "Only input embeddings changed, and none of these texts contains their tokens.",
            "Look at the learning rate, the number of steps and the precision of the optimizer: steps that are "
            "too small for bfloat16 are rounded away."
            if changed == "more"
            else "Give texts with these tokens: --pairs FILE or --data FOLDER.",
            furthest.most,
        )
    ]


def _far(moved: Sequence[Moved], neighbours: Sequence[Neighbours]) -> Finding:
    largest = max(moved, key=lambda one: one.texts)
    kinds = sorted((one for one in moved if one is not largest), key=lambda one: -one.median)
    sentence = (
        f"Vectors have moved: the median of 1 − cosine to the base's is {number(largest.median)} for {largest.kind}"
    )
    if kinds and kinds[0].median > largest.median:
        sentence += f", and most for {kinds[0].kind} ({number(kinds[0].median)})"
    return RULE.finding("ok", f"{sentence}.{_of_neighbours(neighbours)}", value=largest.median)


def _of_neighbours(neighbours: Sequence[Neighbours]) -> str:
    said = [f"{NEIGHBOURS * one.overlap:.1f} on {one.name}" for one in neighbours]
    return f" Of a text's ten nearest texts, this many are also the base's: {', '.join(said)}." if said else ""


def _sides(each: BaseComparison) -> Iterator[tuple[str, list[str], np.ndarray, np.ndarray]]:
    """(kind, texts, tuned vectors, base vectors) of a data set, each text once."""
    one, two = each.tuned, each.base
    if isinstance(one, MeasuredPairs) and isinstance(two, MeasuredPairs):
        texts, places = _distinct(one)
        sides = (np.concatenate([side.firsts.served, side.seconds.served])[places] for side in (one, two))
        yield (f"the sentences of {_named(one.pairs.name)}", texts, *sides)
    elif not isinstance(one, MeasuredPairs) and not isinstance(two, MeasuredPairs):
        collection = one.collection
        yield (
            f"the queries of {_named(collection.name)}",
            list(collection.queries),
            one.queries.served,
            two.queries.served,
        )
        documents = list(collection.documents)
        yield f"the documents of {_named(collection.name)}", documents, one.documents.served, two.documents.served


def _named(source: str) -> str:
    return "the embedded sample" if source == SAMPLE else source


def _distinct(measured: MeasuredPairs) -> tuple[list[str], np.ndarray]:
    """Each sentence once, and its place among all first and then all second sentences."""
    places: dict[str, int] = {}
    for place, text in enumerate([*measured.pairs.firsts, *measured.pairs.seconds]):
        places.setdefault(text, place)
    return list(places), np.array(list(places.values()), dtype=np.int64)


def _moved(kind: str, texts: Sequence[str], one: np.ndarray, two: np.ndarray) -> Moved:
    a, b = one.astype(np.float64), two.astype(np.float64)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    distances = np.clip(1 - (a * b).sum(axis=1) / np.maximum(lengths, 1e-30), 0.0, 2.0)
    furthest = int(distances.argmax())
    return Moved(kind, len(texts), float(np.median(distances)), float(distances[furthest]), texts[furthest])


def _nearest(similarities: np.ndarray, *, is_self: bool) -> np.ndarray:
    """(n, ≤ 10) places of the most similar, a text's own left out."""
    return ranked(similarities, [frozenset([place]) for place in range(len(similarities))] if is_self else ())
