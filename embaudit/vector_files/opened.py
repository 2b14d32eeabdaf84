"""Opens the export of an index by what its name says it is."""

from __future__ import annotations

from pathlib import Path

from embaudit.comparisons.stored.rows import StoredIndex
from embaudit.errors import UsageError
from embaudit.vector_files.columns import AskedColumns
from embaudit.vector_files.sources import ARROW, JSON, PARQUET, open_arrow, open_json_lines, open_npy, open_parquet

DUCKDB = (".duckdb", ".ddb", ".db")
POSTGRES = ("postgresql://", "postgres://")
FORMATS = "Parquet (a file or a folder of them), .arrow or .feather, .jsonl (also .gz), .npy, .duckdb, postgresql://…"


def open_index(place: str, asked: AskedColumns, *, texts: Path | None = None, table: str | None = None) -> StoredIndex:
    """Open stored vectors.

    Args:
        place: a file, a folder of Parquet files, or the address of a PostgreSQL database.
        asked: the columns that the user named.
        texts: the texts of an .npy file, row by row.
        table: the table of a database that has several.

    Raises:
        UsageError: if it is no format that is read, or it is unclear which columns or table are meant.
        CorpusError: if a file is missing or damaged.
    """
    if place.startswith(POSTGRES):
        from embaudit.vector_files.databases import open_postgres

        _refuse(texts is not None, place, "--texts is for an .npy file; a table has a column of texts.")
        return open_postgres(place, asked, table)
    path = Path(place).expanduser()
    name = path.name.lower()
    suffix = Path(name.removesuffix(".gz")).suffix
    _refuse(
        texts is not None and suffix != ".npy", place, "--texts is for an .npy file; a table has a column of texts."
    )
    if suffix in DUCKDB:
        from embaudit.vector_files.databases import open_duckdb

        return open_duckdb(path, asked, table)
    _refuse(table is not None, place, "--from names a table of a database.")
    if name.endswith(".gz") and suffix not in JSON:
        raise UsageError(f"{place} is compressed.", next_step=f"Unpack it first: gunzip {place}")
    if path.is_dir() or suffix in PARQUET:
        return open_parquet(path, asked)
    if suffix in ARROW:
        return open_arrow(path, asked)
    if suffix in JSON:
        return open_json_lines(path, asked)
    if suffix == ".npy":
        return open_npy(path, texts)
    raise UsageError(f"{place} is no export of vectors that is read.", next_step=f"These are: {FORMATS}.")


def _refuse(is_wrong: bool, place: str, why: str) -> None:
    if is_wrong:
        raise UsageError(f"{place} has no use for that option: {why}")
