"""Which model gave vectors, from the vectors alone: what a model's vectors have in common, whatever the texts.

Of rows at length 1, u_i (i = 1 … n, different ones only), of the stores of each owner o, a fingerprint keeps

    direction  c   = unit(Σ_o unit(Σ_i u_i))                        where a model's vectors point on average
    spread     s_d = mean over o of log max(std_i(u_id), 1e-5)      how much each dimension varies
    still      Z   = {d : |u_id| ≤ 1e-5 for every i and o}          dimensions that training left at zero

and a store is compared by the first of these that tells the model from others:

    still      a row is the model's if |u_id| ≤ 1e-5 for every d in Z, and hardly any other number is so small
    direction  a row is the model's if u_i·c ≥ limit
    spread     the store is the model's if corr_d(log max(std_i(u_id), 1e-5), s_d) ≥ limit, from ten different rows on

``fitted.py`` says how a fingerprint is made, and what its limit rests on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from embaudit.questions.vectors.forms import unit_float32

Measure = Literal["still", "direction", "spread"]
# What was left out, one after another, to find the limit.
HeldOutParts = Literal["owners", "stores", "kinds of text", "halves of a store"]
# What a number of a still dimension may be, at length 1; of the others, how many may be by chance.
ZERO, FEW_ZEROS = 1e-5, 0.02
# Different rows that have a standard deviation.
SPREAD_ROWS = 10
# Of the rows: nearly all, and too few to be more than chance.
NEARLY_ALL, HARDLY_ANY = 0.95, 0.05
# Of a part of the rows, to be named.
FEWEST_ROWS = 5


@dataclass(frozen=True)
class HeldOutCounts:
    """How the decision did on stores of owners that were in no fingerprint: counts.

    Attributes:
        named, own: stores of the model that were named, of how many.
        wrongly, others: stores of other models that were named as this one, of how many.
    """

    named: int
    own: int
    wrongly: int
    others: int


@dataclass(frozen=True)
class Fingerprint:
    """A model's, pooled over owners.

    Attributes:
        measure: by which it is told from others; None if by none.
        direction, spread: (D,)
        still: dimensions.
        limit: of the measure's value; highest_other: of other models' stores.
        owners, stores, rows: that it rests on; a kind of text counts as both.
        not_told_from: others that may pass for it.
        parts: what was left out to find the limit.
        sources: what it was made of, as it was named; empty of public stores.
        embaudit: the version that made it.
    """

    model: str
    measure: Measure | None
    direction: np.ndarray
    spread: np.ndarray
    still: tuple[int, ...]
    limit: float
    highest_other: float
    owners: int
    stores: int
    rows: int
    not_told_from: str = ""
    held_out: HeldOutCounts | None = None
    parts: HeldOutParts = "owners"
    sources: tuple[str, ...] = ()
    embaudit: str = ""

    @property
    def dimension(self) -> int:
        return len(self.direction)

    @property
    def is_of_public_stores(self) -> bool:
        return self.parts == "owners"

    def as_json(self) -> dict[str, Any]:
        return {
            **vars(self),
            "direction": [round(float(one), 4) for one in self.direction],
            "spread": [round(float(one), 2) for one in self.spread],
            "still": list(self.still),
            "limit": round(self.limit, 3),
            "highest_other": round(self.highest_other, 3),
            "held_out": None if self.held_out is None else vars(self.held_out),
            "sources": list(self.sources),
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Fingerprint:
        direction = np.array(told["direction"])
        return cls(
            **{
                **told,
                "direction": direction / np.linalg.norm(direction),
                "spread": np.array(told["spread"]),
                "still": tuple(told["still"]),
                "sources": tuple(told.get("sources", ())),
                "held_out": None if told["held_out"] is None else HeldOutCounts(**told["held_out"]),
            }
        )


@dataclass(frozen=True)
class Likeness:
    """A store beside a fingerprint.

    Attributes:
        value: of the fingerprint's measure: the median row's, the share of rows that are still, or the correlation.
        share: of the rows that are the model's; 1 or 0 by the spread; None if it cannot be told.
        is_own: (n,) which rows are; None where rows do not tell.
        between: share of the rows that are neither the model's nor, for sure, another's.
    """

    fingerprint: Fingerprint
    value: float
    share: float | None
    is_own: np.ndarray | None = None
    between: float = 0.0


def likeness(fingerprint: Fingerprint, units: np.ndarray) -> Likeness:
    """Compare a store with a model.

    Args:
        units: (n, D) its different rows, at length 1.
    """
    if fingerprint.measure == "still":
        still, is_dense = still_rows(units, fingerprint.still)
        # Numbers that were rounded to zero hide a pattern of zeros.
        share = float(still.mean()) if is_dense else None
        return Likeness(fingerprint, share or 0.0, share, still)
    if fingerprint.measure == "direction":
        along = units @ fingerprint.direction
        is_own = along >= fingerprint.limit
        # The lowest value of a few stores, or of a sample, is not the lowest of all.
        is_between = ~is_own & (along > fingerprint.highest_other) & (not fingerprint.is_of_public_stores)
        shares = float(is_own.mean()), float(is_between.mean())
        return Likeness(fingerprint, float(np.median(along)), shares[0], is_own, shares[1])
    if len(units) < SPREAD_ROWS:
        return Likeness(fingerprint, float("nan"), None)
    value = spread_correlation(fingerprint, units)
    is_between = fingerprint.highest_other < value < fingerprint.limit
    return Likeness(fingerprint, value, None if is_between else float(value >= fingerprint.limit))


def still_rows(units: np.ndarray, still: Sequence[int]) -> tuple[np.ndarray, bool]:
    """(n,) which rows are zero in these dimensions, and whether they are not in many others too."""
    is_zero = np.abs(units) <= ZERO
    others = np.delete(is_zero, list(still), axis=1)
    return is_zero[:, list(still)].all(axis=1), bool(others.mean() <= FEW_ZEROS)


def log_spread(units: np.ndarray) -> np.ndarray:
    """(D,) the logarithm of each dimension's standard deviation over the rows."""
    return np.log(np.maximum(units.std(axis=0), ZERO))


