"""One pass over an index: how many rows and numbers, lengths, NaN, zeros, equal vectors and texts, and a sample."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from embaudit.questions.parity.compare import HALF_LENGTH
from embaudit.questions.vectors.row_hash import hash_rows
from embaudit.questions.vectors.sample import RowDraw, SomeRows
from embaudit.stores.store import RowBatch, Store

SAMPLED = 20_000
# Of a sample's rows, to bound its memory for long vectors.
SAMPLED_NUMBERS = 12_000_000
# A file in which every row has another length is no index.
MOST_DIMENSIONS = 64
Progress = Callable[[int], None]


@dataclass
class OneDimension:
    """What is gathered of the rows that have D numbers.

    Attributes:
        numbers, hashes, norms, texts: of each row: its number, a hash of its bits, its length, a hash of its text.
        unit_sum: Σ of the vectors at unit length, (D,) float64.
        low, high: (D,) smallest and largest number of each dimension.
    """

    dimension: int
    draw: RowDraw
    numbers: list[np.ndarray] = field(default_factory=list)
    hashes: list[np.ndarray] = field(default_factory=list)
    norms: list[np.ndarray] = field(default_factory=list)
    texts: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        D = self.dimension
        self.unit_sum = np.zeros(D)
        self.low, self.high = np.full(D, np.inf), np.full(D, -np.inf)

    def add(self, batch: RowBatch, places: np.ndarray, vectors: np.ndarray, text_hashes: np.ndarray | None) -> None:
        rows = np.asarray(vectors, dtype=np.float32)
        with np.errstate(all="ignore"):
            norms = np.sqrt(np.einsum("nd,nd->n", rows, rows))
            is_odd = ~np.isfinite(norms)
            # Squares of large numbers overflow; NaN and infinity stay.
            norms[is_odd] = np.linalg.norm(rows[is_odd].astype(np.float64), axis=1)
        usable = np.isfinite(norms) & (norms > 0)
        self.numbers.append(batch.start + places)
        self.norms.append(norms)
        self.hashes.append(hash_rows(vectors))
        if text_hashes is not None:
            self.texts.append(text_hashes[places])
        if not usable.all():
            rows, norms, places, vectors = rows[usable], norms[usable], places[usable], vectors[usable]
        if not len(rows):
            return
        self.unit_sum += (1 / norms) @ rows
        np.minimum(self.low, rows.min(axis=0), out=self.low)
        np.maximum(self.high, rows.max(axis=0), out=self.high)
        self.draw.add(batch, places, vectors)


@dataclass(frozen=True)
class Profile:
    """What one pass over an index shows; of the rows of the usual dimension where not said otherwise.

    Attributes:
        rows: all of them.
        dimensions: rows by dimension, the most frequent first.
        first_odd: number of the first row of another dimension; -1 if there is none.
        without_vector: rows that have no vector at all.
        numbers, norms: (n,) number and length of each row; NaN or infinite if a number of it is, 0 if all are 0.
        hashes: (n,) equal for rows with the same bits.
        texts: (n,) equal for rows with the same text, 0 without one; None if the index has no texts.
        unit_sum: (D,) Σ of the vectors at unit length.
        constant: dimensions that have one value in all rows.
        sample: rows drawn at random, in random order.
    """

    rows: int
    dimensions: dict[int, int]
    first_odd: int
    without_vector: int
    first_without: int
    numbers: np.ndarray
    norms: np.ndarray
    hashes: np.ndarray
    texts: np.ndarray | None
    unit_sum: np.ndarray
    constant: tuple[int, ...]
    sample: SomeRows

    @property
    def dimension(self) -> int:
        return next(iter(self.dimensions), 0)

    @property
    def usable(self) -> np.ndarray:
        """(n,) whether the vector points somewhere."""
        return np.asarray(np.isfinite(self.norms) & (self.norms > 0))

    @property
    def not_finite(self) -> np.ndarray:
        """Numbers of the rows with NaN or infinity."""
        return self.numbers[~np.isfinite(self.norms)]

    @property
    def zeros(self) -> np.ndarray:
        return self.numbers[self.norms == 0]

    @property
    def comparable(self) -> int:
        """Rows that have a vector and a text."""
        return 0 if self.texts is None else int((self.usable & (self.texts != 0)).sum())

    @property
    def mean_cosine(self) -> float | None:
        """Mean cosine of all pairs of rows, (‖Σu‖² − n)/(n(n−1)); None below two rows."""
        n = int(self.usable.sum())
        return None if n < 2 else float((self.unit_sum @ self.unit_sum - n) / (n * (n - 1)))

    @property
    def is_normalised(self) -> bool:
        own = self.norms[self.usable]
        return bool(len(own)) and bool((np.abs(own - 1) <= HALF_LENGTH).all())


def profile_of(index: Store, seed: int, progress: Progress = lambda rows: None) -> Profile:
    """Read an index once."""
    found: dict[int, OneDimension] = {}
    rows = present = 0
    first_without = -1
    for batch in index.batches():
        texts = None
        if batch.texts is not None:
            # 0 is no text; Python's own hash is salted for each process, and the same within one.
            texts = np.fromiter((hash(one) or 1 if one is not None else 0 for one in batch.texts), np.int64, batch.rows)
        here = 0
        for dimension, (places, vectors) in batch.vectors.items():
            if dimension not in found and len(found) < MOST_DIMENSIONS:
                most = max(1_000, min(SAMPLED, SAMPLED_NUMBERS // dimension))
                found[dimension] = OneDimension(dimension, RowDraw(most, seed))
            if dimension in found:
                found[dimension].add(batch, places, vectors, texts)
            here += len(places)
        if here < batch.rows and first_without < 0:
            has = np.zeros(batch.rows, dtype=bool)
            for places, _ in batch.vectors.values():
                has[places] = True
            first_without = batch.start + int(np.argmin(has))
        rows, present = rows + batch.rows, present + here
        progress(batch.rows)
    return _profile(found, rows, rows - present, first_without)


def _profile(found: dict[int, OneDimension], rows: int, without: int, first_without: int) -> Profile:
    counts = {dimension: sum(map(len, one.numbers)) for dimension, one in found.items()}
    dimensions = dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
    if not dimensions:
        nothing = SomeRows(np.empty(0, np.int64), np.empty((0, 0)), (), ())
        empty = np.empty(0)
        return Profile(rows, {}, -1, without, first_without, empty, empty, empty, None, empty, (), nothing)
    usual, *others = dimensions
    one = found[usual]
    return Profile(
        rows=rows,
        dimensions=dimensions,
        first_odd=min((int(found[other].numbers[0][0]) for other in others), default=-1),
        without_vector=without,
        first_without=first_without,
        numbers=np.concatenate(one.numbers),
        norms=np.concatenate(one.norms),
        hashes=np.concatenate(one.hashes),
        texts=np.concatenate(one.texts) if one.texts else None,
        unit_sum=one.unit_sum,
        constant=tuple(np.flatnonzero(one.low == one.high).tolist()) if len(one.numbers) and rows > 1 else (),
        sample=one.draw.rows(),
    )
