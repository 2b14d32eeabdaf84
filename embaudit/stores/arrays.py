"""A table of arrays that are in one file or object: a matrix of vectors, and what there is of each of its rows.

NumPy's files: a matrix in .npy, several arrays in .npz.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from embaudit.stores.nested import column_of, flat, is_prose, table_of_records
from embaudit.stores.pickled import arrays_with_objects
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.store import BATCH_ROWS, FETCH, LOOKED_AT, StoreColumn, StoreKind, StoreTable, Values, reported
from embaudit.words.errors import CorpusError, UsageError


def table_of_arrays(shown: str, arrays: Mapping[str, Any], **declared: Any) -> StoreTable:
    """A table of what has a row for each vector.

    Args:
        arrays: by name: matrices and lists, which may be read in slices.

    Raises:
        UsageError: if none is a matrix of numbers.
    """
    matrices = {name: one for name, one in arrays.items() if is_matrix(one)}
    if not matrices and (records := _by_id(arrays)):
        return table_of_records(shown, lambda: iter(records), rows=len(records), **declared)
    if not matrices:
        held = ", ".join(f"{name} ({_described(one)})" for name, one in list(arrays.items())[:20]) or "nothing"
        raise UsageError(
            f"{shown} holds no matrix with a row of numbers for each text: it has {held}.",
            next_step="Save a matrix (rows, dimensions).",
        )
    rows = max(len(one) for one in matrices.values())
    own = {name: one for name, one in arrays.items() if _length(one) == rows}
    columns = {}
    for name, one in own.items():
        some = [_plain(value) for value in one[:LOOKED_AT]] if name not in matrices else []
        columns[name] = _matrix(one) if name in matrices else column_of([value for value in some if value is not None])

    def read(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        for start in range(0, rows, BATCH_ROWS):
            end = start + BATCH_ROWS
            yield {
                name: as_floats(own[name][start:end])
                if name in matrices
                else [_plain(one) for one in own[name][start:end]]
                for name in names
            }

    texts = [
        name
        for name, column in columns.items()
        if column.what == "text" and is_prose([str(one) for one in column.some])
    ]
    if len(texts) == 1:
        # Whatever it is called: nothing else there is a text.
        declared.setdefault("text", texts[0])
    return StoreTable(shown, columns, read, rows=rows, **declared)


def _by_id(arrays: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of arrays that are vectors by id, or in a group for each id; none if they are something else."""
    groups: dict[str, dict[str, Any]] = {}
    for name, one in arrays.items():
        parent, _, leaf = name.rpartition(".")
        groups.setdefault(parent, {})[leaf] = one
    if len(groups) == 1 and len(arrays) > 1 and all(map(_is_vector, arrays.values())):
        is_one = len({_length(one) for one in arrays.values()}) == 1
        return [{"id": name, "vector": one[:]} for name, one in arrays.items()] if is_one else []
    if len(groups) == 1 or not all(any(map(_is_vector, one.values())) for one in groups.values()):
        return []
    return [
        {"id": parent, **{leaf: one[:] if _is_vector(one) else _plain(one) for leaf, one in group.items()}}
        for parent, group in groups.items()
    ]


def table_of_object(shown: str, content: Any, **declared: Any) -> StoreTable:
    """A table of what a program saved: a matrix, arrays by name, vectors by id, rows, or a frame.

    Raises:
        UsageError: if it is nothing of these.
    """
    if hasattr(content, "to_dict") and hasattr(content, "columns"):
        return table_of_records(
            shown, lambda: iter(content.reset_index().to_dict("records")), rows=len(content), **declared
        )
    content = _arrays_in(content)
    if is_matrix(content):
        return table_of_arrays(shown, {"vectors": content}, **declared)
    if isinstance(content, Mapping):
        named = dict(flat(content))
        if (
            named
            and len({_length(one) for one in named.values()}) == 1
            and all(map(_is_vector, named.values()))
            and len(named) > 1
        ):
            key = "text" if is_prose(list(map(str, content))) else "id"
            rows = [{key: name, "vector": one} for name, one in content.items()]
            return table_of_records(shown, lambda: iter(rows), rows=len(rows), **declared)
        if len(content) > 1 and all(
            isinstance(one, Mapping) and any(map(_is_vector, one.values())) for one in content.values()
        ):
            rows = [
                {"id": name, **{field: _listed(value) for field, value in one.items()}} for name, one in content.items()
            ]
            return table_of_records(shown, lambda: iter(rows), rows=len(rows), **declared)
        return table_of_arrays(shown, {name: _arrays_in(one) for name, one in named.items()}, **declared)
    if isinstance(content, list | tuple) and content and all(isinstance(one, Mapping) for one in content):
        rows = [{name: _listed(value) for name, value in one.items()} for one in content]
        return table_of_records(shown, lambda: iter(rows), rows=len(rows), **declared)
    if isinstance(content, list) and all(map(_is_row, content)) and len({len(one) for one in content}) == 1:
        rows = [{f"part {number}": _listed(value) for number, value in enumerate(one, 1)} for one in content]
        return table_of_records(shown, lambda: iter(rows), rows=len(rows), **declared)
    if isinstance(content, tuple | list):
        # Texts and vectors, as programs return them.
        return table_of_arrays(shown, {f"part {number}": one for number, one in enumerate(content, 1)}, **declared)
    raise UsageError(
        f"{shown} holds {_described(content)}, not vectors.", next_step="Save a matrix, arrays by name, or rows."
    )


def is_matrix(value: Any) -> bool:
    return len(getattr(value, "shape", ())) == 2 and _kind(value) in "iuf"


