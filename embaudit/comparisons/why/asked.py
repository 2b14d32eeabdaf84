"""The store's own search: the rank that it gives a row, and which of its settings would find it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from embaudit.comparisons.search.wider import wider_settings
from embaudit.comparisons.why.case import StoreAnswer
from embaudit.errors import CorpusError
from embaudit.stores.search import Settings, StoreSearch, Where

WIDE = 100


def answers(
    search: StoreSearch, settings: Settings, where: Where, k: int
) -> Callable[[np.ndarray, str, bool], StoreAnswer]:
    """Asks for a row by a query; wider where the row should be found and is not."""
    shown = ", ".join(f"{name} {value:,}" for name, value in settings.items())

    def rank(query: np.ndarray, row: str, most: int, own: Settings) -> tuple[int | None, tuple[str, ...]]:
        ids = tuple(map(str, search.find(query, most, own, where).ids))
        return (ids.index(row) + 1 if row in ids else None), ids

    def asked(query: np.ndarray, row: str, is_owed: bool) -> StoreAnswer:
        try:
            here, given = rank(query, row, k, settings)
            wide = here if here is not None else rank(query, row, max(WIDE, k), settings)[0]
            finds = None
            if here is None and is_owed:
                for one, said in wider_settings(search, settings):
                    found, _ = rank(query, row, k, one)
                    if found is not None:
                        finds = (said, found)
                        break
            return StoreAnswer(here, wide, finds, search.index, shown, given)
        except CorpusError as error:
            return StoreAnswer(index=search.index, settings=shown, failed=error.happened)

    return asked
