"""Random pieces of a large source: a sample of millions of rows without fetching them all.

Read by ``hub``. A piece is the lines that begin in half a megabyte of a file, or a row group of Parquet. Each is as
likely to be read as any other, and so each row is; pieces are many, so that neighbours of a piece weigh little.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, Any, Protocol

import numpy as np

from embaudit.corpora.openers import UTF8_BOM
from embaudit.corpora.tabular import Choose

# Smaller sources are read whole: it takes seconds, and every row has its chance.
LARGE_BYTES = 256 * 2**20
# What is read of larger ones: some 150 000 passages of MS MARCO.
READ_BYTES = 64 * 2**20
PIECE_BYTES = 2**19
# A piece's last line ends in the next one.
TAIL_BYTES = 2**16
# Which files have pieces, by suffix; packed files have none.
IN_LINES = ("jsonl", "ndjson", "txt")
IN_ROW_GROUPS = ("parquet",)

Opened = Callable[[], AbstractContextManager[IO[bytes]]]


@dataclass(frozen=True)
class Pieces:
    """Which pieces of which files are read.

    Attributes:
        chosen: pieces of each file, ascending.
        share: of all bytes.
    """

    chosen: dict[str, list[int]]
    share: float


def choose_pieces(sizes: dict[str, Sequence[int]], seed: int) -> Pieces:
    """Pieces at random, until they have ``READ_BYTES``.

    Args:
        sizes: bytes of each piece of each file.
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
        """Bytes of each piece."""
        ...

    def tables(self, pieces: Sequence[int], choose: Choose) -> Iterator[Any]:
        """The pieces as Arrow tables, which may have more columns than were chosen."""
        ...


def in_pieces(kind: str, size: int, opened: Opened) -> FileInPieces:
    """A file as pieces.

    Args:
        kind: its suffix, one of ``IN_LINES`` or ``IN_ROW_GROUPS``.
        size: its bytes.
        opened: opens it for reads at any place.
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
    """The lines that begin at the bytes start … stop−1: of all pieces together, every line once."""
    # From the byte before, which says whether a line begins at the start itself.
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
