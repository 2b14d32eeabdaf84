"""Opens a place with vectors: the kind that recognises it reads it, and the columns that are meant become a store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from embaudit.stores.columns import column_named, find_columns, with_spread
from embaudit.stores.copies import changed, signature
from embaudit.stores.decode import Decode, decoder_of
from embaudit.stores.kinds import kind_by_content, kind_of, only_file_of, refusal
from embaudit.stores.nested import listed, with_json
from embaudit.stores.pieces import with_pieces
from embaudit.stores.place import DRAWN, POINTER, ReadOptions, StorePlace
from embaudit.stores.search import SearchedColumns, StoreSearch, typed
from embaudit.stores.store import LOOKED_AT, RowBatch, Store, StoreTable, Values
from embaudit.stores.template import Template, is_template
from embaudit.stores.texts import with_texts
from embaudit.stores.written import with_single
from embaudit.words.errors import CorpusError, UsageError
from embaudit.words.sentences import cut, first_of

NOTHING = ReadOptions()
SHOWN = 60


def open_store(named: str | Path, asked: ReadOptions = NOTHING) -> Store:
    """Open stored vectors, wherever they are kept.

    Args:
        named: a file, a folder, or an address (docs/vectors.md lists them).
        asked: what the user said about how they are to be read.

    Raises:
        UsageError: if it is nothing that is read, or it is unclear which columns, part or numbers are meant.
        CorpusError: if a file is missing or damaged, or a store does not answer.
    """
    place = StorePlace(str(named))
    kind = kind_of(place)
    if kind is None and (only := only_file_of(place)) is not None:
        place, kind = only
    kind = kind or kind_by_content(place)
    if kind is None or (place.is_compressed and not kind.takes_gzip) or place.head.startswith(POINTER):
        raise refusal(place)
    try:
        table = kind.open(place, asked)
    except CorpusError as error:
        if not (pointers := place.pointers()):
            raise
        are = "are pointers of Git LFS, not the files themselves" if pointers[1:] else "is a pointer of Git LFS"
        raise CorpusError(
            f"{place.shown} cannot be read: {first_of(pointers, 3)} in it {are}.",
            kept=error.kept,
            next_step="Fetch it: git lfs pull",
        ) from error
    if asked.most is not None and table.draw is not None and (table.rows or 0) > asked.most and not asked.where:
        table = table.draw(DRAWN, asked.seed)
    if place.is_path and not table.is_pinned:
        table = _unchanged(table, place.path)
    return store_of(table, asked, kind.name)


def store_of(table: StoreTable, asked: ReadOptions, kind: str = "") -> Store:
    """The store that a table is, by the columns that were found or named."""
    table = with_spread(with_single(with_json(with_pieces(table))))
    if asked.texts is not None:
        table = with_texts(table, asked.texts)
    is_column = asked.text is None or asked.text in table.columns or not is_template(asked.text)
    template = None if is_column or asked.text is None else Template.of(asked.text)
    if template is not None:
        template = template.renamed(lambda name: column_named(table, name))
    columns = find_columns(table, replace(asked, text=None) if template is not None else asked)
    named = [(column_named(table, name), value) for name, value in asked.where]
    typed_where = tuple((name, typed(table.columns.get(name), name, value)) for name, value in named)
    # "4" is 4.0 where the field holds numbers.
    where = [(name, str(value)) for name, value in typed_where]
    numbers, decode = decoder_of(columns["vector"], table.columns[columns["vector"]], asked)
    own = set(columns.values())
    fields = tuple(
        name for name, column in table.columns.items() if name not in own and column.what in ("text", "other")
    )

    def batches(others: Sequence[str] = ()) -> Iterator[RowBatch]:
        yield from _batches(table, columns, decode, others, where)

    store = Store(
        shown=table.shown,
        columns=columns,
        numbers=numbers,
        batches=batches,
        rows=table.rows if not where else None,
        fields=fields,
        kind=kind,
        metric=table.metric,
        notes=(*table.notes, *_drawn_note(table)),
        rounded=table.rounded,
        drawn=table.drawn,
        search=None if table.search is None else partial(_opened_search, table, columns),
        where=typed_where,
    )
    return store if template is None else embedding(store, template)


def _drawn_note(table: StoreTable) -> tuple[str, ...]:
    drawn = table.drawn
    if drawn is None:
        return ()
    return (
        f"{drawn.read:,} of {drawn.rows:,} rows were read, in {len(drawn.starts):,} of {drawn.groups:,} row groups "
        "drawn at random: counts are of these, and rows are numbered among them; shares of all rows have intervals "
        "over the groups. --whole reads all of them.",
    )


def _opened_search(table: StoreTable, columns: Mapping[str, str]) -> StoreSearch:
    assert table.search is not None
    if "id" not in columns:
        raise UsageError(
            f"{table.shown} has no ids by which the results of a search could be told apart.",
            next_step="Name the column that tells its rows apart: --id COLUMN",
        )
    return table.search(SearchedColumns(columns["vector"], columns["id"], table.columns))


def embedding(store: Store, template: Template) -> Store:
    """The same store, of which each row's text is what the template makes of its fields."""

    def batches(others: Sequence[str] = ()) -> Iterator[RowBatch]:
        own = (store.columns.get("text"), store.columns.get("id"))
        made = [name for name in template.fields if name not in own]
        for batch in store.batches(list(dict.fromkeys([*others, *made]))):
            fields = dict(batch.fields)
            if batch.texts is not None:
                fields[store.columns["text"]] = batch.texts
            if batch.ids is not None:
                fields[store.columns["id"]] = batch.ids
            texts = template.texts(fields, batch.rows)
            yield replace(batch, texts=texts, fields={name: fields[name] for name in others})

    return replace(store, columns={**store.columns, "text": template.written}, batches=batches, template=template)


