"""Stored vectors against a checkpoint: a random sample is encoded again, and what differs is explained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.parity.compare import HALF, SAME_LENGTH
from embaudit.questions.vectors.forms import StoredForm, encode_rows, form_of_index
from embaudit.questions.vectors.profile import SomeRows, share_as_json
from embaudit.questions.vectors.reasons import Reason, reasons_for
from embaudit.statistics import exact_count, exact_share
from embaudit.stores.store import DrawnGroups, Rounded

# Two lengths on 95 % of the rows: what a normalising database leaves is one of them.
MOSTLY = 0.95
# Rows of other texts that would pass for a row's own: where more do, codes are too coarse to tell them apart.
CONFUSED = 0.01
# The share of rows that are not the function's from which on its queries may find any row.
MOSTLY_OWN = 0.5
# Vectors that are shorter than the function's, and this far from its first numbers, are no part of its: another use of
# the same function is nearer.
UNRELATED = 0.7
# Rows that tell whether shorter vectors are a part of the function's at all.
FIRST_ROWS = 32
Progress = Callable[[str, int, int | None], None]
Load = Callable[[str], EmbeddingFunction]


@dataclass(frozen=True)
class SampleComparison:
    """A sample of an index, encoded again.

    Attributes:
        population: rows that have a vector of the usual dimension and a text.
        rows: the sampled ones.
        distances: (n,) 1 − cosine to the checkpoint's vector; NaN if the checkpoint has none.
        form: how vectors are stored; None if they are longer than the checkpoint's.
        tolerance: up to where a distance is rounding.
        kind: what it is held against: a checkpoint, an endpoint …
        reasons: what explains the rows that are farther, the reason of most rows first.
        rounding: the precision that explains distances beyond float32's rounding on most rows; empty if there are none,
            or none explains them.
        drawn: of a store of which not all rows were read, which were.
        length_ratio: median length of stored vectors over the checkpoint's; NaN where lengths mean nothing.
    """

    checkpoint: str
    checkpoint_id: str
    dimension: int
    population: int
    rows: SomeRows
    distances: np.ndarray
    form: StoredForm | None
    tolerance: float
    kind: str = "checkpoint"
    reasons: tuple[Reason, ...] = ()
    rounding: str = ""
    length_ratio: float = float("nan")
    drawn: DrawnGroups | None = None

    @property
    def compared(self) -> np.ndarray:
        """(n,) whether the checkpoint has a vector of the row's text."""
        return np.asarray(np.isfinite(self.distances))

    @property
    def differs(self) -> np.ndarray:
        """(n,) whether the vector is not the checkpoint's, by more than any rounding of this index."""
        return np.asarray(self.compared & (self.distances > self.tolerance))

    @property
    def is_foreign(self) -> np.ndarray:
        """(n,) the same without rows that a lower precision explains."""
        rounded = [reason.places for reason in self.reasons if reason.is_rounding]
        found = self.differs.copy()
        for places in rounded:
            found[list(places)] = False
        return found

    @property
    def is_in_lower_precision(self) -> bool:
        own = self.distances[self.compared & ~self.differs]
        return bool(len(own)) and self.form is not None and bool(np.median(own) > self.form.floor)

    @property
    def is_blind(self) -> bool:
        """Whether the vectors of other texts would pass, too."""
        return self.form is not None and self.form.confuses > CONFUSED

    @property
    def is_another_dimension(self) -> bool:
        """Whether the vectors are longer than the function's, or shorter and no part of them."""
        if self.form is None:
            return True
        own = self.distances[self.compared]
        return bool(
            self.rows.vectors.shape[1] < self.dimension
            and len(own)
            and self.differs[self.compared].all()
            and np.median(own) >= UNRELATED
        )

    @property
    def is_exact(self) -> bool:
        """Whether what is said of these rows is a count of all, and no estimate from a sample."""
        return self.drawn is None and int(self.compared.sum()) >= self.population

    @property
    def is_mostly_own(self) -> bool:
        """Whether most rows are the function's, so that its queries find what they should."""
        return not self.is_another_dimension and self.share is not None and self.share[0] < MOSTLY_OWN

    @property
    def share(self) -> tuple[float, float, float] | None:
        """The share of rows that the checkpoint did not build, with its interval; None if that cannot be told."""
        trials = int(self.compared.sum())
        if not trials or (self.is_blind and not self.is_foreign.any()):
            return None
        hits, population = int(self.is_foreign.sum()), max(self.population, trials)
        if self.drawn is not None:
            # As if the rows of a group were all alike: what a job wrote lies together.
            groups = len(np.unique(self.drawn.clusters(self.rows.numbers[self.compared])))
            return hits / trials, *exact_share(round(hits / trials * groups), groups)
        low, high = exact_count(hits, trials, population)
        return hits / trials, low / population, high / population

    def as_json(self) -> dict[str, Any]:
        share = self.share
        own = self.distances[self.compared]
        return {
            "checkpoint": self.checkpoint,
            "checkpoint_id": self.checkpoint_id,
            "dimension": self.dimension,
            "rows_with_text": self.population,
            "rows_encoded": 0 if self.form is None else int(self.compared.sum()),
            "not_its_own": int(self.is_foreign.sum()),
            "share_not_its_own": None if share is None else share_as_json(share, self.is_exact),
            "stored": "longer than the checkpoint's" if self.form is None else self.form.said or "as fractions",
            "tolerance": self.tolerance,
            "median_apart": float(np.median(own)) if len(own) else None,
            "largest_apart": float(own.max()) if len(own) else None,
            "length_ratio": self.length_ratio if np.isfinite(self.length_ratio) else None,
            "rounding": self.rounding,
            "reasons": [reason.as_json(self.rows) for reason in self.reasons],
        }


