"""Reads random pieces of a large source, to sample millions of rows without fetching them all.

A piece is the lines that begin in half a megabyte of a file, or a Parquet row group. Each piece is equally likely to be
read, and so is each row; there are many pieces, so that neighbouring rows have little weight.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, Any, Protocol

import numpy as np

from embaudit.corpora.openers import UTF8_BOM
from embaudit.corpora.tables import Choose

# Smaller sources are read completely: it takes seconds.
LARGE_BYTES = 256 * 2**20
# Bytes to read of larger ones: some 150 000 passages of MS MARCO.
READ_BYTES = 64 * 2**20
PIECE_BYTES = 2**19
# A piece's last line may end in the next piece.
TAIL_BYTES = 2**16
# Suffixes of files that can be read in pieces; compressed files cannot.
IN_LINES = ("jsonl", "ndjson", "txt")
IN_ROW_GROUPS = ("parquet",)

Opened = Callable[[], AbstractContextManager[IO[bytes]]]


@dataclass(frozen=True)
class Pieces:
    """The pieces to read.

    Attributes:
        chosen: pieces of each file, ascending.
        share: of all bytes.
    """

    chosen: dict[str, list[int]]
    share: float


def choose_pieces(sizes: dict[str, Sequence[int]], seed: int) -> Pieces:
    """Choose random pieces up to ``READ_BYTES``.

    Args:
        sizes: bytes of each piece, by file.
    """
    all_pieces = [(name, piece) for name, of_file in sizes.items() for piece in range(len(of_file))]
    order = np.random.default_rng([seed, len(all_pieces)]).permutation(len(all_pieces))
    chosen: dict[str, list[int]] = {}
    read = 0
    for name, piece in (all_pieces[place] for place in order):
        if read >= READ_BYTES:
            break
        chosen.setdefault(name, []).append(piece)
        read += sizes[name][piece]
    in_order = {name: sorted(chosen[name]) for name in sizes if name in chosen}
    return Pieces(in_order, read / sum(map(sum, sizes.values())))


class FileInPieces(Protocol):
    """A file that can be read piece by piece."""

    def sizes(self) -> Sequence[int]:
        """Size of each piece in bytes."""
        ...

    def tables(self, pieces: Sequence[int], choose: Choose) -> Iterator[Any]:
        """The pieces as Arrow tables, possibly with more columns than chosen."""
        ...


def in_pieces(kind: str, size: int, opened: Opened) -> FileInPieces:
    """A file that is read in pieces.

    Args:
        kind: its suffix, from ``IN_LINES`` or ``IN_ROW_GROUPS``.
        size: in bytes.
        opened: opens it for random access.
    """
    return _RowGroups(opened) if kind in IN_ROW_GROUPS else _Lines(kind, size, opened)


@dataclass(frozen=True)
class _Lines:
    kind: str
    size: int
    opened: Opened

    def sizes(self) -> Sequence[int]:
        return [min(PIECE_BYTES, self.size - start) for start in range(0, self.size, PIECE_BYTES)]

    def tables(self, pieces: Sequence[int], choose: Choose) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import json as pa_json

        with self.opened() as file:
            for piece in pieces:
                lines = lines_of(file, piece * PIECE_BYTES, min((piece + 1) * PIECE_BYTES, self.size))
                if not lines.strip():
                    continue
                if self.kind == "txt":
                    # Only \n ends a line: U+2028 and its like occur inside Wikipedia sentences.
                    yield pa.table({"text": lines.decode("utf-8").removesuffix("\n").split("\n")})
                else:
                    options = pa_json.ReadOptions(block_size=len(lines) + 1)
                    yield pa_json.read_json(io.BytesIO(lines), read_options=options)


@dataclass(frozen=True)
class _RowGroups:
    opened: Opened

    def sizes(self) -> Sequence[int]:
        import pyarrow.parquet as pq

        with self.opened() as file:
            footer = pq.read_metadata(file)
        groups = (footer.row_group(place) for place in range(footer.num_row_groups))
        return [
            sum(group.column(column).total_compressed_size for column in range(group.num_columns)) for group in groups
        ]

    def tables(self, pieces: Sequence[int], choose: Choose) -> Iterator[Any]:
        import pyarrow.parquet as pq

        with self.opened() as file:
            parquet = pq.ParquetFile(file)
            columns = list(choose(parquet.schema_arrow))
            for piece in pieces:
                yield parquet.read_row_group(piece, columns=columns)


def lines_of(file: IO[bytes], start: int, stop: int) -> bytes:
    """The lines that begin at bytes start … stop−1, so that every line is in exactly one piece."""
    # Start one byte earlier to see whether a line begins exactly at the start.
    begin = max(start - 1, 0)
    file.seek(begin)
    read = file.read(stop - begin + TAIL_BYTES)
    first = read.find(b"\n") + 1 if start else 0
    if start and not 0 < first < stop - begin:
        return b""
    while (last := read.find(b"\n", stop - begin - 1)) < 0:
        more = file.read(TAIL_BYTES)
        if not more:
            last = len(read) - 1
            break
        read += more
    lines = read[first : last + 1]
    return lines if start else lines.removeprefix(UTF8_BOM)
