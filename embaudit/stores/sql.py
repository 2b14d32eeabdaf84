"""Which table of a database is meant: the one that was named, the only one that may hold vectors, or a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from embaudit.stores.place import NoSuchPart, SeveralParts
from embaudit.words.errors import UsageError, hint

QUERIES = ("select ", "with ", "select\n", "with\n")


@dataclass(frozen=True)
class SqlTable:
    """A table or view of a database.

    Attributes:
        name: as people call it: ``schema.table``, or ``table``.
        quoted: as a statement names it.
        may_hold_vectors, has_texts: by the types of its columns.
    """

    name: str
    quoted: str
    may_hold_vectors: bool
    has_texts: bool


def quoted(*parts: str) -> str:
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def is_query(part: str | None) -> bool:
    return part is not None and part.lstrip().lower().startswith(QUERIES)


def source_of(tables: Sequence[SqlTable], part: str | None, shown: str) -> tuple[str, str]:
    """What is read (after FROM), and how it is called.

    Of several tables with vectors, the only one that has texts beside them is meant: there is nothing to compare in the
    others.

    Raises:
        UsageError: if there is none, or more than one.
    """
    if part is not None and is_query(part):
        return f"({part.strip().rstrip(';')}) AS asked", "what the query gives"
    by_name: Mapping[str, SqlTable] = {table.name: table for table in tables}
    if part is not None:
        named = [table for table in tables if part in (table.name, table.name.rpartition(".")[2])]
        if len(named) != 1:
            what = "no table" if not named else "several tables"
            error = NoSuchPart(
                f"{shown} has {what} {part!r}{hint(part, by_name)}.",
                next_step="Name it: --from TABLE" if tables else "Check that this is the database that is meant.",
            )
            error.parts = tuple(table.name for table in tables if table.may_hold_vectors)
            raise error
        return named[0].quoted, f"table {named[0].name}"
    fit = [table for table in tables if table.may_hold_vectors]
    if len(fit) > 1:
        with_texts = [table for table in fit if table.has_texts]
        fit = with_texts if len(with_texts) == 1 else fit
    names = [table.name for table in fit or tables]
    if not fit:
        raise UsageError(
            f"{shown} has no table that may hold vectors: {', '.join(names) or 'it has no table'}.",
            next_step="A table of vectors has a column of lists, or of bytes.",
        )
    if len(fit) > 1:
        raise SeveralParts(
            f"{shown} has {len(fit)} tables that may hold vectors: {', '.join(names)}.",
            next_step="Name the one that is meant: --from TABLE; or join two: --from 'SELECT …'",
            names=names,
        )
    return fit[0].quoted, f"table {fit[0].name}"
