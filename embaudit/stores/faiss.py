"""FAISS's index files: vectors in the order of their ids, from a map of the file, or as its codes round them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from embaudit.stores.extras import needed
from embaudit.stores.faiss_rows import FaissRows
from embaudit.stores.faiss_search import open_search
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.store import Metric
from embaudit.stores.table import StoreColumn, StoreKind, StoreTable, Values
from embaudit.words.errors import CorpusError, EmptyStore

# Four letters at the start of every index; those of its own kinds begin so (faiss/impl/index_write.cpp).
STARTS = (b"Ix", b"Iw", b"Iv", b"IH", b"IN", b"IB", b"IP", b"Il", b"IR", b"I2", b"Im", b"IL", b"IQ", b"IF")
HEADER = 4 + 4 + 8 + 16 + 1 + 4
MOST_DIMENSIONS, MOST_ROWS = 1 << 20, 1 << 40
VECTOR, ID = "vector", "id"
AGAIN = "Write it again, or fetch it again: faiss.write_index(index, FILE)"


def is_faiss(place: StorePlace) -> bool:
    """By four letters and a header that makes sense, or by a suffix that nothing else claims."""
    return _has_header(place.head) or place.suffix == ".faiss"


def open_faiss(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The rows of an index, with their ids."""
    if not _has_header(place.head):
        empty = "is empty" if not place.head else f"starts with {place.head[:4]!r}, not with the letters of an index"
        raise CorpusError(f"{place.shown} is no FAISS index: it {empty}.", kept="Nothing was read.", next_step=AGAIN)
    faiss = needed("faiss", "faiss", place.shown)
    rows = FaissRows(faiss, place.path, place.head, place.shown)
    if not rows.count:
        raise EmptyStore(f"{place.shown} is an index without rows.", next_step="Add vectors, or name another file.")
    metrics: Mapping[int, Metric] = {faiss.METRIC_INNER_PRODUCT: "dot", faiss.METRIC_L2: "l2"}
    notes = (
        ()
        if rows.is_exact
        else (
            f"{place.shown} keeps codes ({rows.named}), not vectors: what is read is what FAISS reconstructs of them.",
        )
    )
    what = ("whole numbers", "uint8") if rows.is_binary else ("vector", "float32")
    columns = {
        VECTOR: StoreColumn(f"matrix of item: {what[1]}", what[0], ([0] * rows.dimension,)),  # type: ignore[arg-type]
        ID: StoreColumn("whole number", "other", tuple(rows.ids[:20].tolist())),
    }

    def read(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        if VECTOR not in names:
            yield {ID: rows.ids.tolist()} if ID in names else {}
            return
        for start, vectors in rows.batches():
            ids = rows.ids[start : start + len(vectors)].tolist()
            yield {name: vectors if name == VECTOR else ids for name in names}

    return StoreTable(
        place.shown,
        columns,
        read,
        rows=rows.count,
        vector=VECTOR,
        id=ID,
        metric="" if rows.is_binary else metrics.get(rows.metric, ""),
        notes=notes,
        rounded=None if rows.is_exact or rows.is_binary else rows.rounded,
        search=None if rows.is_binary else open_search(faiss, place, metrics.get(rows.metric, "")),
    )


def _has_header(head: bytes) -> bool:
    if len(head) < HEADER or not head.startswith(STARTS) or not head[:4].isalnum():
        return False
    dimension = int.from_bytes(head[4:8], "little")
    count = int.from_bytes(head[8:16] if not head.startswith(b"IB") else head[12:20], "little")
    return 0 < dimension < MOST_DIMENSIONS and count < MOST_ROWS


KINDS = (
    StoreKind(
        name="FAISS",
        recognises=is_faiss,
        open=open_faiss,
        looks="a FAISS index (.faiss, .index; `embaudit[faiss]`)",
        tried="the embedded engine",
        extra="faiss",
    ),
)
