"""Why a row's vector is not the checkpoint's: precision, one vector for many texts, another row's text, another
checkpoint, another way to use it; or something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.parity.compare import HALF, LEFT, apart
from embaudit.questions.parity.explain import explain
from embaudit.questions.vectors.forms import (
    PLURAL,
    StoredForm,
    encode_rows,
    form_of_index,
    other_roles,
    role_of_rows,
    unit_float32,
)
from embaudit.questions.vectors.profile import SomeRows
from embaudit.statistics import spearman
from embaudit.words.errors import EmbauditError

if TYPE_CHECKING:
    from embaudit.checkpoint import Checkpoint, TextKind
    from embaudit.questions.vectors.against import SampleComparison

# Texts of other rows that are asked of a function that may cost money; how much nearer another row's text must be.
MOST_PAID, CLEARLY = 120, 4
# Rows that are held against other uses of the checkpoint; more say no more and take longer.
EXPLAINED, ROUNDS = 16, 3
# Rows that are encoded in half precision.
ROUNDED = 64
# Mean cosine of a stored vector's error and that of half precision: 0 for another revision; weights are rounded alike
# on every machine, so that errors of one precision have a part in common.
SAME_ERROR = 0.25
# Of one row; another revision's errors stay below 3/√D.
SAME_ERROR_OF_ONE = 0.15
PRECISIONS = ("bfloat16", "float16")
# Spearman's ρ of two sets of similarities, to say that texts are the same ones.
AGREE, FEWEST = 0.4, 8
EXAMPLES = 3


@dataclass(frozen=True)
class Reason:
    """Why some rows differ.

    Attributes:
        said: a sentence about the rows, without the last full stop.
        places: of the sampled rows that it explains.
        is_known: False for the rows that nothing explains.
        is_rounding: whether it is the checkpoint all the same, in lower precision.
    """

    said: str
    places: tuple[int, ...]
    is_known: bool = True
    is_rounding: bool = False

    def as_json(self, rows: SomeRows) -> dict[str, Any]:
        shown = rows.at(self.places[:EXAMPLES])
        return {
            "said": self.said,
            "rows": len(self.places),
            "is_known": self.is_known,
            "is_rounding": self.is_rounding,
            "examples": [
                {"row": int(number) + 1, "id": None if one is None else str(one), "text": text}
                for number, one, text in zip(shown.numbers, shown.ids, shown.texts, strict=True)
            ],
        }


def reasons_for(
    function: EmbeddingFunction,
    found: SampleComparison,
    ours: np.ndarray,
    *,
    near: Callable[[Sequence[int]], SomeRows] | None,
    also: Sequence[str],
    load: Callable[[str], EmbeddingFunction],
    known: Sequence[Reason] = (),
) -> tuple[tuple[Reason, ...], str]:
    """What explains the rows that differ, and the precision that explains what most rows differ by.

    Each search takes the rows that those before it left.
    """
    rows, form, reasons = found.rows, found.form, list(known)
    explained = [place for reason in known for place in reason.places]
    left = np.setdiff1d(np.flatnonzero(found.differs), explained).astype(np.int64)
    rounding = ""
    if found.is_another_dimension:
        for name in also:
            left = _take(reasons, left, of_other(load(name), rows, left), f"are those of {name}")
        return _by_rows(reasons), ""
    if form is not None:
        role = role_of_rows(function)
        slight = left[found.distances[left] <= form.ceiling]
        whole = np.flatnonzero(found.compared & ~found.differs) if found.is_in_lower_precision else np.empty(0, int)
        # What half precision does to a vector is only known of a checkpoint.
        is_rounded = form.ceiling == HALF and function.checkpoint is not None
        if is_rounded and len(whole):
            rounding = _precision(rows, ours, whole, load, role)
        if is_rounded and len(slight) and (name := _precision(rows, ours, slight, load, role)):
            said = (
                f"are the checkpoint's in {name}, where the others are in {'lower' if rounding else 'full'} precision"
            )
            slight = slight[_agreement(rows, ours, slight, load(f"dtype:{name}"), role) >= SAME_ERROR_OF_ONE]
            reasons.append(Reason(said, tuple(slight.tolist()), is_rounding=True))
            left = np.setdiff1d(left, slight)
        left = _take(
            reasons,
            left,
            _one_vector(rows, form, ours, left),
            "have the vector of other texts: one vector was given to several",
        )
    for role in other_roles(function):
        said = f"are the {function.kind}'s if asked for {PLURAL[role]}"
        left = _take(reasons, left, of_other(function, rows, left, role), said)
    for name in also:
        left = _take(reasons, left, of_other(load(name), rows, left), f"are those of {name}")
    if form is not None:
        for places, said in _of_neighbours(function, found, left, near):
            left = _take(reasons, left, places, said)
    for _ in range(ROUNDS):
        if not len(left) or function.checkpoint is None:
            break
        said, places = _of_other_use(function.checkpoint, rows, left)
        if not len(places):
            break
        left = _take(reasons, left, places, said)
    if len(left):
        reasons.append(Reason(_nothing(rows, ours, left, found, also), tuple(left.tolist()), is_known=False))
    return _by_rows(reasons), rounding


def _by_rows(reasons: Sequence[Reason]) -> tuple[Reason, ...]:
    return tuple(sorted(reasons, key=lambda reason: -len(reason.places)))


def _take(reasons: list[Reason], left: np.ndarray, places: np.ndarray, said: str) -> np.ndarray:
    """Note a reason for these places, if there are any; what is left then."""
    if not len(places):
        return left
    reasons.append(Reason(said, tuple(places.tolist())))
    return np.setdiff1d(left, places)


def _precision(
    rows: SomeRows,
    ours: np.ndarray,
    places: np.ndarray,
    load: Callable[[str], EmbeddingFunction],
    role: TextKind,
) -> str:
    """The half precision whose errors these rows have; empty if none has them."""
    chosen = places[:ROUNDED]
    found = {}
    for name in PRECISIONS:
        with suppress(EmbauditError):
            found[name] = float(np.nanmean(_agreement(rows, ours, chosen, load(f"dtype:{name}"), role)))
    best = max(found, key=lambda name: found[name], default="")
    return best if best and found[best] >= SAME_ERROR else ""


def _agreement(
    rows: SomeRows, ours: np.ndarray, places: np.ndarray, half: EmbeddingFunction, role: TextKind
) -> np.ndarray:
    """(n,) cosines of what stored vectors differ by with what half precision makes a difference of."""
    width = rows.vectors.shape[1]
    own = unit_float32(ours[places][:, :width])
    vectors = encode_rows(half, [rows.texts[place] or "" for place in places], role=role)
    error = unit_float32(unit_float32(rows.vectors[places]) - own)
    return np.asarray((error * unit_float32(unit_float32(vectors[:, :width]) - own)).sum(axis=1))


def _one_vector(rows: SomeRows, form: StoredForm, ours: np.ndarray, left: np.ndarray) -> np.ndarray:
    """Those of the places whose vector a row of another text in the sample has, bit by bit.

    Texts that the checkpoint itself gives one vector (case, white space, what is cut off) are no other texts.
    """
    owners: dict[bytes, list[int]] = {}
    for place in range(len(rows)):
        owners.setdefault(rows.vectors[place].tobytes(), []).append(place)

    def has_others(place: int) -> bool:
        others = [one for one in owners[rows.vectors[place].tobytes()] if rows.texts[one] != rows.texts[place]]
        return bool((apart(ours[others], ours[[place] * len(others)]) > form.ceiling).any())

    return left[[has_others(int(place)) for place in left]] if len(left) else left


def of_other(other: EmbeddingFunction, rows: SomeRows, left: np.ndarray, role: TextKind | None = None) -> np.ndarray:
    """Those of the places whose vectors another checkpoint gives, or the same function in another role."""
    if not len(left):
        return left
    try:
        vectors = encode_rows(other, [rows.texts[place] or "" for place in left], role=role)
    except EmbauditError:
        # It may give no vector in that role, or none of that dimension.
        if role is None:
            raise
        return left[:0]
    if not np.isfinite(vectors).any():
        return left[:0]
    form = form_of_index(vectors, rows.vectors[left])
    if form is None:
        return left[:0]
    distances = form.distance(vectors, rows.vectors[left])
    return left[distances <= form.tolerance(distances)]


def _of_neighbours(
    function: EmbeddingFunction,
    found: SampleComparison,
    left: np.ndarray,
    near: Callable[[Sequence[int]], SomeRows] | None,
) -> Iterator[tuple[np.ndarray, str]]:
    """Those of the places whose vector is that of the row before, and after: texts and vectors are out of step.

    A few are looked at; where any of them is, all are, as far as a function that may cost money allows.
    """
    if near is None or not len(left):
        return
    most = len(left) if function.checkpoint is not None else MOST_PAID
    for by, which in ((-1, "before"), (1, "after")):
        places = _of_shifted(function, found, left[:EXPLAINED], near, by)
        if not len(places):
            continue
        if len(left) > EXPLAINED:
            places = _of_shifted(function, found, left[:most], near, by)
        looked_at = f" ({most:,} were looked at)" if len(left) > most else ""
        yield places, f"are those of the text of the row {which}: texts and vectors are out of step{looked_at}"
        left = np.setdiff1d(left, places)


def _of_shifted(
    function: EmbeddingFunction,
    found: SampleComparison,
    left: np.ndarray,
    near: Callable[[Sequence[int]], SomeRows],
    by: int,
) -> np.ndarray:
    """Those of the places whose vector the function gives for the text of the row so many rows on."""
    assert found.form is not None
    rows = found.rows
    beside = near([int(number) + by for number in rows.numbers[left] if number + by >= 0]).with_text
    place_of = {int(number): place for place, number in enumerate(beside.numbers)}
    own = np.array([place for place in left if int(rows.numbers[place]) + by in place_of], dtype=np.int64)
    if not len(own):
        return own
    theirs = [beside.texts[place_of[int(rows.numbers[place]) + by]] or "" for place in own]
    vectors, stored = encode_rows(function, theirs), rows.vectors[own]
    # Where no row was its own, the form is told from these.
    is_told = bool((found.compared & ~found.differs).any())
    form = found.form if is_told else form_of_index(vectors, stored) or found.form
    distances = form.distance(vectors, stored)
    return own[(distances <= form.ceiling) & (distances * CLEARLY < found.distances[own])]


def _of_other_use(checkpoint: Checkpoint, rows: SomeRows, left: np.ndarray) -> tuple[str, np.ndarray]:
    """The way to use the checkpoint that gives most of these rows, and those that it gives."""
    chosen = left[:EXPLAINED]
    kinds = {str(place): [rows.texts[place] or ""] for place in chosen}
    vectors = {str(place): rows.vectors[place][None].astype(np.float64) for place in chosen}
    told = explain(checkpoint, kinds, vectors)
    if not told.differs or told.leaves is None:
        return "", left[:0]
    distances = told.leaves([rows.texts[place] or "" for place in left], rows.vectors[left].astype(np.float64))
    within = HALF if told.is_rounded else LEFT
    return f"are the checkpoint's if it {'; it '.join(told.differs)}", left[distances <= within]


def _nothing(rows: SomeRows, ours: np.ndarray, left: np.ndarray, found: SampleComparison, also: Sequence[str]) -> str:
    """What can be said of rows that nothing explains: whether they are vectors of the same texts at all."""
    median = float(np.median(found.distances[left]))
    more = "" if also else "; --also CHECKPOINT tries one"
    width = min(rows.vectors.shape[1], ours.shape[1])
    agreement = None
    if len(left) >= FEWEST and width:
        firsts, seconds = np.triu_indices(len(left[:200]), 1)
        theirs, own = unit_float32(rows.vectors[left[:200]]), unit_float32(ours[left[:200]])
        agreement = spearman((theirs @ theirs.T)[firsts, seconds], (own @ own.T)[firsts, seconds])
    far = f" (1 − cosine {median:.2g} at the median)"
    by = "revision or model" if rows.vectors.shape[1] >= found.dimension else "model"
    if agreement is not None and agreement < AGREE:
        return (
            f"are explained by nothing that was tried{far}; their similarities do not agree with the {found.kind}'s "
            f"(ρ = {agreement:.2f}): probably texts that were changed or mixed up since, or no text's vectors"
        )
    if agreement is not None:
        return (
            f"are explained by nothing that was tried{far}; their similarities agree with the {found.kind}'s "
            f"(ρ = {agreement:.2f}): the same texts by another {by}, or texts edited since{more}"
        )
    return f"are explained by nothing that was tried{far}: another {by}, or other texts{more}"
