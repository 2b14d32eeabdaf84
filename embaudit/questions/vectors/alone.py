"""What stored vectors show by themselves: two passes over the index, and the figures of a sample.

Rows with the same bits, and rows with the same text, are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from embaudit.measures.geometry.figures import eigenvalues, entropy_rank
from embaudit.questions.parity.compare import apart
from embaudit.questions.vectors.crowding import Crowding, Sentinels, crowding_of
from embaudit.questions.vectors.forms import unit_float32
from embaudit.questions.vectors.neighbours import (
    FEWEST_ROWS,
    FoundNearest,
    TwoPopulations,
    look_again,
    two_lengths,
    two_spaces,
)
from embaudit.questions.vectors.neighbours import ROWS as SPACES_ROWS
from embaudit.questions.vectors.profile import Profile, SomeRows, profile_of, share_as_json
from embaudit.questions.vectors.text_copies import TextCopies, text_copies
from embaudit.stores.store import Store

# Groups and texts of which rows are fetched and shown.
SHOWN_GROUPS, SHOWN_ROWS, SHOWN_TEXTS = 5, 4, 100


@dataclass(frozen=True)
class EqualGroup:
    """Rows with one vector.

    Attributes:
        rows: how many.
        texts: how many different texts they have; None if the index has no texts.
        numbers: of a few of them, of different texts where there are.
    """

    rows: int
    texts: int | None
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Repeats:
    """What is repeated.

    Attributes:
        groups: the largest groups of rows with one vector; those of different texts first, where there are texts.
        rows_in_groups: rows whose vector another row has, too; with texts, another row of another text.
        repeated_texts: rows whose text an earlier row has.
        split: numbers of two rows of one text with different bits, for up to ``SHOWN_TEXTS`` texts.
        split_texts: how many texts have vectors with different bits.
    """

    groups: tuple[EqualGroup, ...]
    rows_in_groups: int
    repeated_texts: int
    split: tuple[tuple[int, int], ...]
    split_texts: int


def repeats_of(profile: Profile) -> Repeats:
    """Groups by the hashes of a profile; rows that point nowhere are left out."""
    usable = np.flatnonzero(profile.usable)
    numbers, hashes = profile.numbers[usable], profile.hashes[usable]
    texts = None if profile.texts is None else profile.texts[usable]
    groups = []
    rows_in_groups = 0
    for own in _groups(hashes):
        different = None
        shown = own
        if texts is not None:
            _, firsts = np.unique(texts[own], return_index=True)
            different, shown = len(firsts), own[np.sort(firsts)]
            if different < 2:
                continue
        rows_in_groups += len(own)
        groups.append(EqualGroup(len(own), different, tuple(numbers[shown[:SHOWN_ROWS]].tolist())))
    groups.sort(key=lambda group: -(group.rows if group.texts is None else group.texts))
    repeated = split_texts = 0
    split: list[tuple[int, int]] = []
    if texts is not None:
        known = np.flatnonzero(texts != 0)
        for own in _groups(texts[known]):
            repeated += len(own) - 1
            other = np.flatnonzero(hashes[known[own]] != hashes[known[own[0]]])
            if len(other):
                split_texts += 1
                if len(split) < SHOWN_TEXTS:
                    split.append((int(numbers[known[own[0]]]), int(numbers[known[own[other[0]]]])))
    return Repeats(tuple(groups[:SHOWN_GROUPS]), rows_in_groups, repeated, tuple(split), split_texts)


def _groups(values: np.ndarray) -> list[np.ndarray]:
    """Places of equal values, for each value that occurs more than once; in ascending order within each."""
    order = np.argsort(values, kind="stable")
    ends = np.flatnonzero(np.diff(values[order])) + 1
    starts = np.concatenate([[0], ends]).astype(np.int64)
    stops = np.concatenate([ends, [len(values)]]).astype(np.int64)
    several = np.flatnonzero(stops - starts > 1)
    return [order[starts[one] : stops[one]] for one in several]


QUANTILES = (0.0, 0.01, 0.5, 0.99, 1.0)
# Lengths farther from their mean, in standard deviations, are outliers.
OUTLIER = 3.0
SPECTRUM_ROWS = 6_000
Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True)
class VectorProfile:
    """What an index shows without a checkpoint.

    Attributes:
        precision: what its numbers could be written in, as the end of "numbers are …".
        mean_cosine: of all pairs of rows; None for bytes, or fewer than two rows.
        effective_rank: exp of the entropy of the covariance's eigenvalues at unit length, in a sample.
        different: vectors in that sample that are not alike to the bit.
        neighbours: None for one row or bytes.
        copies: None for an index without texts.
        split_apart: (m,) 1 − cosine of two rows of one text with different bits.
        shown: the rows that findings name: of equal groups and split texts, by number.
        crowding: what sentinels find; None if none were asked.
    """

    profile: Profile
    repeats: Repeats
    precision: str
    mean_cosine: float | None
    effective_rank: float | None
    different: int
    neighbours: FoundNearest | None
    copies: TextCopies | None
    spaces: TwoPopulations | None
    lengths: TwoPopulations | None
    split_apart: np.ndarray
    shown: dict[int, tuple[str | None, object]]
    crowding: Crowding | None = None

    @property
    def norm_quantiles(self) -> dict[str, float]:
        own = self.profile.norms[self.profile.usable]
        return {f"{share:g}": float(np.quantile(own, share)) for share in QUANTILES} if len(own) else {}

    @property
    def outliers(self) -> int:
        """Rows whose length is more than three standard deviations from the mean."""
        own = self.profile.norms[self.profile.usable].astype(np.float64)
        if not len(own) or self.profile.is_normalised or own.std() <= 1e-6 * own.mean():
            return 0
        return int((np.abs(own - own.mean()) > OUTLIER * own.std()).sum())

    @property
    def independent(self) -> int:
        """Rows that are no copies: different texts, or, of few rows without texts, different vectors."""
        usable = int(self.profile.usable.sum())
        if self.copies is not None and self.copies.rows:
            return self.copies.texts
        return usable if usable >= FEWEST_ROWS else self.different

    @property
    def repeating(self) -> float:
        """The share of rows that repeat a text, to the letter or nearly."""
        if (own := self.copies) is None:
            return 0.0
        return (own.repeating + (own.spelled or 0) + (own.headed or 0)) / max(own.rows, 1)

    @property
    def sampled(self) -> list[str]:
        """Names of the figures, as in JSON, that are of a sample and have no interval; all others are of every row."""
        sample, rows = len(self.profile.sample), int(self.profile.usable.sum())
        is_of_sample = {
            "precision": sample < rows,
            "effective_rank": min(sample, SPECTRUM_ROWS) < rows,
            "hubness_skewness": self.neighbours is not None and not self.neighbours.is_exact,
            "two_spaces": min(sample, SPACES_ROWS) < rows,
            "two_lengths": sample < rows,
        }
        return [name for name, is_of in is_of_sample.items() if is_of]

    def as_json(self) -> dict[str, Any]:
        profile, repeats = self.profile, self.repeats
        found = self.neighbours
        return {
            "rows": profile.rows,
            "dimensions": {str(dimension): count for dimension, count in profile.dimensions.items()},
            "without_vector": profile.without_vector,
            "not_finite": len(profile.not_finite),
            "zeros": len(profile.zeros),
            "constant_dimensions": list(profile.constant),
            "norms": self.norm_quantiles,
            "is_normalised": profile.is_normalised,
            "norm_outliers": self.outliers,
            "precision": self.precision,
            "mean_cosine": self.mean_cosine,
            "effective_rank": self.effective_rank,
            "equal_groups": [
                {"rows": group.rows, "texts": group.texts, "shown": [self._named(number) for number in group.numbers]}
                for group in repeats.groups
            ],
            "rows_in_equal_groups": repeats.rows_in_groups,
            "repeated_texts": repeats.repeated_texts,
            "text_copies": None if self.copies is None else self.copies.as_json(),
            "texts_with_different_bits": repeats.split_texts,
            "texts_with_different_bits_apart": float(self.split_apart.max()) if len(self.split_apart) else None,
            "copies": None if found is None else share_as_json(found.copy_share, found.is_exact),
            "largest_hub": None
            if found is None or found.is_few
            else share_as_json(found.largest_share, found.is_exact),
            "hubness_skewness": None if found is None else found.skewness,
            "two_spaces": None if self.spaces is None else self.spaces.share,
            "two_lengths": None if self.lengths is None else self.lengths.share,
            "of_a_sample": self.sampled,
        }

    def _named(self, number: int) -> dict[str, object]:
        text, row_id = self.shown.get(number, (None, None))
        return {"row": number + 1, "id": None if row_id is None else str(row_id), "text": text}


def look_at_alone(
    index: Store,
    seed: int,
    progress: Progress = lambda what, done, total: None,
    ask: Callable[[Profile], Sentinels | None] = lambda profile: None,
) -> VectorProfile:
    """Read an index twice.

    Args:
        progress: told what is done, how many rows more are, and of how many.
        ask: gives queries that look for rows that crowd, in the second pass.
    """
    profile = profile_of(index, seed, lambda done: progress("rows read", done, index.rows))
    repeats = repeats_of(profile)
    sentinels = ask(profile)
    wanted = [number for group in repeats.groups for number in group.numbers]
    wanted += [number for pair in repeats.split for number in pair]
    found, rows = look_again(
        index,
        profile,
        np.unique(np.array(wanted, dtype=np.int64)),
        lambda done: progress("neighbours of rows", done, profile.rows),
        sentinels,
    )
    shown = {int(number): (rows.texts[place], rows.ids[place]) for place, number in enumerate(rows.numbers)}
    is_bytes = profile.sample.vectors.dtype == np.uint8
    sample = profile.sample.vectors
    norms = np.linalg.norm(sample.astype(np.float64), axis=1) if len(sample) else np.empty(0)
    places = different_places(profile)
    return VectorProfile(
        profile=profile,
        repeats=repeats,
        precision=precision_of(sample) if len(sample) else "",
        mean_cosine=None if is_bytes else profile.mean_cosine,
        effective_rank=None if is_bytes or len(places) < 2 else _effective_rank(sample[places]),
        different=len(places),
        neighbours=found,
        copies=text_copies(profile),
        spaces=None if is_bytes else two_spaces(sample),
        lengths=None if is_bytes else two_lengths(norms),
        split_apart=_apart(rows, repeats),
        shown=shown,
        crowding=None if sentinels is None else crowding_of(sentinels, profile).named(index, profile.sample),
    )


def different_places(profile: Profile) -> np.ndarray:
    """Places in the sample of rows with different bits."""
    if not len(profile.sample):
        return np.empty(0, np.int64)
    hashes = profile.hashes[np.searchsorted(profile.numbers, profile.sample.numbers)]
    return np.sort(np.unique(hashes, return_index=True)[1])


def _effective_rank(sample: np.ndarray) -> float | None:
    units = unit_float32(sample[:SPECTRUM_ROWS]).astype(np.float64)
    values = eigenvalues(units - units.mean(axis=0))
    return entropy_rank(values) if values.sum() > 1e-12 else None


def _apart(rows: SomeRows, repeats: Repeats) -> np.ndarray:
    """(m,) 1 − cosine of each pair of rows of one text."""
    place = {int(number): one for one, number in enumerate(rows.numbers)}
    pairs = [(place[one], place[other]) for one, other in repeats.split]
    if not pairs:
        return np.empty(0)
    firsts, seconds = (rows.vectors[list(side)] for side in zip(*pairs, strict=True))
    return apart(firsts, seconds)


ROWS = 2_000
LEVELS = 256
# Numbers of any precision have no more values than there are numbers.
FEWEST_FOR_LEVELS = 4 * LEVELS
# Values of a dimension repeat by chance in few rows.
FEWEST_FOR_DIMENSIONS = 1_000
# How far from a whole number a multiple of a grid's step may be, and of what share of the numbers.
ON_GRID, OF_NUMBERS = 0.01, 0.999


def precision_of(vectors: np.ndarray) -> str:
    """What a sample's (n, D) numbers could be written in: as the end of "numbers are …".

    The coarsest that holds: bits, whole numbers, the 256 levels of int8 (for all numbers, for each dimension, for each
    row by its largest), bfloat16, float16, float32, float64.
    """
    rows = vectors[:ROWS]
    values = np.unique(rows[:200])
    if vectors.dtype.kind in "iu" or bool((rows == np.round(rows)).all()):
        if len(values) <= 2:
            return "bits (binary)"
        inside = values.min() >= -128 and values.max() <= 255
        return "whole numbers of one byte (int8 or packed bits)" if inside else "whole numbers"
    exact = rows.astype(np.float32)
    if exact.size >= FEWEST_FOR_LEVELS and len(np.unique(exact)) <= LEVELS:
        return f"on {LEVELS} levels or fewer (int8 before)"
    if exact.shape[1] > 1 and _is_on_row_grid(exact):
        return "on the levels of int8, scaled by each row's largest"
    if len(rows) >= FEWEST_FOR_DIMENSIONS and all(len(np.unique(column)) <= LEVELS for column in exact.T):
        return "on 256 levels or fewer for each dimension (int8 before)"
    bits = exact.view(np.uint32)
    if not (bits & 0xFFFF).any():
        return "bfloat16's"
    with np.errstate(over="ignore"):
        if (exact.astype(np.float16).astype(np.float32) == exact).all():
            return "float16's"
    return "float64's" if vectors.dtype == np.float64 and (exact != rows).any() else "float32's"


def _is_on_row_grid(rows: np.ndarray) -> bool:
    """Whether each row is its largest number times k/127 for whole k."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    steps = rows.astype(np.float64) / np.where(largest > 0, largest, 1) * 127
    return bool((np.abs(steps - np.round(steps)) <= ON_GRID).mean() >= OF_NUMBERS)
