"""An index beside its texts, as applications keep them: a folder with one file of vectors, and one of chunks.

Which file holds the texts is told by how many rows it has: as many as the index. A pickle is read of which nothing is
run, plain values and LangChain's documents alone.
"""

from __future__ import annotations

import pickle
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from embaudit.stores.columns import SPREAD, TEXTS, find_columns, with_spread
from embaudit.stores.copies import copied, read_only
from embaudit.stores.faiss import is_faiss
from embaudit.stores.index_files import is_hnswlib
from embaudit.stores.json import is_json
from embaudit.stores.json_rows import of_json
from embaudit.stores.nested import flat, is_prose, listed
from embaudit.stores.pickled import DOCUMENTS, InertObject, OnlyThese, read_array, stand_ins
from embaudit.stores.place import ReadOptions, StorePlace, part_meant, quoted
from embaudit.stores.sqlite import MAGIC
from embaudit.stores.store import StoreKind, StoreTable
from embaudit.stores.tensors import PICKLES_SUFFIXES
from embaudit.stores.texts import with_fields
from embaudit.words.errors import EmbauditError, UsageError
from embaudit.words.sentences import first_of

MOST_FILES, MOST_BYTES, DEEPEST, NAMED = 200, 1 << 28, 3, 4
LONGEST, START = 1 << 20, 256
# Lists of numbers in a list, and nothing else.
MATRIX = re.compile(rb"\s*\[\s*\[\s*-?\d[^\"{]*\Z")
# A matrix beside these is no index of the folder: they may hold vectors themselves.
TABLES = (".parquet", ".arrow", ".feather")
# What people call the file of their texts; the first of these is meant where several have as many rows.
CALLED = ("chunk", "text", "doc", "passage", "meta", "content", "corpus", "record", "map")
LINES = (".txt",)


def index_files(place: StorePlace) -> list[Path]:
    """The files of a folder that hold vectors and no texts: indexes, or else matrices of NumPy's."""
    if not place.is_folder:
        return []
    files = [path for path in sorted(place.path.iterdir())[:MOST_FILES] if path.is_file() and path.name[0] != "."]
    found = [path for path in files if is_faiss(own := StorePlace(str(path))) or is_hnswlib(own)]
    if found or any(path.suffix in TABLES for path in files):
        return found
    return [path for path in files if _is_matrix(path)]


def _is_matrix(path: Path) -> bool:
    """Whether a file holds numbers alone: NumPy's, safetensors, or lines of them, as TensorFlow's projector has."""
    if path.suffix == ".safetensors":
        return "model" not in path.name and not (path.parent / "config.json").exists()
    with suppress(OSError, ValueError):
        if path.suffix == ".npy":
            found = np.load(path, mmap_mode="r", allow_pickle=False)
            return found.ndim == 2 and found.shape[1] > 1 and found.dtype.kind in "fiu"
        if path.suffix == ".json":
            with path.open("rb") as stream:
                return MATRIX.match(stream.read(START)) is not None
        if path.suffix == ".tsv":
            with path.open("rb") as stream:
                numbers = stream.readline(LONGEST).split(b"\t")
            return len(numbers) >= SPREAD and bool(np.isfinite(np.array(numbers, dtype=float)).all())
    return False


def row_count(table: StoreTable) -> int:
    return table.rows if table.rows is not None else sum(len(one[table.vector]) for one in table.read([table.vector]))


def is_beside(place: StorePlace) -> bool:
    """Whether a folder has an index and something beside it."""
    found = index_files(place)
    return bool(found) and (len(found) > 1 or sum(path.is_file() for path in place.path.iterdir()) > 1)


