"""Which model gave vectors, from the vectors alone: what a model's vectors have in common, whatever the texts.

Of rows at length 1, u_i (i = 1 … n, different ones only), of the stores of each owner o, a fingerprint keeps

    direction  c   = unit(Σ_o unit(Σ_i u_i))                        where a model's vectors point on average
    spread     s_d = mean over o of log max(std_i(u_id), 1e-5)      how much each dimension varies
    still      Z   = {d : |u_id| ≤ 1e-5 for every i and o}          dimensions that training left at zero

and a store is compared by the first of these that tells the model from others:

    still      a row is the model's if |u_id| ≤ 1e-5 for every d in Z, and hardly any other number is so small
    direction  a row is the model's if u_i·c ≥ limit
    spread     the store is the model's if corr_d(log max(std_i(u_id), 1e-5), s_d) ≥ limit, from ten different rows on

The limit is halfway between the lowest value of held-out stores of the model, each compared with the fingerprint of the
other owners (of rows: their 1 % quantile), and the highest of other models' stores (99 %). The latter is at least
4/√D: u·c and the correlation of unrelated ones have a standard deviation of 1/√D, so that .3 at 768 numbers is 8 of
them. An estimate from few owners: what it is worth is counted on held-out owners (``held_out``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

import numpy as np

from embaudit.questions.vectors.unit import unit_float32

Measure = Literal["still", "direction", "spread"]
# What a number of a still dimension may be, at length 1; of the others, how many may be by chance.
ZERO, FEW_ZEROS = 1e-5, 0.02
# Dimensions that make a pattern, and rows that show which are still.
FEWEST_STILL, STILL_ROWS = 3, 30
# Different rows that have a standard deviation.
SPREAD_ROWS = 10
# Between the lowest value of the model's own stores and the highest of others.
GAP = 0.2
# Of the rows: nearly all, and too few to be more than chance.
NEARLY_ALL, HARDLY_ANY = 0.95, 0.05
# Of a part of the rows, to be named.
FEWEST_ROWS = 5
# That a fingerprint rests on, to be shipped.
FEWEST_OWNERS = 5


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
        owners, stores, rows: that it rests on.
        not_told_from: others that may pass for it.
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

    @property
    def dimension(self) -> int:
        return len(self.direction)

    def as_json(self) -> dict[str, Any]:
        return {
            **vars(self),
            "direction": [round(float(one), 4) for one in self.direction],
            "spread": [round(float(one), 2) for one in self.spread],
            "still": list(self.still),
            "limit": round(self.limit, 3),
            "highest_other": round(self.highest_other, 3),
            "held_out": None if self.held_out is None else vars(self.held_out),
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
                "held_out": None if told["held_out"] is None else HeldOutCounts(**told["held_out"]),
            }
        )


@cache
def known_fingerprints() -> tuple[Fingerprint, ...]:
    """Those that come with embaudit; ``known/README.md`` says how they were made."""
    text = files("embaudit.questions.vectors").joinpath("known", "fingerprints.json").read_text("utf-8")
    return tuple(Fingerprint.from_json(one) for one in json.loads(text))


@dataclass(frozen=True)
class Likeness:
    """A store beside a fingerprint.

    Attributes:
        value: of the fingerprint's measure: the median row's, the share of rows that are still, or the correlation.
        share: of the rows that are the model's; 1 or 0 by the spread; None if it cannot be told.
        is_own: (n,) which rows are; None where rows do not tell.
    """

    fingerprint: Fingerprint
    value: float
    share: float | None
    is_own: np.ndarray | None = None


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
        return Likeness(fingerprint, float(np.median(along)), float(is_own.mean()), is_own)
    if len(units) < SPREAD_ROWS:
        return Likeness(fingerprint, float("nan"), None)
    value = _correlation(_log_spread(units), fingerprint.spread)
    is_between = fingerprint.highest_other < value < fingerprint.limit
    return Likeness(fingerprint, value, None if is_between else float(value >= fingerprint.limit))


def still_rows(units: np.ndarray, still: Sequence[int]) -> tuple[np.ndarray, bool]:
    """(n,) which rows are zero in these dimensions, and whether they are not in many others too."""
    is_zero = np.abs(units) <= ZERO
    others = np.delete(is_zero, list(still), axis=1)
    return is_zero[:, list(still)].all(axis=1), bool(others.mean() <= FEW_ZEROS)


def _log_spread(units: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(units.std(axis=0), ZERO))


def _correlation(one: np.ndarray, other: np.ndarray) -> float:
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
    """

    told: Literal["named", "some rows", "nobody known", "cannot tell"]
    best: Likeness | None
    tried: tuple[Likeness, ...]


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
        if share >= NEARLY_ALL and not others:
            return Origin("named", best, tried)
        is_part = share < NEARLY_ALL and share * len(units) >= FEWEST_ROWS
        return Origin("some rows", best, tried) if is_part else Origin("cannot tell", None, tried)
    by_all = [one for one in tried if one.share == 1]
    if len(by_all) == 1:
        return Origin("named", by_all[0], tried)
    is_open = bool(by_all) or any(one.share is None for one in tried)
    return Origin("cannot tell" if is_open else "nobody known", None, tried)


