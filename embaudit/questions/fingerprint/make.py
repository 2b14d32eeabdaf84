"""Makes a user's fingerprint, or says why the model cannot be told from others by its vectors.

The vectors that a fingerprint is made of: of stores, or what a function gives for texts of the embedded sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version

import numpy as np

from embaudit.corpora.load import load_corpus
from embaudit.embedders.function import EmbeddingFunction
from embaudit.measures.quality.material import sample_material
from embaudit.questions.vectors.builder import known_fingerprints
from embaudit.questions.vectors.fingerprint import Fingerprint, HeldOutParts, origin_of
from embaudit.questions.vectors.fitted import (
    FEWEST_HELD_OUT,
    GAP,
    Stores,
    Trial,
    different_units,
    fitted,
    held_out_counts,
    trials,
    with_owners_joined,
)
from embaudit.questions.vectors.forms import unit_float32
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions, SeveralParts, StorePlace
from embaudit.stores.store import Store
from embaudit.words.errors import CorpusError, MeasureError

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


# Texts of each kind, evenly from the sample's.
MOST_TEXTS = 60


def sample_texts() -> dict[str, list[str]]:
    """Texts of the embedded sample by kind, which differ in subject, length and form."""
    [quality] = sample_material().collections
    queries = [*(one.text for one in load_corpus("msmarco-queries").texts), *quality.queries]
    kinds = {
        "sentences of Wikipedia": [one.text for one in load_corpus("wikipedia").texts],
        "passages": [one.text for one in load_corpus("msmarco").texts],
        "passages about few subjects": quality.documents,
        "long texts": [one.text for one in load_corpus("longdocs").texts],
        "sentences of pairs": [side for one in load_corpus("sts").pairs for side in (one.first, one.second)],
        "questions": queries,
    }
    return {kind: _evenly(list(dict.fromkeys(texts))) for kind, texts in kinds.items()}


def _evenly(texts: list[str]) -> list[str]:
    places = np.linspace(0, len(texts) - 1, min(MOST_TEXTS, len(texts))).astype(int)
    return [texts[place] for place in places]


def rows_of_function(function: EmbeddingFunction, progress: Callable[..., None]) -> dict[str, Stores]:
    """What a function gives for the sample's texts as documents, by kind: different rows at length 1.

    Raises:
        MeasureError: if it gives hardly a text a vector.
    """
    found: dict[str, Stores] = {}
    texts_by_kind = sample_texts()
    total = sum(map(len, texts_by_kind.values()))
    for kind, texts in texts_by_kind.items():
        vectors = function.encode(texts, "document").vectors
        lengths = np.linalg.norm(vectors, axis=1)
        rows = np.unique(unit_float32(vectors[np.isfinite(lengths) & (lengths > 0)]), axis=0)
        if len(rows) > len(texts) / 2:
            found[kind] = [rows.astype(np.float64)]
        progress("texts encoded", len(texts), total)
    if len(found) < len(texts_by_kind):
        missing = ", ".join(kind for kind in texts_by_kind if kind not in found)
        raise MeasureError(
            f"{function.name} gives fewer than half of the sample's texts a vector of their own: {missing}.",
            kept="No fingerprint was written.",
            next_step=f"See what is wrong with it: embaudit check {function.typed}",
        )
    return found


def rows_of_store(named: str, options: ReadOptions, seed: int) -> list[np.ndarray]:
    """Of each collection of a store, different rows at length 1, drawn at random.

    Raises:
        CorpusError: if it holds no vectors of floats.
    """
    found = [units for one in collections_of(named, options) if (units := different_units(one, seed)) is not None]
    if not found:
        raise CorpusError(
            f"{StorePlace(named).shown} holds no vectors of floating-point numbers.",
            kept="No fingerprint was written.",
            next_step="A fingerprint is made of vectors as the model gave them: not of codes, and not of an empty "
            "store.",
        )
    return found


def collections_of(named: str, options: ReadOptions) -> Iterator[Store]:
    """A store; each of its collections, if it has several and none is named."""
    try:
        yield open_store(named, options)
    except SeveralParts as several:
        for name in several.names:
            yield open_store(named, replace(options, part=name))


def of_one_dimension(by_source: Mapping[str, list[np.ndarray]]) -> dict[str, Stores]:
    """The rows that have the usual number of dimensions of the first source.

    Raises:
        CorpusError: if a source has none of so many numbers.
    """
    first = next(iter(by_source.values()))
    dimensions = [units.shape[1] for units in first]
    usual = max(dimensions, key=lambda D: sum(len(units) for units in first if units.shape[1] == D))
    kept: dict[str, Stores] = {
        name: [units for units in some if units.shape[1] == usual] for name, some in by_source.items()
    }
    for name, some in kept.items():
        if not some:
            raise CorpusError(
                f"The vectors of {name} have {by_source[name][0].shape[1]:,} numbers, and those of "
                f"{next(iter(by_source))} {usual:,}: they are of different models.",
                kept="No fingerprint was written.",
                next_step="Make a fingerprint of each model.",
            )
    return kept
