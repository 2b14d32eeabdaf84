"""Rows with the same bits, and rows with the same text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embaudit.questions.vectors.profile import Profile

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