def spread_correlation(fingerprint: Fingerprint, units: np.ndarray) -> float:
    """How alike each dimension varies; without those that are still, beside which all others are alike."""
    one, other = (np.delete(all_, list(fingerprint.still)) for all_ in (log_spread(units), fingerprint.spread))
    if one.std() == 0 or other.std() == 0:
        return 0.0
    return float(np.corrcoef(one, other)[0, 1])


@dataclass(frozen=True)
class Origin:
    """Who built a store, as its vectors tell.

    Attributes:
        told: ``named``: nearly all rows are one known model's; ``some rows``: a part of them are; ``nobody known``;
            ``cannot tell``.
        best: the likeness that says so; None if nobody is named.
        tried: every known model of so many numbers.
        also: others that say so as well, and cannot be told from the best.
    """

    told: Literal["named", "some rows", "nobody known", "cannot tell"]
    best: Likeness | None
    tried: tuple[Likeness, ...]
    also: tuple[Likeness, ...] = ()


def origin_of(vectors: np.ndarray, known: Sequence[Fingerprint]) -> Origin | None:
    """Who built a store; None if no known model gives so many numbers.

    Args:
        vectors: (n, D) its different rows.
    """
    fitting = [one for one in known if one.dimension == vectors.shape[1] and one.measure is not None]
    if not len(vectors) or vectors.dtype.kind != "f" or not fitting:
        return None
    units = unit_float32(vectors).astype(np.float64)
    tried = tuple(likeness(one, units) for one in fitting)
    # What single rows tell goes before what the spread of all does: of a mixture, that is anything.
    by_rows = [one for one in tried if one.fingerprint.measure != "spread" and (one.share or 0.0) >= HARDLY_ANY]
    if by_rows:
        best, *others = sorted(by_rows, key=lambda one: one.share or 0.0, reverse=True)
        share = best.share or 0.0
        if share >= NEARLY_ALL:
            return Origin("named", best, tried, tuple(one for one in others if (one.share or 0.0) >= NEARLY_ALL))
        is_part = share * len(units) >= FEWEST_ROWS and 1 - share - best.between >= HARDLY_ANY
        return Origin("some rows", best, tried) if is_part else Origin("cannot tell", None, tried)
    by_all = [one for one in tried if one.share == 1]
    if by_all and all(_are_alike(by_all[0].fingerprint, one.fingerprint) for one in by_all):
        return Origin("named", by_all[0], tried, tuple(by_all[1:]))
    is_open = bool(by_all) or any(one.share is None or one.between >= HARDLY_ANY for one in tried)
    return Origin("cannot tell" if is_open else "nobody known", None, tried)


def _are_alike(one: Fingerprint, other: Fingerprint) -> bool:
    """Whether a store that is one's by its spread must be the other's, too."""
    return float(np.corrcoef(one.spread, other.spread)[0, 1]) >= min(one.limit, other.limit)
