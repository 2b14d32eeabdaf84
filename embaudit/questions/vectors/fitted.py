"""Makes fingerprints: what the vectors of a model's stores have in common, and from where on it tells the model.

The limit of a measure is halfway between the lowest value of what is the model's and was left out, and the highest of
other models' stores, if there are at least .2 between the two; else the next measure is tried.

    lowest   of each owner's stores, compared with the fingerprint of the other owners (of rows: their 1 % quantile).
             A sample's kinds of text (sentences, passages, questions …) stand for owners. From a single owner: of each
             half of the rows, compared with the other. The halves are the two sides of the direction in which the rows
             vary most, so that they are about different things; even so, they share the store's subject, and with it a
             direction. So the direction is not used then.
    highest  of other models' stores (99 %), and at least 4/√D: u·c and the correlation of unrelated vectors have a
             standard deviation of 1/√D, so that .3 at 768 numbers is 8 of them.

What it is worth is counted on what was left out, limit and all (``held_out_counts``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, get_args

import numpy as np

from embaudit.questions.vectors.alone import different_places
from embaudit.questions.vectors.fingerprint import (
    SPREAD_ROWS,
    ZERO,
    Fingerprint,
    HeldOutCounts,
    Measure,
    log_spread,
    origin_of,
    spread_correlation,
    still_rows,
)
from embaudit.questions.vectors.forms import unit_float32
from embaudit.questions.vectors.profile import profile_of
from embaudit.stores.store import Store

# Of a store, drawn at random: more say no more about where they point.
MOST_ROWS = 400
# Dimensions that make a pattern, and rows that show which are still.
FEWEST_STILL, STILL_ROWS = 3, 30
# Between the lowest value of the model's own stores and the highest of others.
GAP = 0.2
# Owners that are left out one after another, with a fingerprint of two others and more to ask.
FEWEST_HELD_OUT = 3
# That a fingerprint rests on, to be shipped.
FEWEST_OWNERS = 5

Stores: TypeAlias = Sequence[np.ndarray]


@dataclass(frozen=True)
class Trial:
    """A measure that may tell a model from others.

    Attributes:
        lowest: of what is the model's and was left out; NaN if nothing could be.
        highest: of other models.
    """

    measure: Measure
    lowest: float
    highest: float

    @property
    def tells(self) -> bool:
        return self.lowest - self.highest >= GAP


def different_units(store: Store, seed: int = 0) -> np.ndarray | None:
    """(n, D) at most ``MOST_ROWS`` different rows of a store at length 1, drawn at random; None if it has no floats."""
    profile = profile_of(store, seed)
    vectors = profile.sample.vectors[different_places(profile)[:MOST_ROWS]]
    return unit_float32(vectors).astype(np.float64) if len(vectors) and vectors.dtype.kind == "f" else None


def with_owners_joined(owners: Sequence[str], stores: Stores, same: float, share: float = 0.0) -> list[str]:
    """Whose each store is, where owners who have the same rows are one.

    Args:
        same: cosine from which on two rows are the same.
        share: of the smaller store's rows, the most that may be in the other.
    """
    owner_of = {one: one for one in owners}
    for place, units in enumerate(stores):
        for owner, others in zip(owners[:place], stores[:place], strict=True):
            if owners[place] == owner or units.shape[1] != others.shape[1]:
                continue
            fewer, more = sorted((units, others), key=len)
            if ((fewer @ more.T).max(axis=1) > same).mean() > share:
                old, new = owner_of[owners[place]], owner_of[owner]
                owner_of = {name: new if joined == old else joined for name, joined in owner_of.items()}
    return [owner_of[one] for one in owners]


class Owner:
    """All that one owner's stores say about a model.

    Attributes:
        stores: (n, D) each, different rows at length 1.
        direction: (D,) where they point on average.
        spread: (D,) logarithm of each dimension's standard deviation; None of too few rows.
        is_still: (D,) whether a dimension is zero in every row.
    """

    def __init__(self, stores: Stores) -> None:
        rows = np.concatenate(stores)
        mean = rows.mean(axis=0)
        self.stores, self.rows = stores, len(rows)
        self.direction = _unit(mean)
        self.spread = log_spread(rows) if len(rows) >= SPREAD_ROWS else None
        self.is_still = np.abs(rows).max(axis=0) <= ZERO


def fitted(model: str, own: Mapping[str, Stores], others: Stores) -> Fingerprint:
    """A model's fingerprint; its measure is None if nothing tells it from others.

    Args:
        own: by owner, the rows of each store, different ones at length 1.
        others: the same of stores of other models of as many numbers.
    """
    return _fitted(model, [Owner(stores) for stores in own.values()], others)


def _fitted(model: str, owners: Sequence[Owner], others: Stores) -> Fingerprint:
    pooled = _pooled(model, owners)
    for trial in _trials(owners, others):
        if trial.tells:
            limit = (trial.lowest + trial.highest) / 2
            return replace(pooled, measure=trial.measure, limit=limit, highest_other=trial.highest)
    return pooled


def trials(own: Mapping[str, Stores], others: Stores) -> Iterator[Trial]:
    """The measures that may tell a model, in their order; arguments as in ``fitted``."""
    return _trials([Owner(stores) for stores in own.values()], others)


def _trials(owners: Sequence[Owner], others: Stores) -> Iterator[Trial]:
    pooled = _pooled("", owners)
    floor = 4 / pooled.dimension**0.5
    is_single = len(owners) == 1
    left_out = [Owner([half]) for half in halves(np.concatenate(owners[0].stores))] if is_single else owners
    for measure in get_args(Measure):
        if (measure == "still" and len(pooled.still) < FEWEST_STILL) or (measure == "direction" and is_single):
            continue
        mine = []
        for owner in left_out:
            rest = _pooled("", [one for one in left_out if one is not owner])
            mine += [_value(measure, rest, store, 0.01) for store in owner.stores]
        theirs = [_value(measure, pooled, store, 0.99) for store in others]
        lowest = min((one for one in mine if one is not None), default=float("nan"))
        highest = max([0.0 if measure == "still" else floor, *(one for one in theirs if one is not None)])
        yield Trial(measure, lowest, highest)


def halves(units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows on the two sides of the direction in which they vary most, as many on each."""
    centred = units - units.mean(axis=0)
    order = np.argsort(centred @ np.linalg.svd(centred, full_matrices=False)[2][0])
    return units[order[: len(order) // 2]], units[order[len(order) // 2 :]]


def held_out_counts(model: str, own: Mapping[str, Stores], others: Mapping[str, Stores]) -> HeldOutCounts:
    """How many stores are named by a fingerprint, and limit, without their owner; of others, without that one."""
    owners = [Owner(stores) for stores in own.values()]
    named, wrongly = [], []
    for owner in owners if len(owners) >= FEWEST_HELD_OUT else ():
        every_other = [store for stores in others.values() for store in stores]
        fingerprint = _fitted(model, [one for one in owners if one is not owner], every_other)
        named += [_is_named(fingerprint, store) for store in owner.stores]
    for name, stores in others.items():
        rest = [store for other, kept in others.items() if other != name for store in kept]
        fingerprint = _fitted(model, owners, rest)
        wrongly += [_is_named(fingerprint, store) for store in stores]
    return HeldOutCounts(sum(named), len(named), sum(wrongly), len(wrongly))


def _is_named(fingerprint: Fingerprint, units: np.ndarray) -> bool:
    origin = origin_of(units, [fingerprint])
    return origin is not None and origin.told in ("named", "some rows")


def _pooled(model: str, owners: Sequence[Owner]) -> Fingerprint:
    """What is common to the owners' stores, without a measure."""
    direction = np.sum([one.direction for one in owners], axis=0)
    spreads = [one.spread for one in owners if one.spread is not None]
    rows = sum(one.rows for one in owners)
    is_still = np.all([one.is_still for one in owners], axis=0)
    return Fingerprint(
        model=model,
        measure=None,
        direction=_unit(direction),
        spread=np.mean(spreads, axis=0) if spreads else np.zeros(len(direction)),
        still=tuple(np.flatnonzero(is_still).tolist()) if rows >= STILL_ROWS else (),
        limit=float("nan"),
        highest_other=float("nan"),
        owners=len(owners),
        stores=sum(len(one.stores) for one in owners),
        rows=rows,
    )


def _unit(vector: np.ndarray) -> np.ndarray:
    """At length 1; zeros stay."""
    return vector / (np.linalg.norm(vector) or 1.0)


def _value(measure: Measure, fingerprint: Fingerprint, units: np.ndarray, quantile: float) -> float | None:
    """What a measure gives to a store, of its rows at a quantile; None if there are too few rows to tell."""
    if measure == "still":
        return None if not fingerprint.still else float(still_rows(units, fingerprint.still)[0].mean())
    if measure == "direction":
        return float(np.quantile(units @ fingerprint.direction, quantile))
    if len(units) < SPREAD_ROWS or not fingerprint.spread.any():
        return None
    return spread_correlation(fingerprint, units)
