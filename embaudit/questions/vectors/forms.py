"""How an index stores a checkpoint's vectors: as fractions, whole numbers (int8) or bits, all dimensions or the first.

A form says how far a stored vector is from the checkpoint's, as 1 − cosine, and how far rounding alone may bring it:
vectors are rounded as the form does before they are compared, where that is known. By it the vectors tell what rows
were encoded as: texts, documents, or by mistake queries. Texts of rows are encoded here; one that has no vector stops
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from embaudit.checkpoint import TextKind
from embaudit.declared.rule import Finding, Rule
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.embedders.function import IN_ORDER, EmbeddingFunction
from embaudit.questions.parity.compare import HALF, LEFT, SAME, apart
from embaudit.questions.parity.requested import BYTE, SIGNED, bits_of_bytes
from embaudit.questions.vectors.profile import SomeRows
from embaudit.questions.vectors.whole_numbers import Distance, ways_to_round
from embaudit.stores.store import Rounded


def unit_float32(vectors: np.ndarray) -> np.ndarray:
    """(n, D) float32 rows of length 1; a row of zeros stays, one with NaN becomes NaN."""
    rows = np.asarray(vectors, dtype=np.float32)
    norms = np.sqrt(np.einsum("nd,nd->n", rows, rows))
    return rows / np.where(norms > 0, norms, 1)[:, None]


# Texts that are handed over between two words of progress.
TOGETHER = 256


def encode_rows(
    function: EmbeddingFunction,
    texts: Sequence[str],
    progress: Callable[[int], None] = lambda done: None,
    *,
    role: TextKind | None = None,
) -> np.ndarray:
    """(n, D) vectors of documents, each distinct one encoded once; NaN for texts of which the function has none.

    Args:
        role: what rows were encoded as; by default ``role_of_rows``.
    """
    distinct = list(dict.fromkeys(texts))
    place = {text: one for one, text in enumerate(distinct)}
    role = role or role_of_rows(function)
    # Of about one length, what is handed over together is hardly padded.
    order = sorted(range(len(distinct)), key=lambda one: len(distinct[one]))
    found: dict[int, np.ndarray] = {}
    for start in range(0, len(order), TOGETHER):
        some = order[start : start + TOGETHER]
        found |= zip(some, function.encode([distinct[one] for one in some], role).vectors, strict=True)
        progress(len(some))
    return np.array([found[place[text]] for text in texts])


def role_of_rows(function: EmbeddingFunction) -> TextKind:
    """What rows are taken to be encoded as: documents; of a checkpoint, what it is read for."""
    return "document" if function.checkpoint is None else function.checkpoint.kind


def encode_elsewhere(function: EmbeddingFunction) -> Callable[[Sequence[str]], np.ndarray] | None:
    """The same for another process to call; None if it cannot open the function."""
    return None if function.again is None else partial(_encode_again, function.again, role_of_rows(function))


def _encode_again(again: Callable[[], EmbeddingFunction], role: TextKind, texts: Sequence[str]) -> np.ndarray:
    return encode_rows(again(), texts, role=role)


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


# Rows that tell what all were encoded as.
TOLD_BY = 64
TRIED: tuple[TextKind, ...] = ("text", "document")
PLURAL: dict[TextKind, str] = {"text": "texts that are neither", "query": "queries", "document": "documents"}
ROLE = Rule("role_of_rows", reason="`ok`: rows were encoded as documents, with the prompt that the checkpoint declares")


def as_rows_were_built(
    function: EmbeddingFunction, sample: SomeRows, rounded: Rounded | None, role: TextKind | None = None
) -> EmbeddingFunction:
    """A checkpoint as the program used it that built an index: some encode rows plainly, some as documents.

    It matters where the checkpoint declares something to put before documents. Rows that lack it are told by the search
    for another use, and so are plain rows with it.

    Args:
        role: what they were encoded as, where other rows of the index have told.
    """
    if not isinstance(function, CheckpointFunction) or function.alike("document") == function.alike("text"):
        return function
    if role is not None:
        return function if role == "text" else function.read_as(role)
    some = sample.with_text
    some = some.at(np.arange(min(TOLD_BY, len(some))))
    texts = [text or "" for text in some.texts]
    fit: dict[TextKind, tuple[int, float]] = {}
    for tried in TRIED:
        ours = encode_rows(function, texts, role=tried)
        form = form_of_index(ours, some.vectors, rounded)
        if form is None or not len(some):
            return function
        distances = form.distance(ours, some.vectors)
        # Of coarse codes no row may be near enough: then the nearer are.
        own = int((distances <= form.tolerance(distances)).sum())
        fit[tried] = own, -float(np.nan_to_num(distances, nan=2.0).mean())
    return function.read_as("document") if fit["document"] > fit["text"] else function


def finding_of_role(function: EmbeddingFunction) -> Finding | None:
    """Says that rows were encoded as documents, where that is told; None where it makes no difference."""
    checkpoint = function.checkpoint
    if checkpoint is None or checkpoint.kind == "text":
        return None
    return ROLE.finding(
        "ok",
        f"Rows were encoded as {PLURAL[checkpoint.kind]}: with {checkpoint.prompt.text!r} before each text, as the "
        "checkpoint declares it.",
    )


def other_roles(function: EmbeddingFunction) -> list[TextKind]:
    """What else rows may have been encoded as by a function that is asked for these in other ways; queries first.

    Of a checkpoint, the search for another use names the prompt.
    """
    if function.checkpoint is not None:
        return []
    ways = {function.alike(role): role for role in reversed(IN_ORDER)}
    ways.pop(function.alike(role_of_rows(function)), None)
    return sorted(ways.values(), key=lambda role: role != "query")
