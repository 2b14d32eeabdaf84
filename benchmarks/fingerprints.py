"""``python -m benchmarks fingerprints DIR --models FILE``: whether vectors alone tell who built a store.

Each file or folder in DIR is a store. FILE says of each whose it is and which model its application's code names:
``{"STORE": {"owner": "…", "model": "all-MiniLM-L6-v2"}, …}``, null where it names none or several. Every owner's stores
are asked about with fingerprints and limits that were made without them. ``--write`` writes those of all owners.
``--shipped`` asks with those that come with embaudit as well, as they are: the stores of FILE then add models to them.
Nothing of a store is printed or written but counts, and what at least five owners' vectors have in common.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.field import only_child
from embaudit.questions.vectors.builder import shipped_fingerprints, write_fingerprints
from embaudit.questions.vectors.fingerprint import Fingerprint, HeldOutCounts, Origin, origin_of
from embaudit.questions.vectors.fitted import FEWEST_OWNERS, different_units, fitted, with_owners_joined
from embaudit.statistics import score_share
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions, SeveralParts
from embaudit.words.errors import EmbauditError

# Cosine of two rows of one text by one model: a tutorial's, behind another path or header.
SAME_ROW = 0.97
# Rows of a store that is changed as a whole.
FEWEST_CHANGED = 10
# Models that others may pass for.
NOT_TOLD_FROM = {
    "all-MiniLM-L6-v2": "a model trained on from it or from its base, nreimers/MiniLM-L6-H384-uncased",
    "gemini-embedding-001": "gemini-embedding-exp-03-07, its preview",
}
# The same model under another name: its stores set no limit.
PREVIEWS = {"gemini-embedding-exp-03-07": "gemini-embedding-001"}
RANDOM_STORES = 100


@dataclass(frozen=True)
class FieldStore:
    """A store, or one of its collections.

    Attributes:
        owner: with whoever has the same rows: a tutorial's text is no evidence of another owner's.
        model: as the code names it; empty if it does not.
        units: (n, D) different rows, at length 1.
    """

    store: str
    owner: str
    model: str
    units: np.ndarray


def read_stores(folder: Path, models: Mapping[str, Any]) -> Iterator[FieldStore]:
    """The stores of a folder that can be read and hold vectors of floats."""
    for place in sorted(one for one in folder.iterdir() if one.name in models):
        label = models[place.name]
        for part in _parts(only_child(place)):
            try:
                units = different_units(open_store(str(only_child(place)), replace(ReadOptions(), part=part)))
            except EmbauditError:
                continue
            if units is not None:
                yield FieldStore(place.name, label["owner"], label["model"] or "", units)


def _parts(place: Path) -> tuple[str | None, ...]:
    try:
        open_store(str(place), ReadOptions())
    except SeveralParts as several:
        return tuple(several.names)
    except EmbauditError:
        return ()
    return (None,)


def with_joined_owners(stores: Sequence[FieldStore]) -> list[FieldStore]:
    """Owners who share a row become one."""
    owners = with_owners_joined([one.owner for one in stores], [one.units for one in stores], SAME_ROW)
    return [replace(one, owner=owner) for one, owner in zip(stores, owners, strict=True)]


def fingerprints_of(stores: Sequence[FieldStore], fewest: int) -> list[Fingerprint]:
    """Of each model that at least so many owners have used."""
    made = []
    for model, dimension in sorted({(one.model, one.units.shape[1]) for one in stores if one.model}):
        alike = [one for one in stores if one.model and one.units.shape[1] == dimension]
        own: dict[str, list[np.ndarray]] = {}
        for one in alike:
            if one.model == model:
                own.setdefault(one.owner, []).append(one.units)
        if len(own) >= fewest:
            others = [one.units for one in alike if model not in (one.model, PREVIEWS.get(one.model))]
            made.append(replace(fitted(model, own, others), not_told_from=NOT_TOLD_FROM.get(model, "")))
    return made


@dataclass(frozen=True)
class Answer:
    """What was said of a held-out store."""

    store: FieldStore
    origin: Origin | None
    change: str = ""

    @property
    def told(self) -> str:
        return "no fingerprint" if self.origin is None else self.origin.told

    @property
    def named(self) -> str:
        is_named = self.origin is not None and self.origin.told in ("named", "some rows")
        return self.origin.best.fingerprint.model if is_named and self.origin is not None and self.origin.best else ""


def held_out(stores: Sequence[FieldStore], shipped: Sequence[Fingerprint] = ()) -> Iterator[Answer]:
    """Each store, and each of its changed copies, by the fingerprints of all others' owners: of four and more.

    Args:
        shipped: that are asked as they are, in place of those of their models.
    """
    rng = np.random.default_rng(0)
    for owner in sorted({one.owner for one in stores}):
        rest = [one for one in stores if one.owner != owner]
        known = beside(shipped, fingerprints_of(rest, FEWEST_OWNERS - 1))
        for one in stores:
            if one.owner != owner:
                continue
            yield Answer(one, origin_of(one.units, known))
            if one.model:
                for change, vectors in changed(one.units, rng):
                    yield Answer(one, origin_of(vectors, known), change)


def beside(shipped: Sequence[Fingerprint], made: Sequence[Fingerprint]) -> list[Fingerprint]:
    """Those that are shipped, and of other models those that were made."""
    names = {one.model for one in shipped}
    return [*shipped, *(one for one in made if one.model not in names)]


def changed(units: np.ndarray, rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    """What happens to vectors behind a model."""
    n, D = units.shape
    steps = np.abs(units).max(axis=1, keepdims=True) / 127
    yield "float16", units.astype(np.float16)
    yield "bfloat16", (units.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    yield "four decimals", units.round(4)
    yield "codes of 8 bits, turned back", np.rint(units / steps) * steps
    yield "another length", units * rng.uniform(0.5, 20, (n, 1))
    yield "noise of a tenth of the length", units + 0.1 * rng.standard_normal((n, D)) / D**0.5
    if n >= FEWEST_CHANGED:
        yield "mean taken off", units - units.mean(axis=0)
        yield "half of the rows at random", np.concatenate([units[: n // 2], rng.standard_normal((n - n // 2, D))])
    yield "dimensions in another order", units[:, rng.permutation(D)]


def with_counts(made: Iterable[Fingerprint], answers: Sequence[Answer]) -> Iterator[Fingerprint]:
    """The fingerprints with how they did on held-out owners' stores."""
    for one in made:
        own = [answer for answer in answers if answer.store.model == one.model]
        # Of as many numbers: any other is told by that.
        others = [
            answer
            for answer in answers
            if answer.store.units.shape[1] == one.dimension
            and answer.store.model not in ("", one.model)
            and PREVIEWS.get(answer.store.model) != one.model
        ]
        named, wrongly = (sum(answer.named == one.model for answer in some) for some in (own, others))
        yield replace(one, held_out=HeldOutCounts(named, len(own), wrongly, len(others)))


