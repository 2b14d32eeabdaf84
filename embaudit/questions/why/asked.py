"""The store's own search: the rank that it gives a row, and which of its settings would find it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from embaudit.questions.search.curve import wider_settings
from embaudit.questions.why.case import JUST_BEHIND, OfAnotherType, StoreAnswer
from embaudit.questions.why.gathered import ExpectedRow
from embaudit.stores.search import Settings, StoreSearch, Where
from embaudit.words.errors import CorpusError

# Results that are asked for where a row is not among the first k, and among which ranks are fused.
WIDE = 100


def as_rows_have_it(where: Where, kinds: Mapping[str, Mapping[type, object]]) -> Where:
    """The filter with values of a type that rows have: on a command line, a number is text."""
    return [
        (name, next(iter(own.values()))) if (own := kinds.get(name)) and type(value) not in own else (name, value)
        for name, value in where
    ]


def answers(
    search: StoreSearch, settings: Settings, where: Where, k: int, *, is_alone: bool
) -> Callable[[np.ndarray, ExpectedRow, bool], StoreAnswer]:
    """Asks for a row by a query; wider, or with the row's own values, where it should be found and is not.

    Args:
        is_alone: whether this is the only query: the least setting that finds its row is enough.
    """
    shown = ", ".join(f"{name} {value:,}" for name, value in settings.items())

    def rank(
        query: np.ndarray, row: str, most: int, own: Settings, kept: Where = where
    ) -> tuple[int | None, tuple[str, ...]]:
        ids = tuple(map(str, search.find(query, most, own, kept).ids))
        return (ids.index(row) + 1 if row in ids else None), ids

    def asked(query: np.ndarray, expected: ExpectedRow, is_owed: bool) -> StoreAnswer:
        row = str(expected.id)
        try:
            here, given = rank(query, row, k, settings)
            wide = here if here is not None else rank(query, row, max(WIDE, JUST_BEHIND * k), settings)[0]
            typed = None
            finds = []
            if here is None and is_owed:
                others = [
                    pair
                    for pair in zip(where, expected.where, strict=False)
                    if type(pair[0][1]) is not type(pair[1][1])
                ]
                if others and (found := rank(query, row, k, settings, expected.where)[0]) is not None:
                    (name, wanted), (_, has) = others[0]
                    typed = OfAnotherType(name, wanted, has, found)
                for one, said in () if typed else wider_settings(search, settings):
                    found, _ = rank(query, row, k, one)
                    if found is not None:
                        finds.append((said, found))
                        # Of many queries, one that finds more of them may be better.
                        if is_alone:
                            break
            return StoreAnswer(here, wide, tuple(finds), search.index, shown, given, typed=typed)
        except CorpusError as error:
            return StoreAnswer(index=search.index, settings=shown, failed=error.happened)

    return asked
