"""Rows of a FAISS index, whatever it is made of, without holding more of the file than a part."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from embaudit.stores.store import BATCH_ROWS
from embaudit.words.errors import CorpusError, one_line

# Pages of a map that were touched count as this program's memory until it is closed: so many bytes are read of one.
MAPPED_BYTES = 64 << 20
INNER = 4 + 4 + 8 + 16 + 1 + 4
AGAIN = "Write it again, or fetch it again: faiss.write_index(index, FILE)"


class FaissRows:
    """The rows of an index file, in the order of their ids; with ids of its user's, in that in which they were added.

    Attributes:
        count: how many rows.
        dimension: numbers of a row; bytes of it in a binary index.
        ids: (n,) int64.
        metric: FAISS's number for it.
        is_exact: whether vectors are kept as they were added.
        named: what the index is, by FAISS's class.

    Raises:
        CorpusError: if the file is damaged, or its vectors cannot be reconstructed.
    """

    def __init__(self, faiss: Any, path: Path, head: bytes, shown: str) -> None:
        self._faiss, self._path, self._shown = faiss, path, shown
        self.is_binary = head.startswith(b"IB")
        inner = head[INNER : INNER + 4] if head[:4] in (b"IxMp", b"IxM2") else head[:4]
        # FAISS makes room for all inverted lists before it maps them, unless they are left on disk.
        self._flags = faiss.IO_FLAG_MMAP if inner[:2] in (b"Iw", b"Iv") else getattr(faiss, "IO_FLAG_MMAP_IFC", 0)
        if self.is_binary:
            self._flags = 0
        index = self._open()
        self.metric = int(index.metric_type)
        own, ids = self._unwrapped(index)
        self.named = type(own).__name__
        self.dimension = int(index.d) // (8 if self.is_binary else 1)
        self.is_exact = self._is_exact(own)
        self.count = int(index.ntotal)
        lists = self._inverted(own)
        self._order = None if lists is None else self._listed(lists)
        if self._order is not None:
            self.count = len(self._order[0])
        self.ids = ids if ids is not None else np.arange(self.count) if self._order is None else self._order[0]
        if ids is not None and self._order is not None:
            self.ids = ids[self._order[0]]
        if len(self.ids) != self.count or (self._order is not None and self.count != index.ntotal):
            raise self._damaged(f"it says that it has {int(index.ntotal):,} rows, and its lists hold {len(self.ids):,}")
        if self.count:
            # Of one row, FAISS reports what it cannot; of several, it ends the program.
            self._reported(lambda: self._read(own, 0, 1))

    def batches(self) -> Iterator[tuple[int, np.ndarray]]:
        """Number of the first row, and (m, D) float32 or uint8 bytes."""
        held, own = 0, None
        for start in range(0, self.count, BATCH_ROWS):
            if own is None or held > MAPPED_BYTES:
                index = self._open()
                own, held = self._unwrapped(index)[0], 0
            vectors = self._read(own, start, min(start + BATCH_ROWS, self.count))
            held += vectors.nbytes
            yield start, vectors

    def rounded(self, vectors: np.ndarray) -> np.ndarray:
        """(n, D) what this index would give back of vectors that are added to it."""
        rows = np.ascontiguousarray(vectors, dtype=np.float32)
        known = np.isfinite(rows).all(axis=1)
        found = np.full(rows.shape, np.nan, dtype=np.float32)
        if known.any():
            found[known] = self._reported(lambda: self._coded(rows[known]))
        return found

    def _coded(self, rows: np.ndarray) -> np.ndarray:
        index = self._coder
        try:
            return np.asarray(index.sa_decode(index.sa_encode(rows)))
        except RuntimeError:
            pass
        # What has no coder of its own is emptied, in memory, and filled.
        index.reset()
        index.add(rows)
        lists = self._inverted(index)
        if lists is None:
            return self._plain(index, 0, len(rows))
        kept, self._order = self._order, self._listed(lists)
        try:
            return self._read(index, 0, len(rows))
        finally:
            self._order = kept

    @cached_property
    def _coder(self) -> Any:
        self._held = self._reported(lambda: self._faiss.read_index(str(self._path)))
        return self._unwrapped(self._held)[0]

    def _open(self) -> Any:
        read = self._faiss.read_index_binary if self.is_binary else self._faiss.read_index
        return self._reported(lambda: read(str(self._path), self._flags))

    def _reported(self, what: Any) -> Any:
        try:
            return what()
        except (RuntimeError, MemoryError, AssertionError) as error:
            # FAISS puts its own source's path before what it says.
            said = one_line(error).rpartition("Error: ")[2] if "Error: " in str(error) else one_line(error)
            raise self._damaged(said) from error

    def _damaged(self, why: str) -> CorpusError:
        if "not implemented" in why:
            return CorpusError(
                f"{self._shown} is an index from which FAISS cannot reconstruct vectors ({why[-200:]}).",
                kept="Nothing was measured.",
                next_step="Name a file of the vectors that it was built from.",
            )
        return CorpusError(f"{self._shown} cannot be read: {why}.", kept="Nothing was measured.", next_step=AGAIN)

    def _down(self, index: Any) -> Any:
        down = self._faiss.downcast_IndexBinary if self.is_binary else self._faiss.downcast_index
        return down(index)

    def _unwrapped(self, index: Any) -> tuple[Any, np.ndarray | None]:
        """What holds the vectors, which lives as long as the whole, and the ids of its user; None if it has none."""
        ids = None
        while True:
            index = self._down(index)
            kind = type(index).__name__
            if hasattr(index, "id_map"):
                ids = self._faiss.vector_to_array(index.id_map).astype(np.int64)
                inner = index.index
            elif "Refine" in kind:
                inner = index.refine_index
            elif hasattr(index, "storage") and index.storage is not None:
                inner = index.storage
            else:
                break
            index = inner
        return index, ids

    def _is_exact(self, index: Any) -> bool:
        kind = type(index).__name__
        return self.is_binary or kind.startswith("IndexFlat") or kind in ("IndexIVFFlat", "IndexIVFFlatDedup")

    def _inverted(self, index: Any) -> Any:
        """The inverted lists' index, if rows are in such."""
        while hasattr(index, "chain"):
            index = self._down(index.index)
        return index if hasattr(index, "invlists") and index.invlists is not None else None

    def _listed(self, index: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ids in their order, with the list and the place in it of each."""
        lists = self._faiss.downcast_InvertedLists(index.invlists)
        if type(lists).__name__ == "BlockInvertedLists":
            # Of the codes of a fast scan, FAISS 1.15 ends the program.
            raise self._damaged(f"not implemented for {type(index).__name__}")
        size = self._path.stat().st_size
        found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for number in range(lists.nlist):
            count = lists.list_size(number)
            if not count:
                continue
            if hasattr(lists, "lists"):
                one = lists.lists.at(number)
                # Beyond the end of a map, the system ends the program.
                if one.offset + one.capacity * (lists.code_size + 8) > size:
                    raise self._damaged("it ends within its lists")
            ids = self._faiss.rev_swig_ptr(lists.get_ids(number), count).copy()
            found.append((ids, np.full(count, number), np.arange(count)))
        if not found:
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
        ids, numbers, places = (np.concatenate(part) for part in zip(*found, strict=True))
        order = np.argsort(ids, kind="stable")
        return ids[order], numbers[order], places[order]

    def _read(self, index: Any, start: int, end: int) -> np.ndarray:
        if hasattr(index, "chain"):
            inner = np.ascontiguousarray(self._read(self._down(index.index), start, end))
            out = np.empty((len(inner), index.d), dtype=np.float32)
            index.reverse_chain(
                len(inner), self._faiss.swig_ptr(np.ascontiguousarray(inner)), self._faiss.swig_ptr(out)
            )
            return out
        return self._plain(index, start, end) if self._inverted(index) is None else self._in_lists(index, start, end)

    def _plain(self, index: Any, start: int, end: int) -> np.ndarray:
        index = self._unwrapped(index)[0]
        if end - start == 1:
            return np.array(index.reconstruct(start))[None]
        return np.asarray(index.reconstruct_n(start, end - start))

    def _in_lists(self, index: Any, start: int, end: int) -> np.ndarray:
        assert self._order is not None
        numbers, places = self._order[1][start:end].tolist(), self._order[2][start:end].tolist()
        lists = self._faiss.downcast_InvertedLists(index.invlists)
        width = self.dimension if self.is_binary else int(index.d)
        out = np.empty((end - start, width), dtype=np.uint8 if self.is_binary else np.float32)
        if type(index).__name__ == "IndexIVFFlat" and hasattr(lists, "lists"):
            offsets = {number: lists.lists.at(number).offset for number in set(numbers)}
            with self._path.open("rb", buffering=0) as file:
                for row, (number, place) in enumerate(zip(numbers, places, strict=True)):
                    raw = os.pread(file.fileno(), lists.code_size, offsets[number] + place * lists.code_size)
                    out[row] = np.frombuffer(raw, np.float32)
            return out
        for row, (number, place) in enumerate(zip(numbers, places, strict=True)):
            index.reconstruct_from_offset(number, place, self._faiss.swig_ptr(out[row]))
        return out