def counted(answers: Sequence[Answer], known: Sequence[Fingerprint]) -> Iterator[str]:
    """A table: by the model that the code names, what was said."""
    yield "| model, by the code | stores | owners | named right | named wrongly | nobody known | cannot tell |"
    yield "|---|---|---|---|---|---|---|"
    names = {one.model for one in known}
    groups: dict[str, list[Answer]] = {}
    for answer in answers:
        model = answer.store.model or "none, or several"
        if model not in names and answer.store.model:
            model = "a model without a fingerprint"
        groups.setdefault(model, []).append(answer)
    for model, some in sorted(groups.items(), key=lambda item: (item[0] not in names, item[0])):
        right = sum(answer.named == answer.store.model != "" for answer in some)
        wrongly = sum(answer.named not in ("", answer.store.model) for answer in some)
        told = Counter(answer.told for answer in some if not answer.named)
        owners = len({answer.store.owner for answer in some})
        unnamed = f"{told['nobody known'] + told['no fingerprint']} | {told['cannot tell']}"
        if model in names:
            yield f"| {model} | {len(some)} | {owners} | {_share(right, len(some))} | {wrongly} | {unnamed} |"
        elif model.startswith("a model"):
            yield f"| {model} | {len(some)} | {owners} | – | {_share(wrongly, len(some))} | {unnamed} |"
        else:
            named = ", ".join(f"{name} {count}" for name, count in Counter(a.named for a in some if a.named).items())
            yield f"| {model} | {len(some)} | {owners} | {named} | – | {unnamed} |"


