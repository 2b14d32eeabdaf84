"""How an index stores a checkpoint's vectors: as fractions, whole numbers (int8) or bits, all dimensions or the first.

A form says how far a stored vector is from the checkpoint's, as 1 − cosine, and how far rounding alone may bring it:
vectors are rounded as the form does before they are compared, where that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from embaudit.questions.parity.compare import HALF, LEFT, SAME, apart
from embaudit.questions.parity.requested import BYTE, SIGNED, bits_of_bytes
from embaudit.questions.vectors.unit import unit_float32
from embaudit.questions.vectors.whole_numbers import Distance, ways_to_round
from embaudit.stores.store import Rounded

# A row may be so many times as far as the median of those that are near: in half precision, rows differ by up to 3.
SPREAD = 20
# Bits that may differ beyond what their share says, in standard deviations.
DEVIATIONS = 4


@dataclass(frozen=True)
class StoredForm:
    """A way to store vectors.

    Attributes:
        said: as the end of "vectors are stored …"; empty for fractions of all dimensions.
        distance: (n,) 1 − cosine of the checkpoint's (n, D) vectors and the stored (n, d); NaN if one is zero.
        floor, ceiling: up to where a distance is rounding in float32, and in half precision.
        confuses: share of rows that would pass for the row of another text.
    """

    said: str
    distance: Distance
    floor: float = SAME
    ceiling: float = HALF
    confuses: float = 0.0

    def tolerance(self, distances: np.ndarray) -> float:
        """Up to where a row is the checkpoint's: ``SPREAD`` times the median of those that half precision allows."""
        near = distances[distances <= self.ceiling]
        return float(np.clip(SPREAD * np.median(near), self.floor, self.ceiling)) if len(near) else self.ceiling


def form_of_index(ours: np.ndarray, stored: np.ndarray, rounded: Rounded | None = None) -> StoredForm | None:
    """The form in which most rows are the checkpoint's; None if stored vectors are longer than its.

    Args:
        ours: (n, D) the checkpoint's vectors, NaN for none.
        stored: (n, d) of the same rows.
        rounded: what the index gives back of vectors that are put into it, if it keeps codes.
    """
    is_coded = rounded is not None and ours.shape[1] == stored.shape[1]
    forms = list(_coded(ours, rounded) if is_coded and rounded else _candidates(ours, stored))
    if not forms:
        return None

    forms = [replace(form, distance=_known(form.distance)) for form in forms]

    def fit(form: StoredForm) -> tuple[int, float]:
        distances = form.distance(ours, stored)
        near = distances[distances <= form.ceiling]
        # Nothing can be compared where one of the two has no vector of a row, whichever row it is.
        known = near if len(near) else distances[np.isfinite(distances)]
        return len(near), -float(np.median(known)) if len(known) else -np.inf

    best = max(forms, key=fit)
    return replace(best, confuses=max(best.confuses, _confused(best, ours, stored)))


def _known(distance: Distance) -> Distance:
    """Of two vectors that are none of zeros or NaN, a form without a cosine has them unrelated: no row is left out."""

    def known(ours: np.ndarray, stored: np.ndarray) -> np.ndarray:
        found = distance(ours, stored)
        both = np.isfinite(ours).all(axis=1) & (ours != 0).any(axis=1) & np.isfinite(stored).all(axis=1)
        return np.where(np.isfinite(found) | ~both, found, 1.0)

    return known


