"""FAISS's index files: vectors in the order of their ids, from a map of the file, or as its codes round them.

FAISS's own search, in an index that is loaded as a program loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from embaudit.stores.faiss_rows import FaissRows
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.search import Hits, SearchedColumns, SearchParameter, Settings, StoreSearch, Where
from embaudit.stores.store import Metric, StoreColumn, StoreKind, StoreTable, Values, needed
from embaudit.words.errors import CorpusError, EmptyStore

# By FAISS's name of a parameter: the attribute that holds it.
NPROBE, EF, FACTOR = "nprobe", "efSearch", "k_factor_rf"
MOST_FACTOR = 64
# Of a centre's squared length, its distance to a row that it is; and of the centres, how many are rows by no chance.
SAME, MOSTLY_ROWS = 1e-5, 0.5


def open_search(faiss: Any, place: StorePlace, metric: Metric) -> Callable[[SearchedColumns], StoreSearch]:
    """The search of an index file, which is loaded when it is asked for."""

    def opened(_: SearchedColumns) -> StoreSearch:
        index = faiss.read_index(str(place.path))
        parts = _parts(faiss, index)
        dials = tuple(_dials(parts, int(index.ntotal)))
        space = faiss.ParameterSpace()
        now: dict[str, int] = {}

        def find(query: np.ndarray, k: int, settings: Settings, where: Where) -> Hits:
            del where
            for name, value in settings.items():
                if now.get(name) != value:
                    space.set_index_parameter(index, name, float(value))
                    now[name] = value
            scores, ids = index.search(np.ascontiguousarray(query[None], dtype=np.float32), k)
            kept = ids[0] >= 0
            return Hits(ids[0][kept].tolist(), scores[0][kept])

        lists = next((one for one in parts if hasattr(one, "nprobe")), None)
        return StoreSearch(
            index=_named(parts),
            find=find,
            metric=metric,
            is_exact=not dials,
            dials=dials,
            exact={NPROBE: int(lists.nlist)} if lists is not None and len(dials) == 1 else None,
            is_quick_graph=any(hasattr(one, "hnsw") for one in parts),
            notes=_notes(faiss, parts[0]),
            anew="a graph with more links (M) and a higher efConstruction"
            if any(hasattr(one, "hnsw") for one in parts)
            else "",
        )

    return opened


def _notes(faiss: Any, lists: Any) -> tuple[str, ...]:
    """Lists that were made on about as many rows as there are lists: the centre of each is a row."""
    if not isinstance(lists, faiss.IndexIVFFlat) or lists.ntotal < 4 * lists.nlist:
        return ()
    quantizer = faiss.downcast_index(lists.quantizer)
    if not isinstance(quantizer, faiss.IndexFlat):
        return ()
    centres = quantizer.reconstruct_n(0, int(lists.nlist))
    scores = lists.search(centres, 1)[0][:, 0]
    own = np.square(centres).sum(axis=1)
    gaps = np.abs(scores - own) if lists.metric_type == faiss.METRIC_INNER_PRODUCT else np.abs(scores)
    if float((gaps <= SAME * own).mean()) < MOSTLY_ROWS:
        return ()
    return (
        f"Its {lists.nlist:,} lists were made on about as many rows, each around one of them, and it has "
        f"{lists.ntotal:,}: train the lists anew on all rows, and add these again.",
    )


def _parts(faiss: Any, index: Any) -> list[Any]:
    """The index and what it wraps, from the outside in."""
    parts = []
    while index is not None:
        index = faiss.downcast_index(index)
        parts.append(index)
        inner = getattr(index, "base_index", None) or getattr(index, "index", None)
        index = inner if isinstance(inner, faiss.Index) else None
    return parts


def _dials(parts: list[Any], rows: int) -> list[SearchParameter]:
    dials = []
    for part in parts:
        if hasattr(part, "nprobe") and hasattr(part, "nlist"):
            dials.append(SearchParameter(NPROBE, int(part.nprobe), int(part.nlist)))
        elif hasattr(part, "hnsw"):
            dials.append(SearchParameter(EF, int(part.hnsw.efSearch), max(rows, 1)))
        elif hasattr(part, "k_factor"):
            dials.append(SearchParameter(FACTOR, int(part.k_factor), MOST_FACTOR))
    # What finds candidates comes before what ranks them again.
    return sorted(dials, key=lambda dial: dial.name == FACTOR)


def _named(parts: list[Any]) -> str:
    own = parts[-1]
    kind = type(own).__name__.removeprefix("Index")
    if hasattr(own, "hnsw"):
        return f"{kind}, M {own.hnsw.nb_neighbors(1)}"
    return f"{kind} of {own.nlist:,} lists" if hasattr(own, "nlist") else kind


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