def open_folder(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The rows of the index, with what stands beside them; ``--from NAME`` says which of several."""
    files = {path.name: path for path in index_files(place)}
    path = files[part_meant(list(files), asked.part, place.shown, "index")]
    kind = _kind_of(path)
    assert kind is not None
    table = with_spread(kind.open(StorePlace(str(path)), replace(asked, part=None)))
    if not table.vector:
        table = replace(table, vector=find_columns(table, replace(asked, text=None, id=None))["vector"])
    return table if asked.texts is not None else with_texts_beside(table, path, list(files.values()))


def _kind_of(path: Path) -> StoreKind | None:
    from embaudit.stores.kinds import kind_of

    return kind_of(StorePlace(str(path)))


def with_texts_beside(table: StoreTable, index: Path, but: Sequence[Path] = ()) -> StoreTable:
    """The table of an index with the texts and fields of the file beside it that has as many rows."""
    rows = row_count(table)
    counts: list[str] = []
    closed: list[str] = []
    matching: list[tuple[tuple[bool, int], Path, list[Mapping[str, Any]]]] = []
    for path in sorted(index.parent.iterdir())[:MOST_FILES]:
        if not path.is_file() or path.name.startswith(".") or path in but or path.stat().st_size > MOST_BYTES:
            continue
        try:
            held = list(_records_in(path, rows))
        except (EmbauditError, OSError):
            closed += [path.name] if path.suffix in PICKLES_SUFFIXES else []
            continue
        own = next((one for one in held if len(one) == rows), None)
        if own is not None and _has_text(own):
            matching.append(((not _has_text(own, TEXTS), _place_of_name(path)), path, own))
        elif held and (longest := max(held, key=len)) and _has_text(longest):
            counts.append(f"{path.name} ({len(longest):,})")
    if not matching:
        return replace(table, notes=(*table.notes, *_unmatched(rows, counts, closed)))
    _, path, records = min(matching, key=lambda one: (one[0], one[1].name))
    note = (
        f"Texts and fields are those of {path.name} beside it, row by row: both have {rows:,} rows. If they are of "
        "other rows, name their file: --texts FILE"
    )
    return with_fields(replace(table, notes=(*table.notes, note)), records)


def _place_of_name(path: Path) -> int:
    """Where what it is called stands in the list: chunks before metadata."""
    return next((place for place, word in enumerate(CALLED) if word in path.name.lower()), len(CALLED))


def _unmatched(rows: int, counts: list[str], closed: list[str]) -> Iterator[str]:
    if counts:
        yield (
            f"The index has {rows:,} rows, and no file of texts beside it has as many: {first_of(counts, NAMED)}. "
            "Which text belongs to which vector is unknown."
        )
    if closed:
        yield (
            f"{first_of(closed, NAMED)} beside it {'are pickles' if len(closed) > 1 else 'is a pickle'} that "
            f"{'hold' if len(closed) > 1 else 'holds'} more than plain values, and nothing of it was opened: the texts "
            "may be in it. Export them where they were made, and name them: --texts FILE"
        )


def _has_text(records: Sequence[Mapping[str, Any]], names: Sequence[str] = ()) -> bool:
    """Whether rows have a text, of a field with one of these names if there are any."""
    fields = (field for record in islice(records, 20) for field in flat(record))
    return any(
        isinstance(value, str) and bool(value) and (not names or path.rpartition(".")[2].lower() in names)
        for path, value in fields
    )


def _records_in(path: Path, rows: int) -> Iterator[list[Mapping[str, Any]]]:
    """What a file may hold of rows, each reading of it."""
    place = StorePlace(str(path))
    if place.suffix in PICKLES_SUFFIXES:
        yield from records_of(unpickled(path))
    elif is_json(place) and not place.is_compressed and (content := _whole(path)) is not None:
        yield from records_of(content)
    elif place.suffix in LINES:
        yield [{"text": line} for line in path.read_text("utf-8", errors="replace").splitlines()]
    elif place.head.startswith(MAGIC):
        yield from _tables(path, rows)
    elif place.suffix == ".npy":
        yield from _of_array(path)
    elif (kind := _kind_of(path)) is not None:
        if place.suffix == ".tsv" and "\t" not in (text := path.read_text("utf-8", errors="replace")):
            yield [{"text": line} for line in text.splitlines()]
            return
        table = kind.open(place, ReadOptions())
        if table.rows is None or table.rows == rows:
            names = list(table.columns)
            batches = ([listed(batch[name]) for name in names] for batch in table.read(names))
            yield [dict(zip(names, row, strict=True)) for batch in batches for row in zip(*batch, strict=True)]


def _of_array(path: Path) -> Iterator[list[Mapping[str, Any]]]:
    """Texts or ids in a file of NumPy's, as text or as objects."""
    with path.open("rb") as stream, suppress(ValueError, pickle.UnpicklingError):
        found = read_array(stream)
        if found.ndim == 1 and found.dtype.kind in "UO":
            values = found.tolist()
            name = "text" if all(isinstance(one, str) for one in values) and is_prose(values) else path.stem
            yield [dict(one) if isinstance(one, Mapping) else {name: one} for one in values]


def _tables(path: Path, rows: int) -> Iterator[list[Mapping[str, Any]]]:
    """The tables of a SQLite file that have so many rows; the others' are not read."""
    file = copied(path, ("-wal", "-journal"))
    try:
        with closing(read_only(file, is_original=file == path.absolute())) as database:
            database.row_factory = sqlite3.Row
            names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for name in names:
                if database.execute(f"SELECT count(*) FROM {quoted(name)}").fetchone()[0] == rows:
                    yield [dict(row) for row in database.execute(f"SELECT * FROM {quoted(name)} ORDER BY rowid")]
    except sqlite3.Error:
        return


def _whole(path: Path) -> Any:
    """A file of JSON as one value; None for lines of it."""
    with suppress(ValueError, RecursionError):
        return of_json(path.read_bytes())
    return None


def unpickled(path: Path) -> Any:
    """What a pickle holds, of which nothing is run.

    Raises:
        UsageError: if it holds more than plain values and LangChain's documents.
    """
    try:
        with path.open("rb") as stream:
            return OnlyThese(stream, stand_ins(DOCUMENTS)).load()
    except OSError:
        raise
    except Exception as error:
        raise UsageError(
            f"{path.name} is a pickle that holds more than plain values.",
            kept="Nothing in it was run.",
            next_step="Export it where it was made, as JSON lines with a text each.",
        ) from error


def records_of(content: Any, depth: int = 0) -> Iterator[list[Mapping[str, Any]]]:
    """The lists of rows in a value: a list, columns of one length, rows by id; and what it holds."""
    if isinstance(content, list | tuple):
        if content and all(isinstance(one, str) for one in content):
            yield [{"text" if is_prose(content) else "id": one} for one in content]
        elif content and all(isinstance(one, Mapping | InertObject) for one in content):
            yield [_fields(one) for one in content]
        elif depth < DEEPEST:
            for one in content[:DEEPEST]:
                yield from records_of(one, depth + 1)
    elif isinstance(content, Mapping) and content:
        yield from _of_mapping(content, depth)


def _of_mapping(content: Mapping[Any, Any], depth: int) -> Iterator[list[Mapping[str, Any]]]:
    values = list(content.values())
    are_places = sorted(map(str, content)) == sorted(map(str, range(len(content))))
    ids: Iterable[dict[str, Any]] = ({} if are_places else {"id": str(key)} for key in content)
    if all(isinstance(one, str) for one in values):
        name = "text" if is_prose(values) else "id"
        yield [{**own, name: one} for own, one in zip(ids, values, strict=True)]
    elif all(isinstance(one, Mapping | InertObject) for one in values):
        rows = sorted(content, key=int) if are_places and all(str(key).isdigit() for key in content) else list(content)
        yield [{**own, **_fields(content[key])} for own, key in zip(ids, rows, strict=True)]
    lists = {str(name): value for name, value in content.items() if isinstance(value, list) and value}
    for length in {len(one) for one in lists.values()}:
        same = {name: value for name, value in lists.items() if len(value) == length}
        if len(same) > 1:
            yield [_joined(same, place) for place in range(length)]
    if depth < DEEPEST:
        for value in values:
            yield from records_of(value, depth + 1)


def _joined(columns: Mapping[str, Sequence[Any]], place: int) -> Mapping[str, Any]:
    """A row of columns; of a column of objects, their fields beside the others."""
    row: dict[str, Any] = {}
    for name, values in columns.items():
        value = values[place]
        row |= {**_fields(value), **row} if isinstance(value, Mapping | InertObject) else {name: value}
    return row


def _fields(one: Any) -> dict[str, Any]:
    return {str(name): value for name, value in (vars(one) if isinstance(one, InertObject) else one).items()}


KINDS = (
    StoreKind(
        name="an index beside its texts",
        recognises=is_beside,
        open=open_folder,
        looks="a folder with an index (FAISS, hnswlib, .npy, .safetensors, numbers in a .tsv) and a file of as many "
        "texts (JSON, CSV, plain pickles …)",
        tried="folders as applications write them (by hand)",
    ),
)
