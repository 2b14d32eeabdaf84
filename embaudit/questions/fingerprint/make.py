"""Makes a user's fingerprint, or says why the model cannot be told from others by its vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version

import numpy as np

from embaudit.questions.vectors.fingerprint import Fingerprint, HeldOutParts, origin_of
from embaudit.questions.vectors.fingerprint_file import known_fingerprints
from embaudit.questions.vectors.fitted import (
    FEWEST_HELD_OUT,
    GAP,
    Stores,
    Trial,
    fitted,
    held_out_counts,
    trials,
    with_owners_joined,
)
from embaudit.words.errors import MeasureError

# Different rows of all stores together: two halves of thirty.
FEWEST_ROWS = 60
# Cosine of two rows of one text by one model, and the share of a store's rows that another may have, too.
SAME_ROW, SAME_SHARE = 0.9999, 0.1
WHAT = {
    "still": "dimensions that are always zero",
    "direction": "the mean direction",
    "spread": "how much each dimension varies",
}


def make_fingerprint(
    name: str,
    own: Mapping[str, Stores],
    others: Mapping[str, Stores],
    sources: Sequence[str],
    *,
    is_of_function: bool,
) -> Fingerprint:
    """A model's fingerprint.

    Args:
        own: by kind of text or by store, different rows at length 1.
        others: the same of other models.
        sources: what it is made of, as it was named, without secrets.

    Raises:
        MeasureError: if there are too few rows, or nothing tells the model from others.
    """
    rows = sum(len(units) for stores in own.values() for units in stores)
    if rows < FEWEST_ROWS:
        raise MeasureError(
            f"There are {rows} different vectors of {name}, and a fingerprint takes {FEWEST_ROWS}: what fewer have in "
            "common may be their subject's, and not the model's.",
            kept="No fingerprint was written.",
            next_step="Name more stores that it built, or the checkpoint: embaudit fingerprint CHECKPOINT --name NAME",
        )
    if not is_of_function:
        own = _joined(own)
    dimension = next(iter(own.values()))[0].shape[1]
    others = {
        other: kept
        for other, stores in others.items()
        if (kept := [units for units in stores if units.shape[1] == dimension])
    }
    made = fitted(name, own, [units for stores in others.values() for units in stores])
    if made.measure is None:
        raise _cannot_tell(name, own, others)
    parts: HeldOutParts = "kinds of text" if is_of_function else "stores" if len(own) > 1 else "halves of a store"
    return replace(
        made,
        not_told_from=_not_told_from(made, own),
        held_out=held_out_counts(name, own, others),
        parts=parts,
        sources=tuple(sources),
        embaudit=version("embaudit"),
    )


def _joined(own: Mapping[str, Stores]) -> dict[str, Stores]:
    """Stores that have the same rows count as one."""
    names = list(own)
    owners = with_owners_joined(names, [np.concatenate(one) for one in own.values()], SAME_ROW, SAME_SHARE)
    joined: dict[str, list[np.ndarray]] = {}
    for name, owner in zip(names, owners, strict=True):
        joined.setdefault(owner, []).extend(own[name])
    return dict(joined)


def _not_told_from(made: Fingerprint, own: Mapping[str, Stores]) -> str:
    """Another model whose fingerprint takes all of these for its own."""
    known = [one for one in known_fingerprints()[0] if one.model != made.model]
    origins = [origin_of(np.concatenate(stores), known) for stores in own.values()]
    named = {one.best.fingerprint.model for one in origins if one and one.told == "named" and one.best}
    return named.pop() if len(named) == 1 and all(one and one.told == "named" for one in origins) else ""


def _cannot_tell(name: str, own: Mapping[str, Stores], others: Mapping[str, Stores]) -> MeasureError:
    tried = "; ".join(map(_tried, trials(own, [units for stores in others.values() for units in stores])))
    if len(own) < FEWEST_HELD_OUT:
        advice = "Name more stores that it built, of other subjects, or the checkpoint."
    elif others:
        advice = "A related model passes for it: without --other, both would be named."
    else:
        advice = "What a store was built by can still be told with the function: embaudit vectors STORE FUNCTION"
    return MeasureError(
        f"Cannot tell {name} from other models by its vectors alone: {tried}. {GAP:.1f} between the two are needed.",
        kept="No fingerprint was written.",
        next_step=advice,
    )


def _tried(trial: Trial) -> str:
    return f"by {WHAT[trial.measure]}, its own reach {trial.lowest:.2f}, and others up to {trial.highest:.2f}"


def told_of(made: Fingerprint) -> str:
    """What a fingerprint rests on, by what it tells its model, and what it does not know."""
    counted = made.held_out
    stores = f"{made.stores} {'store' if made.stores == 1 else 'stores'}"
    of = f"{made.owners} kinds of text" if made.parts == "kinds of text" else stores
    parts = [
        f"{made.model}: {made.dimension:,} numbers, from {made.rows:,} vectors of {of}.",
        f"It is known by {WHAT[made.measure or 'spread']}.",
    ]
    if made.parts == "halves of a store":
        parts.append("Its limit is that of one store's two halves; more stores of other subjects make a better one.")
    if counted and counted.own:
        parts.append(
            f"Left out one after another, {counted.named} of {counted.own} {made.parts} {_was(counted.named)} named."
        )
    if counted and counted.others:
        parts.append(f"Of {counted.others} of other models, {counted.wrongly} {_was(counted.wrongly)} named as it.")
    if made.not_told_from:
        parts.append(f"All of these vectors are those of {made.not_told_from}, too: both will be named.")
    return " ".join(parts)


def _was(number: int) -> str:
    return "was" if number == 1 else "were"
