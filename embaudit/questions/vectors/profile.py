"""One pass over an index: how many rows and numbers, lengths, NaN, zeros, equal vectors and texts, and a random sample.

Hashes of rows are equal for the same bits, the same in every process and with every version of numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b

import numpy as np

from embaudit.questions.parity.compare import HALF_LENGTH
from embaudit.stores.store import RowBatch, Store

# Behind a number of rows that is no estimate.
EXACT = ": exact, since each was encoded again"
# Where it gives texts no vectors.
LOOK_FIRST = "Look at the {} first: embaudit check says what it does with texts."


@dataclass(frozen=True)
class SomeRows:
    """Some rows of an index, all of one dimension.

    Attributes:
        numbers: (m,) number of each row, from 0.
        vectors: (m, D) as stored.
        texts, ids: of each; a text is None where there is none, an id where there is no such column.
    """

    numbers: np.ndarray
    vectors: np.ndarray
    texts: tuple[str | None, ...]
    ids: tuple[object, ...]

    def __len__(self) -> int:
        return len(self.numbers)

    def at(self, places: Sequence[int] | np.ndarray) -> SomeRows:
        """Those at these places, in this order."""
        chosen = np.asarray(places, dtype=np.int64)
        return SomeRows(
            self.numbers[chosen],
            self.vectors[chosen],
            tuple(self.texts[place] for place in chosen),
            tuple(self.ids[place] for place in chosen),
        )

    @property
    def with_text(self) -> SomeRows:
        return self.at([place for place, text in enumerate(self.texts) if text is not None])


class RowDraw:
    """Keeps the rows with the smallest of independent random keys: a uniform sample without replacement.

    The first n of those kept are a sample of n, and so are the first n that have a property, of the rows that have it.

    Args:
        most: how many rows are kept.
        seed: of the keys. The same file gives the same sample.
    """

    def __init__(self, most: int, seed: int) -> None:
        self._most = most
        self._generator = np.random.default_rng(seed)
        self._keys: list[np.ndarray] = []
        self._parts: list[SomeRows] = []
        self._bound = np.inf
        self._held = 0

    def add(self, batch: RowBatch, places: np.ndarray, vectors: np.ndarray) -> None:
        """Offer the rows of a batch at these places, with their vectors (m, D)."""
        keys = self._generator.random(len(places))
        chosen = np.flatnonzero(keys < self._bound)
        if not len(chosen):
            return
        self._keys.append(keys[chosen])
        self._parts.append(_picked(batch, places[chosen], vectors[chosen]))
        self._held += len(chosen)
        # Sorted out from time to time: half of what is held then is given up.
        if self._held > 2 * self._most:
            keys, rows = self._sorted()
            self._keys, self._parts = [keys], [rows]
            self._bound, self._held = float(keys[-1]), len(rows)

    def rows(self) -> SomeRows:
        """The rows, by key: in random order."""
        return self._sorted()[1]

    def _sorted(self) -> tuple[np.ndarray, SomeRows]:
        keys = np.concatenate(self._keys) if self._keys else np.empty(0)
        order = np.argsort(keys)[: self._most]
        return keys[order], joined(self._parts, 0).at(order)


def _picked(batch: RowBatch, places: np.ndarray, vectors: np.ndarray) -> SomeRows:
    """Rows at these places of a batch."""
    own = places.tolist()
    return SomeRows(
        batch.start + places,
        vectors,
        tuple(batch.texts[place] for place in own) if batch.texts is not None else (None,) * len(own),
        tuple(batch.ids[place] for place in own) if batch.ids is not None else (None,) * len(own),
    )


def rows_of(batch: RowBatch, wanted: np.ndarray, dimension: int) -> SomeRows:
    """The rows of a batch with these numbers that have so many numbers each."""
    places, vectors = batch.vectors.get(dimension, (np.empty(0, np.int64), np.empty((0, dimension))))
    inside = np.flatnonzero(np.isin(batch.start + places, wanted))
    return _picked(batch, places[inside], vectors[inside])


def joined(parts: Iterable[SomeRows], dimension: int) -> SomeRows:
    """All of them together."""
    found = [part for part in parts if len(part)]
    if not found:
        return SomeRows(np.empty(0, np.int64), np.empty((0, dimension)), (), ())
    return SomeRows(
        np.concatenate([part.numbers for part in found]),
        np.concatenate([part.vectors for part in found]),
        tuple(text for part in found for text in part.texts),
        tuple(one for part in found for one in part.ids),
    )


def label(index: Store, number: int, row_id: object) -> str:
    """How a row is called: by its id where there is one."""
    return f"row {number + 1:,}" if row_id is None else f"{index.columns.get('id', 'id')} {row_id}"


def share_as_json(share: tuple[float, float, float], is_exact: bool) -> dict[str, object]:
    """A share with its 95 % interval, and whether it is exact instead: of every row, and not from a sample."""
    return {**dict(zip(("value", "low", "high"), share, strict=True)), "is_exact": is_exact}


# 2⁶⁴ over the golden ratio, and the rounds of splitmix64 (Steele, Lea and Flood 2014).
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def mixed(values: np.ndarray) -> np.ndarray:
    """(n,) uint64, each bit of which depends on every bit of the (n,) uint64 values; no two become one."""
    found = values.astype(np.uint64)
    for shift, factor in ROUNDS:
        found = (found ^ (found >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(found ^ (found >> np.uint64(31)))


def hash_rows(vectors: np.ndarray) -> np.ndarray:
    """(n,) uint64 Σ w_i · x_i mod 2⁶⁴ of the 32-bit words x of each row, for odd w (multilinear hashing)."""
    vectors = np.ascontiguousarray(vectors)
    width = vectors.dtype.itemsize * vectors.shape[1]
    raw = vectors.view(np.uint8).reshape(len(vectors), width)
    if width % 4:
        raw = np.pad(raw, ((0, 0), (0, -width % 4)))
    words = np.ascontiguousarray(raw).view(np.uint32)
    return np.asarray(words.astype(np.uint64) @ _weights(words.shape[1]))


def hash_values(values: Iterable[object], count: int) -> np.ndarray:
    """(n,) uint64 of texts or ids, as they are written; 0 for None."""
    return np.fromiter((0 if one is None else _hash(str(one)) for one in values), np.uint64, count)


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


@lru_cache(maxsize=64)
def _weights(words: int) -> np.ndarray:
    # Odd, so that no single bit of a word can vanish.
    return mixed(np.arange(1, words + 1, dtype=np.uint64) * GOLDEN) | np.uint64(1)


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
