"""The vectors that a fingerprint is made of: of stores, or what a function gives for texts of the embedded sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from embaudit.corpora.load import load_corpus
from embaudit.embedders.function import EmbeddingFunction
from embaudit.measures.quality.material import sample_material
from embaudit.questions.vectors.fitted import Stores, different_units
from embaudit.questions.vectors.unit import unit_float32
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions, SeveralParts, StorePlace
from embaudit.stores.store import Store
from embaudit.words.errors import CorpusError, MeasureError

# Texts of each kind, evenly from the sample's.
MOST_TEXTS = 60


def sample_texts() -> dict[str, list[str]]:
    """Texts of the embedded sample by kind, which differ in subject, length and form."""
    [quality] = sample_material().collections
    queries = [*(one.text for one in load_corpus("msmarco-queries").texts), *quality.queries]
    kinds = {
        "sentences of Wikipedia": [one.text for one in load_corpus("wikipedia").texts],
        "passages": [one.text for one in load_corpus("msmarco").texts],
        "passages about few subjects": quality.documents,
        "long texts": [one.text for one in load_corpus("longdocs").texts],
        "sentences of pairs": [side for one in load_corpus("sts").pairs for side in (one.first, one.second)],
        "questions": queries,
    }
    return {kind: _evenly(list(dict.fromkeys(texts))) for kind, texts in kinds.items()}


def _evenly(texts: list[str]) -> list[str]:
    places = np.linspace(0, len(texts) - 1, min(MOST_TEXTS, len(texts))).astype(int)
    return [texts[place] for place in places]


def rows_of_function(function: EmbeddingFunction, progress: Callable[..., None]) -> dict[str, Stores]:
    """What a function gives for the sample's texts as documents, by kind: different rows at length 1.

    Raises:
        MeasureError: if it gives hardly a text a vector.
    """
    found: dict[str, Stores] = {}
    texts_by_kind = sample_texts()
    total = sum(map(len, texts_by_kind.values()))
    for kind, texts in texts_by_kind.items():
        vectors = function.encode(texts, "document").vectors
        lengths = np.linalg.norm(vectors, axis=1)
        rows = np.unique(unit_float32(vectors[np.isfinite(lengths) & (lengths > 0)]), axis=0)
        if len(rows) > len(texts) / 2:
            found[kind] = [rows.astype(np.float64)]
        progress("texts encoded", len(texts), total)
    if len(found) < len(texts_by_kind):
        missing = ", ".join(kind for kind in texts_by_kind if kind not in found)
        raise MeasureError(
            f"{function.name} gives fewer than half of the sample's texts a vector of their own: {missing}.",
            kept="No fingerprint was written.",
            next_step=f"See what is wrong with it: embaudit check {function.typed}",
        )
    return found


def rows_of_store(named: str, options: ReadOptions, seed: int) -> list[np.ndarray]:
    """Of each collection of a store, different rows at length 1, drawn at random.

    Raises:
        CorpusError: if it holds no vectors of floats.
    """
    found = [units for one in collections_of(named, options) if (units := different_units(one, seed)) is not None]
    if not found:
        raise CorpusError(
            f"{StorePlace(named).shown} holds no vectors of floating-point numbers.",
            kept="No fingerprint was written.",
            next_step="A fingerprint is made of vectors as the model gave them: not of codes, and not of an empty "
            "store.",
        )
    return found


def collections_of(named: str, options: ReadOptions) -> Iterator[Store]:
    """A store; each of its collections, if it has several and none is named."""
    try:
        yield open_store(named, options)
    except SeveralParts as several:
        for name in several.names:
            yield open_store(named, replace(options, part=name))


def of_one_dimension(by_source: Mapping[str, list[np.ndarray]]) -> dict[str, Stores]:
    """The rows that have the usual number of dimensions of the first source.

    Raises:
        CorpusError: if a source has none of so many numbers.
    """
    first = next(iter(by_source.values()))
    dimensions = [units.shape[1] for units in first]
    usual = max(dimensions, key=lambda D: sum(len(units) for units in first if units.shape[1] == D))
    kept: dict[str, Stores] = {
        name: [units for units in some if units.shape[1] == usual] for name, some in by_source.items()
    }
    for name, some in kept.items():
        if not some:
            raise CorpusError(
                f"The vectors of {name} have {by_source[name][0].shape[1]:,} numbers, and those of "
                f"{next(iter(by_source))} {usual:,}: they are of different models.",
                kept="No fingerprint was written.",
                next_step="Make a fingerprint of each model.",
            )
    return kept
