"""A table in several files of one folder, as large exports are: lines, lists or cells, of the same columns.

Also a file for each document. Parquet's parts are read by its own library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from embaudit.stores.columns import is_vector
from embaudit.stores.csv import CSV_SUFFIXES, open_csv
from embaudit.stores.json import SUFFIXES, open_json
from embaudit.stores.json_rows import ALIKE
from embaudit.stores.nested import listed
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.store import StoreKind, StoreTable, Values
from embaudit.words.errors import CorpusError, UsageError

# What such a folder has beside its parts.
BESIDE = ("readme", "license", "_success", "_metadata")


def parts_of(place: StorePlace) -> list[Path]:
    """The files of a folder, if all have one suffix, that of a table."""
    if not place.is_folder:
        return []
    files = [one for one in sorted(place.path.iterdir()) if not one.name.startswith(".")]
    files = [one for one in files if one.is_dir() or not one.name.lower().startswith(BESIDE)]
    suffixes = {StorePlace(str(one)).suffix for one in files}
    is_one = len(files) > 1 and len(suffixes) == 1 and suffixes <= {*CSV_SUFFIXES, *SUFFIXES}
    return files if is_one else []


def open_parts(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The rows of all files, one after another, in the order of their names."""
    files = parts_of(place)
    tables = []
    for file in files:
        own = StorePlace(str(file))
        tables.append((open_csv if own.suffix in CSV_SUFFIXES else open_json)(own, asked))
    first = tables[0]
    vectors = {name for name, column in first.columns.items() if is_vector(column)}
    for table, file in zip(tables, files if vectors else files[1:] + files[:1], strict=True):
        both = table.columns.keys() & first.columns.keys()
        if not vectors & both or len(both) < ALIKE * len(table.columns.keys() | first.columns.keys()):
            raise _differ(place, files, file)
    columns = {name: column for table in reversed(tables) for name, column in table.columns.items()}
    columns = {**{name: columns[name] for name in first.columns}, **columns}

    def read(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        for table in tables:
            own = [name for name in names if name in table.columns] or [next(iter(table.columns))]
            for batch in table.read(own):
                rows = len(batch[own[0]])
                yield {name: listed(batch[name]) if name in batch else [None] * rows for name in names}

    rows = [table.rows for table in tables if table.rows is not None]
    note = f"The rows are those of {len(files):,} files of the folder, in the order of their names."
    return StoreTable(
        place.shown,
        columns,
        read,
        rows=sum(rows) if len(rows) == len(tables) else None,
        notes=(note, *dict.fromkeys(one for table in tables for one in table.notes)),
    )


def _differ(place: StorePlace, files: Sequence[Path], file: Path) -> UsageError:
    return UsageError(
        f"{place.shown} is a folder of {len(files):,} files that are no parts of one table: {files[0].name} and "
        f"{file.name} have not the same columns, with vectors among them.",
        next_step=f"Name the one with the vectors: embaudit vectors {_with_vectors(files)}; if its texts are in "
        "another, that: --texts FILE",
    )


def _with_vectors(files: Sequence[Path]) -> Path:
    """The first file that has any."""
    for file in files:
        own = StorePlace(str(file))
        try:
            table = (open_csv if own.suffix in CSV_SUFFIXES else open_json)(own, ReadOptions())
        except (CorpusError, UsageError):
            continue
        if any(map(is_vector, table.columns.values())):
            return file
    return files[0]


KINDS = (
    StoreKind(
        name="parts of a table",
        recognises=lambda place: bool(parts_of(place)),
        open=open_parts,
        looks="a folder of files of one form (.jsonl, .json, .csv, .tsv, also .gz), with the same columns",
        tried="parts as exports write them, a file for each document",
    ),
)
