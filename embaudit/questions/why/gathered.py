"""One pass over a store: the rows that should be found, and the texts of all, by which words are searched.

Of a query's words, rare ones count more, and those that every row has do not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log

import numpy as np

from embaudit.measures.quality.measured import words_of
from embaudit.questions.vectors.profile import Profile, Progress, profile_of
from embaudit.stores.search import Where
from embaudit.stores.store import RowBatch, Store

# Between the words of a name: q3_report-final.pdf, RefundPolicy.
JOINED = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[^\W\d_])(?=\d)|[\W_]+")


@dataclass(frozen=True)
class WordWeights:
    """What a store's rows make of words.

    Attributes:
        rows: that have a text.
        having: of these, those that have a word; words of queries alone.
    """

    rows: int
    having: Mapping[str, int]

    def weight(self, word: str) -> float:
        """0 for a word of a tenth of the rows or more."""
        count = self.having.get(word, 0)
        return 0.0 if 10 * count >= self.rows else log((1 + self.rows) / (1 + count))

    def share(self, query: str, words: Collection[str]) -> float:
        """Of a query's words, by weight, those that are among others; 0 if none counts."""
        weights = {word: self.weight(word) for word in words_of(query)}
        total = sum(weights.values())
        return sum(weight for word, weight in weights.items() if word in words) / total if total else 0.0


def words_in_name(name: str) -> set[str]:
    """The words of a name that are joined by case, digits, dots, dashes or underscores, and the name's own."""
    return {one.lower() for one in JOINED.split(name) if one} | set(words_of(name))


# Characters of texts that are kept; of a store with more, words are not searched.
MOST_CHARACTERS = 2_000_000_000


@dataclass(frozen=True)
class ExpectedRow:
    """A row that should be found.

    Attributes:
        number: of the row, from 0.
        vector: (D,) as stored; None if it has none.
        passes: whether the filter keeps it.
        where: the filter with the row's own values: what is written alike may be a number or a text.
    """

    number: int
    id: str | None
    text: str | None
    vector: np.ndarray | None
    passes: bool = True
    where: Where = ()


@dataclass(frozen=True)
class StoreScan:
    """What one pass over a store shows.

    Attributes:
        rows: by what was expected, the rows that have it as their id, or else as their text.
        texts, ids: of all rows, by number; None if the store has none, or too many.
        passing: numbers of the rows that the filter keeps; None without one.
        kinds: by field of the filter, the types that its value has in these rows, with a value of each.
    """

    profile: Profile
    rows: dict[str, tuple[ExpectedRow, ...]]
    texts: list[str] | None
    ids: list[str] | None
    passing: np.ndarray | None
    kinds: Mapping[str, Mapping[type, object]] = field(default_factory=dict)

    def holding(self, text: str) -> list[int]:
        """Numbers of rows whose text holds another one, or is held by it."""
        own = " ".join(text.split())
        found = []
        for number, one in enumerate(self.texts or ()):
            other = " ".join(one.split())
            if len(other) >= SHORTEST and (other in own or (len(own) >= SHORTEST and own in other)):
                found.append(number)
        return found


# Characters of a text that is looked for in others.
SHORTEST = 30


def gather(
    store: Store,
    expected: Sequence[str],
    where: Where,
    seed: int,
    progress: Progress = lambda rows: None,
    numbers: Mapping[str, int] | None = None,
) -> StoreScan:
    """Read a store once.

    Args:
        expected: ids, or texts.
        where: the filter; all rows are read, whatever it keeps.
        numbers: of rows by ids that the store has not: those of a file of its texts.
    """
    wanted = dict.fromkeys(expected)
    stripped = {" ".join(one.split()): one for one in wanted}
    # Most texts are told by their first word.
    first = {one.partition(" ")[0] for one in stripped}
    by_id: dict[str, list[ExpectedRow]] = {}
    by_text: dict[str, list[ExpectedRow]] = {}
    by_number: dict[str, list[ExpectedRow]] = {}
    named = {number: one for one, number in (numbers or {}).items()}
    texts: list[str] = []
    ids: list[str] = []
    characters = 0
    names = [name for name, _ in where]
    passing: list[int] = []
    kinds: dict[str, dict[type, object]] = {name: {} for name in names}

    def observed(fields: Sequence[str] = ()) -> Iterator[RowBatch]:
        nonlocal characters
        for batch in store.batches([*fields, *names]):
            for place in range(batch.rows):
                own = None if batch.ids is None else str(batch.ids[place])
                text = None if batch.texts is None else batch.texts[place]
                if where and _passes(batch, place, where):
                    passing.append(batch.start + place)
                    for name in names:
                        kinds[name].setdefault(type(batch.fields[name][place]), batch.fields[name][place])
                if batch.start + place in named:
                    by_number[named[batch.start + place]] = [_row(batch, place, where)]
                if own in wanted:
                    by_id.setdefault(str(own), []).append(_row(batch, place, where))
                elif text and _first_word(text) in first and (same := stripped.get(" ".join(text.split()))) is not None:
                    by_text.setdefault(same, []).append(_row(batch, place, where))
            if batch.ids is not None:
                ids.extend(map(str, batch.ids))
            if batch.texts is not None and characters <= MOST_CHARACTERS:
                texts.extend(text or "" for text in batch.texts)
                characters += sum(len(text or "") for text in batch.texts)
            yield batch

    profile = profile_of(replace(store, batches=observed), seed, progress)
    has_texts = store.has_texts and characters <= MOST_CHARACTERS
    rows = {one: tuple(by_id.get(one) or by_text.get(one) or by_number.get(one) or ()) for one in wanted}
    kept = np.array(passing, np.int64) if where else None
    return StoreScan(profile, rows, texts if has_texts else None, ids or None, kept, kinds)


def _first_word(text: str) -> str:
    return next(iter(text.split(None, 1)), "")


def _row(batch: RowBatch, place: int, where: Where) -> ExpectedRow:
    vector = None
    for places, vectors in batch.vectors.values():
        at = np.flatnonzero(places == place)
        if len(at):
            vector = np.asarray(vectors[at[0]])
    return ExpectedRow(
        batch.start + place,
        None if batch.ids is None else str(batch.ids[place]),
        None if batch.texts is None else batch.texts[place],
        vector,
        _passes(batch, place, where),
        tuple((name, batch.fields[name][place]) for name, _ in where),
    )


def _passes(batch: RowBatch, place: int, where: Where) -> bool:
    """Whether the filter keeps a row: what is written alike is alike."""
    return all(str(batch.fields[name][place]) == str(value) for name, value in where)