def _confused(form: StoredForm, ours: np.ndarray, stored: np.ndarray) -> float:
    """The share of rows whose vector would pass for that of another row's text."""
    others = np.roll(ours, max(1, len(ours) // 2), axis=0)
    distances = form.distance(others, stored)
    # A text may stand twice: its vector is no other's.
    distances = distances[apart(ours, others) > LEFT]
    within = form.tolerance(form.distance(ours, stored))
    return float((distances <= within).mean()) if len(distances) else 0.0


def _candidates(ours: np.ndarray, stored: np.ndarray) -> Iterator[StoredForm]:
    D, d = ours.shape[1], stored.shape[1]
    cut = f"as the first {d:,} of {D:,} dimensions" if d < D else ""
    is_whole = stored.dtype.kind in "iu" or bool((stored == np.round(stored)).all())
    if not is_whole:
        if d <= D:
            yield StoredForm(cut, lambda ours, stored: apart(ours[:, :d], stored))
        return
    if d * BYTE <= D and stored.min() >= -128 and stored.max() <= 255:
        yield from _packed(d, D)
    if d > D:
        return
    values = set(np.unique(stored[:100]).tolist())
    if values <= {0, 1} or values <= {-1, 1}:
        yield _bits(_and("as one bit for each number (binary)", cut), d, lambda stored: stored > 0)
        return
    for way in ways_to_round(ours[:, :d], stored):
        said = _and(f"as whole numbers{way.said}", cut)
        yield StoredForm(said, way.distance, way.leaves(SAME), way.leaves(HALF))


def _coded(ours: np.ndarray, rounded: Rounded) -> Iterator[StoredForm]:
    """Codes of a code book, as the index itself rounds the checkpoint's vectors: those of unit length, or as they are.

    A number near the middle between two codes may go to either. A row is as far as what its code is farther from the
    vector than the nearest; for vectors that differ by an angle δ, and codes that round by ρ, that is ρδ at most.
    """
    for scaled in (lambda vectors: vectors, unit_float32):

        def distance(ours: np.ndarray, stored: np.ndarray, scaled: Rounded = scaled) -> np.ndarray:
            vectors = rounded(scaled(ours))
            return np.fmin(apart(vectors, stored), (apart(ours, stored) - apart(ours, vectors)).clip(min=0))

        rounds = apart(ours, rounded(scaled(ours)))
        if not np.isfinite(rounds).any():
            continue
        bound = HALF + float(np.sqrt(2 * np.nanmedian(rounds)) * np.sqrt(2 * LEFT))
        others = distance(ours, rounded(scaled(np.roll(ours, max(1, len(ours) // 2), axis=0))))
        # A text may stand twice: its vector is no other's.
        others = others[apart(ours, np.roll(ours, max(1, len(ours) // 2), axis=0)) > LEFT]
        confuses = float((others <= bound).mean()) if len(others) else 0.0
        said = f"as codes (1 − cosine {np.nanmedian(rounds):.2g} from rounding)"
        yield StoredForm(said, distance, bound, bound, confuses)


def _and(first: str, second: str) -> str:
    return f"{first}, {second.removeprefix('as ')}" if second else first


def _packed(d: int, D: int) -> Iterator[StoredForm]:
    """Bits packed into bytes: unsigned, in two's complement, or with 128 taken off as sentence-transformers does."""
    cut = f"as the first {d * BYTE:,} of {D:,} dimensions" if d * BYTE < D else ""
    for offset in (0, SIGNED):
        yield _bits(
            _and("as bits packed into bytes (binary)", cut),
            d * BYTE,
            lambda stored, offset=offset: bits_of_bytes(stored, offset),  # type: ignore[misc]
        )


def _bits(said: str, width: int, bits_of: Callable[[np.ndarray], np.ndarray]) -> StoredForm:
    """Signs: vectors at an angle θ differ in a share θ/π of them (Goemans and Williamson 1995), so cos θ is estimated.

    The share that rounding may change is that of its angle, and what a draw of ``width`` bits adds to it.
    """

    def distance(ours: np.ndarray, stored: np.ndarray) -> np.ndarray:
        differ = ((ours[:, :width] > 0) != bits_of(stored)).mean(axis=1)
        return np.where(np.isfinite(ours).all(axis=1), 1 - np.cos(np.pi * differ), np.nan)

    def bound(angle_of: float) -> float:
        share = np.arccos(1 - angle_of) / np.pi
        share += (1 + DEVIATIONS * np.sqrt(width * share * (1 - share))) / width
        return float(1 - np.cos(np.pi * min(share, 1.0)))

    return StoredForm(said, distance, bound(SAME), bound(HALF))