def fitted(model: str, own: Mapping[str, Sequence[np.ndarray]], others: Sequence[np.ndarray]) -> Fingerprint:
    """A model's fingerprint.

    Args:
        own: by owner, the rows of each store, different ones at length 1.
        others: the same of stores of other models of as many numbers.
    """
    joined = {owner: np.concatenate(stores) for owner, stores in own.items()}
    pooled = _pooled(model, list(joined.values()))
    pooled = replace(pooled, stores=sum(map(len, own.values())))
    floor = 4 / pooled.dimension**0.5
    for measure in get_args(Measure):
        if measure == "still" and len(pooled.still) < FEWEST_STILL:
            continue
        mine = []
        for owner in joined if len(joined) > 1 else ():
            rest = _pooled(model, [rows for other, rows in joined.items() if other != owner])
            mine += [_value(measure, rest, store, 0.01) for store in own[owner]]
        theirs = [_value(measure, pooled, store, 0.99) for store in others]
        low = min((one for one in mine if one is not None), default=float("nan"))
        high = max([0.0 if measure == "still" else floor, *(one for one in theirs if one is not None)])
        if low - high >= GAP:
            return replace(pooled, measure=measure, limit=(low + high) / 2, highest_other=high)
    return pooled


def _pooled(model: str, owners: Sequence[np.ndarray]) -> Fingerprint:
    means = [rows.mean(axis=0) for rows in owners]
    direction = np.sum([one / np.linalg.norm(one) for one in means], axis=0)
    spreads = [_log_spread(rows) for rows in owners if len(rows) >= SPREAD_ROWS]
    rows = sum(map(len, owners))
    is_still = np.all([np.abs(one).max(axis=0) <= ZERO for one in owners], axis=0)
    return Fingerprint(
        model=model,
        measure=None,
        direction=direction / np.linalg.norm(direction),
        spread=np.mean(spreads, axis=0) if spreads else np.zeros(len(direction)),
        still=tuple(np.flatnonzero(is_still).tolist()) if rows >= STILL_ROWS else (),
        limit=float("nan"),
        highest_other=float("nan"),
        owners=len(owners),
        stores=len(owners),
        rows=rows,
    )


def _value(measure: Measure, fingerprint: Fingerprint, units: np.ndarray, quantile: float) -> float | None:
    """What a measure gives to a store, of its rows at a quantile; None if it has too few."""
    if measure == "still":
        return float(still_rows(units, fingerprint.still)[0].mean())
    if measure == "direction":
        return float(np.quantile(units @ fingerprint.direction, quantile))
    if len(units) < SPREAD_ROWS or not fingerprint.spread.any():
        return None
    return _correlation(_log_spread(units), fingerprint.spread)