def counted_by_change(answers: Sequence[Answer], names: Collection[str]) -> Iterator[str]:
    """A table: of stores whose model has a fingerprint, what is said after a change."""
    yield "| changed behind the model | stores | named right | named in part | wrongly | nobody known | cannot tell |"
    yield "|---|---|---|---|---|---|---|"
    groups: dict[str, list[Answer]] = {}
    for answer in answers:
        if answer.store.model in names and answer.change:
            groups.setdefault(answer.change, []).append(answer)
    for change, some in groups.items():
        wrongly = sum(answer.named not in ("", answer.store.model) for answer in some)
        told = Counter(answer.told for answer in some if answer.named in ("", answer.store.model))
        named = " | ".join(f"{told[name]}" for name in ("named", "some rows"))
        yield f"| {change} | {len(some)} | {named} | {wrongly} | {told['nobody known']} | {told['cannot tell']} |"


def of_random_vectors(known: Sequence[Fingerprint]) -> Counter[str]:
    """What is said of stores of random directions: a common one, and each dimension's own spread."""
    rng = np.random.default_rng(0)
    told: Counter[str] = Counter()
    for dimension in sorted({one.dimension for one in known}):
        for _ in range(RANDOM_STORES):
            rows = int(rng.integers(1, 60))
            spread = np.exp(0.3 * rng.standard_normal(dimension))
            vectors = rng.standard_normal(dimension) * rng.uniform(0, 2) + spread * rng.standard_normal(
                (rows, dimension)
            )
            origin = origin_of(vectors, known)
            told[f"{dimension:,} numbers: {'no fingerprint' if origin is None else origin.told}"] += 1
    return told


def _share(hits: int, trials: int) -> str:
    low, high = score_share(hits, trials)
    return f"{hits} of {trials} [{low:.0%}, {high:.0%}]"


def main(arguments: Sequence[str]) -> None:
    """Ask about every store with the fingerprints of other owners, print the counts; write those of all if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks fingerprints", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument(
        "--models", type=Path, required=True, metavar="FILE", help="whose each store is, and by which model"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the fingerprints of all owners")
    parser.add_argument("--shipped", action="store_true", help="ask with those that come with embaudit, too")
    chosen = parser.parse_args(arguments)
    if not chosen.folder.is_dir():
        parser.error(f"there is no folder {chosen.folder}")
    models = json.loads(chosen.models.read_text("utf-8"))
    stores = with_joined_owners(list(read_stores(chosen.folder, models)))
    shipped = shipped_fingerprints() if chosen.shipped else ()
    said = list(held_out(stores, shipped))
    answers = [one for one in said if not one.change]
    made = list(with_counts(beside(shipped, fingerprints_of(stores, FEWEST_OWNERS))[len(shipped) :], answers))
    known = [*shipped, *made]
    for one in made:
        print(
            f"{one.model}: {one.owners} owners, {one.stores} stores, {one.rows:,} rows; by {one.measure}: limit "
            f"{one.limit:.2f}, others at most {one.highest_other:.2f}"
        )
    print("\n" + "\n".join(counted(answers, known)))
    print("\n" + "\n".join(counted_by_change(said, {one.model for one in known})) + "\n")
    for told, count in of_random_vectors(known).items():
        print(f"random vectors, {told}: {count}")
    if chosen.write is not None:
        able = [one for one in known if one.measure is not None]
        write_fingerprints(sorted(able, key=lambda one: one.model.lower()), chosen.write)