def _unchanged(table: StoreTable, path: Path) -> StoreTable:
    """The table, of which a pass ends with an error if what it reads changed since it was opened."""
    before = signature([path])

    def read(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        yield from table.read(names)
        if signature([path]) != before:
            raise changed(table.shown)

    return replace(table, read=read)


def _batches(
    table: StoreTable,
    columns: Mapping[str, str],
    decode: Decode,
    others: Sequence[str],
    where: Sequence[tuple[str, str]],
) -> Iterator[RowBatch]:
    names = list(dict.fromkeys([*columns.values(), *others, *(name for name, _ in where)]))
    start, has_any, unread = 0, False, None
    for batch in table.read(names):
        rows = len(batch[columns["vector"]])
        if where:
            kept = [row for row in range(rows) if all(str(one[row]) == value for one, value in _tested(batch, where))]
            batch = {name: _taken(values, kept) for name, values in batch.items()}
            rows = len(kept)
        if not rows:
            continue
        vectors = decode(batch[columns["vector"]])
        if vectors:
            has_any = True
        elif unread is None:
            unread = _first_value(batch[columns["vector"]])
        yield RowBatch(
            start,
            rows,
            vectors,
            [_as_text(one) for one in listed(batch[columns["text"]])] if "text" in columns else None,
            listed(batch[columns["id"]]) if "id" in columns else None,
            {name: listed(batch[name]) for name in others},
        )
        start += rows
    if not has_any and unread is not None:
        raise CorpusError(
            f"No value of column {columns['vector']!r} of {table.shown} is a vector that can be read: the first is "
            f"{cut(repr(unread), SHOWN)}.",
            kept="Nothing was compared.",
            next_step="Write each as a list of numbers, or name the column of vectors: --vector COLUMN",
        )


def _first_value(values: Values) -> object | None:
    """The first that is more than nothing, of rows of which none has a vector."""
    some = values[:LOOKED_AT]
    return next((one for one in listed(some) if one is not None and hasattr(one, "__len__") and len(one)), None)


def _tested(batch: Mapping[str, Values], where: Sequence[tuple[str, str]]) -> list[tuple[Sequence[object], str]]:
    return [(listed(batch[name]), value) for name, value in where]


def _taken(values: Values, kept: Sequence[int]) -> Values:
    if hasattr(values, "take"):
        import numpy as np

        return values[kept] if isinstance(values, np.ndarray) else values.take(kept)
    return [values[row] for row in kept]


def _as_text(value: object) -> str | None:
    return value if isinstance(value, str) else None
