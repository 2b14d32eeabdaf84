"""What questions about stored vectors share: a store that is opened before its function is, and by its function."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.vectors.report import dimension_of
from embaudit.questions.vectors.text_column import text_column
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions, SeveralFit, SeveralTexts
from embaudit.stores.store import Store


def opened_first(named: str, asked: ReadOptions) -> Store | None:
    """A store, so that a place that is wrong is told before a function is opened, which may take a while.

    None if several columns or types of numbers may be meant, of which a function's dimension may tell the right one.
    """
    with suppress(SeveralFit):
        return open_store(named, asked)
    return None


def opened_for(function: EmbeddingFunction | None, named: str, asked: ReadOptions, first: Store | None = None) -> Store:
    """The store as it was opened first, or by the dimension of a function, and by the texts whose vectors it gives."""
    if function is None:
        return first or open_store(named, asked)
    asked = replace(asked, dimension=dimension_of(function))
    try:
        store = first or open_store(named, asked)
    except SeveralTexts as several:
        # Read by the first of them, the others are fields.
        store = open_store(named, replace(asked, text=several.names[0]))
        found = text_column(store, function, several.names)
        if found is None:
            raise
        return open_store(named, replace(asked, text=found))
    if store.has_texts or asked.text is not None or asked.texts is not None:
        return store
    found = text_column(store, function)
    return store if found is None else open_store(named, replace(asked, text=found))


def with_filter(
    function: EmbeddingFunction | None, named: str, asked: ReadOptions, first: Store | None
) -> tuple[Store, Store | None]:
    """The whole store, and the same with the filter that was asked for; None without one.

    Args:
        first: the whole one, if it was opened first.
    """
    filtered = opened_for(function, named, asked) if asked.where else None
    return opened_for(function, named, replace(asked, where=()), first), filtered