def as_floats(values: Any) -> np.ndarray:
    """A slice of a matrix as an array; bfloat16 as float32."""
    if hasattr(values, "detach"):
        values = values.detach()
        values = values.float() if str(values.dtype) == "torch.bfloat16" else values
    return np.array(values)


def _arrays_in(value: Any) -> Any:
    """A list of rows of numbers as a matrix; anything else as it is."""
    if isinstance(value, list | tuple) and value and all(map(_is_vector, value[:8])):
        try:
            found = np.array([np.asarray(one, dtype=np.float32) for one in value])
        except (TypeError, ValueError):
            return value
        return found if found.ndim == 2 else value
    return value


def _is_vector(value: Any) -> bool:
    if len(getattr(value, "shape", ())) == 1:
        return _kind(value) in "iuf" and len(value) > 1
    return isinstance(value, list | tuple) and len(value) > 1 and all(isinstance(one, int | float) for one in value[:8])


def _is_row(value: Any) -> bool:
    """Whether it is a text or the like beside a vector."""
    return isinstance(value, list | tuple) and any(map(_is_vector, value)) and not all(map(_is_vector, value))


def _listed(value: Any) -> Any:
    return as_floats(value) if hasattr(value, "detach") else value


def _kind(value: Any) -> str:
    name = str(getattr(value, "dtype", ""))
    return "f" if name.startswith("torch.") and "float" in name else getattr(getattr(value, "dtype", None), "kind", "?")


def _matrix(value: Any) -> StoreColumn:
    what = "whole numbers" if _kind(value) in "iu" else "vector"
    shown = str(value.dtype).removeprefix("torch.")
    return StoreColumn(f"matrix of item: {shown}", what, ([0] * value.shape[1],))  # type: ignore[arg-type]


def _length(value: Any) -> int:
    shape = getattr(value, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else -1
    return len(value) if isinstance(value, list | tuple) else -1


def _plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") and not getattr(value, "shape", ()) else value
    if isinstance(value, bytes):
        # Text in files that know no text.
        return value.decode("utf-8", errors="replace")
    return value


def _described(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if shape is not None:
        return f"{str(getattr(value, 'dtype', 'numbers')).removeprefix('torch.')} of shape {tuple(shape)}"
    return f"{type(value).__name__} of {len(value):,}" if hasattr(value, "__len__") else type(value).__name__


NPY, ZIP = b"\x93NUMPY", b"PK\x03\x04"


class _Slices:
    """The matrix of a .npy file, read in slices: pages of a mapped file would count as this program's memory."""

    def __init__(self, mapped: np.memmap[Any, Any]) -> None:
        self._mapped = mapped
        self._file = str(mapped.filename)
        self.shape, self.dtype = mapped.shape, mapped.dtype

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: slice) -> np.ndarray:
        if not self._mapped.flags.c_contiguous:
            return np.array(self._mapped[rows])
        start, end, _ = rows.indices(len(self))
        width = int(self.shape[1])
        offset = self._mapped.offset + start * width * self.dtype.itemsize
        return np.fromfile(self._file, self.dtype, (end - start) * width, offset=offset).reshape(-1, width)


def open_npy(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A matrix; its texts are in a file beside it (``--texts``)."""
    with reported(place.shown):
        try:
            vectors = np.load(place.path, mmap_mode="r", allow_pickle=False)
        except (EOFError, ValueError, zipfile.BadZipFile) as error:
            if "allow_pickle" in str(error):
                raise _of_objects(place) from error
            raise _unreadable(place, error) from error
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or vectors.dtype.kind not in "iuf":
        raise UsageError(
            f"{place.shown} holds {getattr(vectors, 'dtype', 'no array')} of shape {getattr(vectors, 'shape', '?')}, "
            "not one row of numbers for each text.",
            next_step="Save a matrix (rows, dimensions): numpy.save(FILE, vectors)",
        )
    matrix = _Slices(vectors) if isinstance(vectors, np.memmap) else vectors
    return table_of_arrays(place.shown, {place.path.name: matrix}, vector=place.path.name)


def open_npz(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The arrays of one length: a matrix, and texts and ids if they are arrays of text."""
    arrays: dict[str, Any] = {}
    with reported(place.shown):
        try:
            with np.load(place.path, allow_pickle=False) as found:
                for name in found.files:
                    arrays[name] = found[name]
        except (EOFError, zipfile.BadZipFile) as error:
            raise _unreadable(place, error) from error
        except ValueError as error:
            if "allow_pickle" not in str(error):
                raise _unreadable(place, error) from error
            try:
                arrays = arrays_with_objects(place.path)
            except Exception as why:
                raise _of_objects(place) from why
    if len(arrays) > 1 and not any(map(is_matrix, arrays.values())):
        # A vector under each id.
        return table_of_object(place.shown, arrays)
    return table_of_arrays(place.shown, arrays)


def _of_objects(place: StorePlace) -> UsageError:
    return UsageError(
        f"{place.shown} holds an array of Python objects, which only unpickling reads, and that may run code.",
        kept="Nothing was opened.",
        next_step="Save a matrix of numbers and texts as text: numpy.savez(FILE, vectors=numpy.stack(vectors), "
        "texts=numpy.array(texts, dtype=str))",
    )


def _unreadable(place: StorePlace, error: Exception) -> CorpusError:
    return CorpusError(f"{place.shown} cannot be read: {error}.", next_step=FETCH)


KINDS = (
    StoreKind(
        name="NumPy",
        recognises=lambda place: place.suffix == ".npy" or place.head.startswith(NPY),
        open=open_npy,
        looks=".npy",
        tried="numpy's files",
    ),
    StoreKind(
        name="NumPy",
        recognises=lambda place: place.suffix == ".npz",
        open=open_npz,
        looks=".npz",
        tried="numpy's files",
    ),
)
