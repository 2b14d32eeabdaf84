"""What a user named as a place with vectors, looked at once: a path with its first bytes, or an address.

Which part of a store is meant: the collection, table or split that was named, or the only one.

Which table of a database is meant: the one that was named, the only one that may hold vectors, or a query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from embaudit.declared.option import Option
from embaudit.words.errors import CorpusError, UsageError, hint
from embaudit.words.masking import without_credentials
from embaudit.words.sentences import first_of

HEAD_BYTES = 64
GZIP = b"\x1f\x8b"
POINTER = b"version https://git-lfs"
# Rows that are read of a store that is too large, and what too large is.
DRAWN, LARGE = 2_000_000, 10_000_000


@dataclass(frozen=True)
class StorePlace:
    """A place as it was named.

    Attributes:
        named: a path, an address, or ``KIND:`` and one of them.
    """

    named: str

    @property
    def shown(self) -> str:
        return without_credentials(self.named)

    @property
    def scheme(self) -> str:
        """``postgresql`` of ``postgresql://…``, ``hub`` of ``hub:…``; empty for a path."""
        start, mark, _ = self.named.partition(":")
        # One letter is a drive.
        return start.lower() if mark and len(start) > 1 and start.replace("+", "").isalnum() else ""

    @property
    def is_path(self) -> bool:
        return not self.scheme or Path(self.named).exists()

    @cached_property
    def path(self) -> Path:
        return Path(self.named).expanduser()

    @cached_property
    def is_folder(self) -> bool:
        return self.is_path and self.path.is_dir()

    @cached_property
    def suffix(self) -> str:
        """In lower case, without ``.gz``; empty for a folder or an address."""
        return Path(self.path.name.lower().removesuffix(".gz")).suffix if self.is_path and not self.is_folder else ""

    @cached_property
    def head(self) -> bytes:
        """The first bytes of a file; empty for anything else."""
        if not self.is_path or not self.path.is_file():
            return b""
        try:
            with self.path.open("rb") as file:
                return file.read(HEAD_BYTES)
        except OSError as error:
            raise CorpusError(f"{self.shown} cannot be read: {error.strerror}.", next_step="Check the file.") from error

    @property
    def is_compressed(self) -> bool:
        return self.head.startswith(GZIP)

    def pointers(self) -> list[str]:
        """The files that Git LFS left as pointers: itself, or those of a folder."""
        files = sorted(self.path.iterdir()) if self.is_folder else [self.path] if self.is_path else []
        return [file.name for file in files if StorePlace(str(file)).head.startswith(POINTER)]

    def holds(self, *patterns: str) -> bool:
        """Whether a folder has something of each of these names or patterns."""
        return self.is_folder and all(next(self.path.glob(pattern), None) is not None for pattern in patterns)


class StoreOptions(BaseModel):
    """How the rows of a store are read: part of every question about one."""

    vector: Annotated[str | None, Option(metavar="COLUMN")] = Field(
        None, description="The column of vectors, by name or dotted path.  [default: the only list of numbers]"
    )
    text: Annotated[str | None, Option(metavar="COLUMN")] = Field(
        None,
        description="The column of the texts that were embedded, or what was embedded of several: "
        "'{title}\\n{text}'.  [default: by name]",
    )
    id: Annotated[str | None, Option(metavar="COLUMN")] = Field(
        None, description="The column that names a row.  [default: by name]"
    )
    texts: Annotated[str | Path | None, Option(is_file=True)] = Field(
        None,
        description="A file with the texts of vectors that have none beside them: row by row, or by id.",
    )
    from_table: Annotated[str | None, Option("from", metavar="NAME")] = Field(
        None,
        description="The table, collection or split that is meant where there are several; for a database, also a "
        "query.",
    )
    numbers: Annotated[str | None, Option(metavar="TYPE")] = Field(
        None, description="What bytes are, where that is unclear: float32, float16, int8, bits …"
    )
    where: Annotated[Mapping[str, object], Option(metavar="COLUMN=VALUE")] = Field(
        {}, description="Only rows with this value."
    )

    def read_options(self, **more: Any) -> ReadOptions:
        """The same for ``open_store``, with what else is known of how rows are to be read."""
        return ReadOptions(
            self.vector,
            self.text,
            self.id,
            texts=None if self.texts is None else Path(self.texts),
            part=self.from_table,
            numbers=self.numbers,
            where=tuple((name, str(value)) for name, value in self.where.items()),
            **more,
        )


@dataclass(frozen=True)
class ReadOptions:
    """What is said of how vectors are to be read, by a user (``StoreOptions``) and by who asks; None: to be found.

    Attributes:
        part: the table, collection, split or array that is meant where a place has several.
        where: rows whose field has this value; (name, value) each.
        dimension: numbers of a vector of the function that is compared with, if there is one.
        allow_pickle: whether pickled files may be opened, which runs what they hold.
        most: rows of a store that is still read whole; None: whatever it has. Of a larger one that can be drawn from,
            ``DRAWN`` rows are.
        seed: of that draw.
    """

    vector: str | None = None
    text: str | None = None
    id: str | None = None
    texts: Path | None = None
    part: str | None = None
    numbers: str | None = None
    where: Sequence[tuple[str, str]] = field(default_factory=tuple)
    dimension: int | None = None
    allow_pickle: bool = False
    most: int | None = None
    seed: int = 0


class Several(UsageError):
    """Several things may be meant.

    Attributes:
        names: of these, if each may be looked at by itself.
    """

    def __init__(self, happened: str, *, kept: str = "", next_step: str = "", names: Sequence[str] = ()) -> None:
        super().__init__(happened, kept=kept, next_step=next_step)
        self.names = tuple(names)


class SeveralFit(Several):
    """Several columns or types of numbers may be meant, of which the dimension of a function may tell the right one."""


class SeveralTexts(SeveralFit):
    """Several columns may be the texts, of which the vectors of a function may tell the right one."""


class SeveralVectors(SeveralFit):
    """Several columns may be the vectors, each of which may be looked at by itself."""


class SeveralParts(Several):
    """Several collections, tables or splits may be meant, each of which may be looked at by itself."""


LISTED = 12


class NoSuchPart(UsageError):
    """A part that a place has not; those that it has are ``parts``."""

    parts: tuple[str, ...] = ()


def part_meant(names: Sequence[str], asked: str | None, shown: str, what: str = "collection") -> str:
    """The part that was asked for, or the only one.

    Args:
        names: of all parts.
        what: a part is called.

    Raises:
        UsageError: if there is none, it is not among them, or several may be meant.
    """
    if not names:
        raise UsageError(f"{shown} has no {what}.", next_step="Check that this is the store that is meant.")
    if asked is not None and asked not in names:
        error = NoSuchPart(
            f"{shown} has no {what} {asked!r}{hint(asked, sorted(names)[:LISTED])}.", next_step="Name it: --from NAME"
        )
        error.parts = tuple(names)
        raise error
    if asked is None and len(names) > 1:
        some = sorted(names)
        raise SeveralParts(
            f"{shown} has {len(names):,} {what}s: {first_of(some, LISTED)}.",
            next_step=f"Name the one that is meant: --from {some[0]}",
            names=some,
        )
    return names[0] if asked is None else asked


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