def compare_sample(
    function: EmbeddingFunction,
    sample: SomeRows,
    population: int,
    *,
    near: Callable[[Sequence[int]], SomeRows] | None = None,
    also: Sequence[str] = (),
    load: Load,
    rounded: Rounded | None = None,
    with_explanation: bool = True,
    progress: Progress = lambda what, done, total: None,
) -> SampleComparison:
    """Encode a sample again and explain what differs.

    Args:
        sample: rows with texts, drawn at random.
        population: how many rows it is drawn from.
        near: fetches rows by number, to see whether vectors belong to the texts beside them.
        also: other functions that may have built rows.
        rounded: what the index gives back of vectors that are put into it, if it keeps codes.
        load: opens one of them, or the checkpoint itself in another precision (given as ``dtype:NAME``).
    """
    found, ours = measure_sample(function, sample, population, progress, rounded)
    return explain_sample(
        function, found, ours, near=near, also=also, load=load, with_explanation=with_explanation, progress=progress
    )


def measure_sample(
    function: EmbeddingFunction,
    sample: SomeRows,
    population: int,
    progress: Progress,
    rounded: Rounded | None = None,
) -> tuple[SampleComparison, np.ndarray]:
    """A sample against the function's (n, D) vectors of its texts; NaN, and one text encoded, if these are shorter."""
    texts = [text or "" for text in sample.texts]
    width = encode_rows(function, texts[:1]).shape[1]
    if sample.vectors.shape[1] < width and len(sample) > FIRST_ROWS:
        first = measure_sample(function, sample.at(np.arange(FIRST_ROWS)), population, progress, rounded)
        if first[0].is_another_dimension:
            return first
    if sample.vectors.shape[1] > width:
        ours = np.full((len(texts), width), np.nan)
    else:
        ours = encode_rows(function, texts, lambda done: progress("texts encoded", done, len(texts)))
    form = form_of_index(ours, sample.vectors, rounded)
    found = SampleComparison(
        checkpoint=function.name,
        checkpoint_id=function.identity,
        dimension=ours.shape[1],
        population=population,
        rows=sample,
        # Vectors that are longer than the checkpoint's are none of its.
        distances=np.full(len(sample), 2.0) if form is None else form.distance(ours, sample.vectors),
        form=form,
        tolerance=0.0,
        kind=function.kind,
    )
    if form is not None:
        found = replace(found, tolerance=form.tolerance(found.distances))
        # Of the rows that are its own within that.
        found = replace(found, length_ratio=_ratio(ours, sample, found))
    return found, ours


def explain_sample(
    function: EmbeddingFunction,
    found: SampleComparison,
    ours: np.ndarray,
    *,
    near: Callable[[Sequence[int]], SomeRows] | None = None,
    also: Sequence[str] = (),
    load: Load,
    with_explanation: bool = True,
    known: Sequence[Reason] = (),
    progress: Progress = lambda what, done, total: None,
) -> SampleComparison:
    """The sample with what explains the rows that differ.

    Args:
        known: what is known to explain some of them.
    """
    if with_explanation and (found.differs.any() or found.is_in_lower_precision):
        progress("what explains rows that differ", 0, None)
        reasons, rounding = reasons_for(function, found, ours, near=near, also=also, load=load, known=known)
        found = replace(found, reasons=reasons, rounding=rounding)
    return found


def _ratio(ours: np.ndarray, sample: SomeRows, found: SampleComparison) -> float:
    """Median of stored length / the checkpoint's of the rows that are its own; NaN for whole numbers and bits."""
    own = found.compared & ~found.differs
    if not own.any() or sample.vectors.dtype.kind != "f" or (found.form and found.form.ceiling > HALF):
        return float("nan")
    width = sample.vectors.shape[1]
    lengths = np.linalg.norm(ours[own][:, :width].astype(np.float64), axis=1)
    return float(np.median(np.linalg.norm(sample.vectors[own].astype(np.float64), axis=1) / lengths.clip(min=1e-30)))


def is_other_length(ratio: float) -> bool:
    return bool(np.isfinite(ratio)) and abs(ratio - 1) > SAME_LENGTH
