"""Fewer dimensions than a model has: both sides are cut, and what came must be what was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from embaudit.corpora.downstream.task import unit_rows
from embaudit.declared.rule import Finding, Rule
from embaudit.embedders.function import Answers, EmbeddingFunction, WrappedFunction
from embaudit.questions.parity.compare import HALF, HALF_LENGTH, KindDifference

if TYPE_CHECKING:
    from embaudit.checkpoint import TextKind
    from embaudit.questions.parity.explain import Explanation

# The rule of what is said where all dimensions come.
IGNORED = Rule(
    "dimensions_ignored",
    problem_if="it gives another number of dimensions than `--dimensions` asks for",
    reason="an index of the size that was asked for refuses its vectors, or keeps a part of them",
)
# How an explanation says so where nobody asked for it.
KEEPS, NORMALISES = "keeps the first ", "normalises its vectors"
NOT_NORMALISED = "cuts its vectors and does not normalise them again"


class FirstDimensions(WrappedFunction):
    """Another function's first dimensions, normalised again if its vectors have length 1."""

    def __init__(self, function: EmbeddingFunction, dimensions: int) -> None:
        super().__init__(function)
        self.kept = self.dimension = dimensions

    @property
    def live(self) -> EmbeddingFunction:
        return FirstDimensions(self.function.live, self.kept)

    def encode(
        self, texts: Sequence[str], role: TextKind = "text", *, most: int | None = None, at_once: int = 1
    ) -> Answers:
        answers = self.function.encode(texts, role, most=most, at_once=at_once)
        return Answers(first_of_rows(answers.vectors, self.kept), answers.failures)


def first_of_rows(rows: np.ndarray, dimensions: int) -> np.ndarray:
    """(n, d) the first d numbers of rows; of unit vectors, unit vectors."""
    lengths = np.linalg.norm(np.asarray(rows, dtype=np.float64), axis=1)
    known = lengths[np.isfinite(lengths)]
    are_unit = len(known) and np.abs(known - 1).max() <= HALF_LENGTH
    first = np.asarray(rows, dtype=np.float64)[:, :dimensions]
    return unit_rows(first) if are_unit else first


def cut_alike(first: EmbeddingFunction, second: EmbeddingFunction) -> tuple[EmbeddingFunction, EmbeddingFunction]:
    """Both, one cut to as many dimensions as the other is asked for."""
    asked = [one.asked_dimensions for one in (first, second)]
    if (asked[0] is None) == (asked[1] is None):
        return first, second
    most = next(one for one in asked if one is not None)
    one, two = (
        FirstDimensions(each, most) if own is None and (each.dimension is None or each.dimension > most) else each
        for each, own in zip((first, second), asked, strict=True)
    )
    return one, two


def ignored_dimensions(function: EmbeddingFunction, given: int) -> Iterator[Finding]:
    """Whether a function gives another number of dimensions than it was asked for.

    Args:
        given: the dimensions of its vectors.
    """
    asked = function.asked_dimensions
    if asked is not None and given and given != asked:
        yield IGNORED.finding(
            "problem",
            f"Asked for {asked:,} dimensions, {function.name} gives {given:,}: the request is ignored.",
            "An index of the size that was asked for refuses its vectors, or keeps a part of them.",
            f"Leave --dimensions out, or have the server take the first {asked:,} numbers and normalise them.",
            float(given),
        )


def as_cut(told: Explanation) -> Explanation:
    """An explanation without what was asked for: the first dimensions, normalised again."""
    differs = tuple(one for one in told.differs if not one.startswith(KEEPS))
    return replace(told, differs=differs, length="" if told.length == NORMALISES else told.length)


def is_cut_alone(
    kinds: Sequence[KindDifference], ours: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray]
) -> bool:
    """Whether vectors point where they should and are shorter, each by another share, as vectors that were cut are.

    Args:
        ours: (n, d) by kind, cut and normalised.
    """
    if not all(kind.worst <= HALF for kind in kinds if np.isfinite(kind.worst)):
        return False
    lengths = np.concatenate([np.linalg.norm(theirs[kind.kind], axis=1) for kind in kinds])
    unit = np.concatenate([np.linalg.norm(ours[kind.kind], axis=1) for kind in kinds])
    known = np.isfinite(lengths) & np.isfinite(unit) & (unit > 0) & (lengths > 0)
    return bool(
        known.any()
        and np.abs(unit[known] - 1).max() <= HALF_LENGTH
        and lengths[known].max() < 1
        and np.ptp(lengths[known]) > HALF_LENGTH * lengths[known].max()
    )
