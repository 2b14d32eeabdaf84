"""Reads what an ONNX file is made of: its operators and weights, and the other files that it names. Nothing is run.

An ONNX file is a protocol buffer: fields of a number, a wire type and a value. Lengths are checked against what is
there, and nothing is read that is not asked for, so that a stranger's file costs neither memory nor trust.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path, PureWindowsPath
from typing import Literal

import numpy as np

from embaudit.checkpoint.files import refuse_pointers
from embaudit.words.errors import CheckpointError

Precision = Literal["float32", "float16", "bfloat16", "int8", "int4"]
# TensorProto's data types: as numpy reads them (bfloat16 as its bits), bits of a number.
FLOATS: Mapping[int, tuple[Precision, str]] = {
    1: ("float32", "<f4"),
    10: ("float16", "<f2"),
    11: ("float32", "<f8"),
    16: ("bfloat16", "<u2"),
}
BYTES, HALF_BYTES, FLOAT8 = (2, 3), (21, 22, 23), (17, 18, 19, 20)
BITS = {1: 32, 2: 8, 3: 8, 4: 16, 5: 16, 6: 32, 7: 64, 9: 8, 10: 16, 11: 64, 12: 32, 13: 64, 16: 16}
BITS |= dict.fromkeys(FLOAT8, 8) | dict.fromkeys(HALF_BYTES, 4)
# What works with weights of so many bits.
FOUR_BITS = frozenset({"MatMulNBits", "MatMulBnb4", "GatherBlockQuantized"})
EIGHT_BITS = frozenset(
    {
        *("MatMulInteger", "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "QLinearMatMul", "QGemm", "QAttention"),
        *("QEmbedLayerNormalization", "DequantizeLinear", "DynamicQuantizeLinear", "QOrderedMatMul"),
    }
)
# Rounds what goes through the network, too, and not its weights alone.
ROUNDS_STATES = frozenset(EIGHT_BITS - {"DequantizeLinear", "MatMulIntegerToFloat", "QEmbedLayerNormalization"})
DEEPEST = 32
REFETCH = "Download it again, or export it again from the weights."


class UnsafeFile(CheckpointError):
    """A file that would have what lies outside the checkpoint read."""


@dataclass(frozen=True)
class StoredWeight:
    """One tensor of an ONNX file: ``size`` bytes from ``start`` on; in ``file``, if not in the ONNX file itself.

    Attributes:
        kind: its number among TensorProto's data types.
    """

    name: str
    kind: int
    shape: tuple[int, ...]
    file: str
    start: int
    size: int

    @property
    def entries(self) -> int:
        return prod(self.shape)

    @property
    def has_values(self) -> bool:
        """Whether its values are floating-point numbers that stand in one piece."""
        return self.kind in FLOATS and (bool(self.file) or self.size * 8 == self.entries * BITS[self.kind])


@dataclass(frozen=True)
class OnnxFile:
    """What is in an ONNX file.

    Attributes:
        producer: what wrote it, with its version; empty if it does not say.
        operators: the kinds of its nodes.
        weights: its tensors, those of nested graphs too.
        others: the files that it reads weights from, as it names them.
    """

    path: Path
    producer: str = ""
    operators: frozenset[str] = frozenset()
    weights: tuple[StoredWeight, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def precision(self) -> Precision:
        """In which most of its weights are, or with which its operators work."""
        bits: dict[Precision, int] = {"int4": 0, "int8": 0, "float16": 0, "bfloat16": 0, "float32": 0}
        for weight in self.weights:
            if weight.kind in HALF_BYTES:
                bits["int4"] += weight.entries
            elif weight.kind in (*BYTES, *FLOAT8):
                bits["int8"] += weight.entries
            elif weight.kind in FLOATS:
                bits[FLOATS[weight.kind][0]] += weight.entries
        if self.operators & FOUR_BITS or bits["int4"] > max(bits.values()) / 2:
            return "int4"
        if self.operators & EIGHT_BITS and bits["int8"]:
            return "int8"
        return max(bits, key=lambda name: bits[name]) if any(bits.values()) else "float32"

    @property
    def rounds_states(self) -> bool:
        return bool(self.operators & ROUNDS_STATES)

    def whole_numbers(self, weight: StoredWeight, most: int) -> np.ndarray | None:
        """The first ``most`` values of a tensor of bytes, int8 or uint8; None of any other."""
        is_whole = bool(weight.file) or weight.size == weight.entries
        if weight.kind not in BYTES or not is_whole:
            return None
        return self._read(weight, most, "i1" if weight.kind == 3 else "u1")

    def values(self, weight: StoredWeight, most: int) -> np.ndarray:
        """The first ``most`` values of a tensor that ``has_values``, float32."""
        read = self._read(weight, most, FLOATS[weight.kind][1])
        if weight.kind == 16:
            return (read.astype(np.uint32) << 16).view(np.float32)
        return read.astype(np.float32)

    def _read(self, weight: StoredWeight, most: int, kind: str) -> np.ndarray:
        path = self.path.parent / weight.file if weight.file else self.path
        with path.open("rb") as opened:
            opened.seek(weight.start)
            return np.frombuffer(opened.read(min(weight.entries, most) * np.dtype(kind).itemsize), dtype=kind)


def read_onnx(path: Path, folder: Path) -> OnnxFile:
    """What is in an ONNX file, which is safe to load after this.

    Args:
        folder: the checkpoint's, outside of which no weights may lie.

    Raises:
        UnsafeFile: if it names weights outside the checkpoint.
        CheckpointError: if it is a git-lfs pointer, broken or cut off, or names weights that are missing or cut off.
    """
    refuse_pointers(path.parent, [path])
    found = _Found()
    try:
        with path.open("rb") as opened:
            # Read where it is looked at; closed with the last view of it.
            data = memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
        _read_model(data, found)
    except _Broken as error:
        raise CheckpointError(f"{path} is no whole ONNX file: {error}.", next_step=REFETCH) from error
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}.", next_step=REFETCH) from error
    if not found.operators:
        raise CheckpointError(f"{path} is no whole ONNX file: it has no operators.", next_step=REFETCH)
    others = tuple(dict.fromkeys(found.others))
    for name in others:
        _require_inside(path, name, folder)
    weights = [_in_its_file(path, weight) for weight in found.weights]
    producer = " ".join(part for part in (found.producer, found.version) if part)
    return OnnxFile(path, producer, frozenset(found.operators), tuple(weights), others)


def _require_inside(path: Path, name: str, folder: Path) -> None:
    """Refuse a file of weights that is missing, no file, or not the checkpoint's own."""
    parts = PureWindowsPath(name)
    outside = not name or "\0" in name or parts.drive or parts.root or name.startswith("/") or ".." in parts.parts
    other = path.parent / name
    if not outside:
        # The hub's cache has links to files beside each other in another folder.
        target = other.resolve()
        outside = not target.is_relative_to(folder.resolve()) and target.parent != path.resolve().parent
    if outside:
        raise UnsafeFile(
            f"{path} reads weights from outside the checkpoint ({name!r}): it is not loaded.",
            next_step="Do not trust this checkpoint, or export the file again.",
        )
    if not other.is_file():
        raise CheckpointError(f"{path} has its weights in {name}, which is missing.", next_step=REFETCH)
    refuse_pointers(path.parent, [other])


def _in_its_file(path: Path, weight: StoredWeight) -> StoredWeight:
    """The same, with the size of what it names; refused if that is not there."""
    if not weight.file:
        return weight
    there = (path.parent / weight.file).stat().st_size
    needed = weight.entries * BITS.get(weight.kind, 8) // 8
    if weight.start < 0 or weight.start + max(weight.size, needed) > there:
        raise CheckpointError(
            f"{path} has weights in {weight.file} beyond its end: that file is cut off, or of another export.",
            next_step=REFETCH,
        )
    return weight


class _Broken(ValueError):
    """The bytes are no protocol buffer of this kind; the message says why, as the end of a sentence."""


@dataclass
class _Found:
    producer: str = ""
    version: str = ""
    operators: set[str] = field(default_factory=set)
    weights: list[StoredWeight] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def _read_model(data: memoryview, found: _Found, offset: int = 0) -> None:
    """ModelProto: producer, graph, functions, graphs for training."""
    for number, start, value in fields_of(data, offset):
        if number == 2:
            found.producer = _text(value)
        elif number == 3:
            found.version = _text(value)
        elif number == 7:
            _read_graph(_message(value), found, start, 0)
        elif number == 25:  # FunctionProto
            for inner, at, node in fields_of(_message(value), start):
                if inner == 7:
                    _read_node(_message(node), found, at, 0)
        elif number == 20:  # TrainingInfoProto: two graphs
            for inner, at, graph in fields_of(_message(value), start):
                if inner in (1, 2):
                    _read_graph(_message(graph), found, at, 0)


def _read_graph(data: memoryview, found: _Found, offset: int, depth: int) -> None:
    if depth > DEEPEST:
        raise _Broken("its graphs are nested too deep")
    for number, start, value in fields_of(data, offset):
        if number == 1:
            _read_node(_message(value), found, start, depth)
        elif number == 5:
            _read_tensor(_message(value), found, start)
        elif number == 15:
            _read_sparse(_message(value), found, start)


def _read_node(data: memoryview, found: _Found, offset: int, depth: int) -> None:
    for number, start, value in fields_of(data, offset):
        if number == 4:
            found.operators.add(_text(value))
        elif number == 5:  # AttributeProto
            for inner, at, attribute in fields_of(_message(value), start):
                if inner in (5, 10):
                    _read_tensor(_message(attribute), found, at)
                elif inner in (6, 11):
                    _read_graph(_message(attribute), found, at, depth + 1)
                elif inner in (22, 23):
                    _read_sparse(_message(attribute), found, at)


def _read_sparse(data: memoryview, found: _Found, offset: int) -> None:
    for number, start, value in fields_of(data, offset):
        if number in (1, 2):
            _read_tensor(_message(value), found, start)


def _read_tensor(data: memoryview, found: _Found, offset: int) -> None:
    shape: list[int] = []
    kind, name, start, size = 0, "", 0, 0
    named: dict[str, str] = {}
    for number, at, value in fields_of(data, offset):
        if number == 1:
            shape += [value] if isinstance(value, int) else _numbers(value)
        elif number == 2 and isinstance(value, int):
            kind = value
        elif number == 8:
            name = _text(value)
        elif number in (4, 9) and not isinstance(value, int):  # float_data in one piece, or raw_data
            start, size = at, len(value)
        elif number == 13:
            entry = {inner: part for inner, _, part in fields_of(_message(value), at)}
            key, what = (_text(entry.get(inner, memoryview(b""))) for inner in (1, 2))
            named[key] = what
            if key == "location":
                found.others.append(what)
    file = named.get("location", "")
    if "location" in named:
        start, size = (_whole(named.get(key, "0")) for key in ("offset", "length"))
    if any(length < 0 for length in shape):
        raise _Broken(f"the tensor {name!r} has a negative size")
    found.weights.append(StoredWeight(name, kind, tuple(shape), file, start, size))


def fields_of(data: memoryview, offset: int) -> Iterator[tuple[int, int, int | memoryview]]:
    """(number, where it starts in the file, value) of every field of a message."""
    place, end = 0, len(data)
    while place < end:
        tag, place = whole_number(data, place)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise _Broken("what should be a field is none")
        if wire == 0:
            value, place = whole_number(data, place)
            yield number, offset + place, value
            continue
        if wire == 2:
            length, place = whole_number(data, place)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise _Broken("a field has an unknown type")
        if length > end - place:
            raise _Broken("it ends in the middle")
        yield number, offset + place, data[place : place + length]
        place += length


def whole_number(data: memoryview, place: int) -> tuple[int, int]:
    """A whole number of seven bits a byte, and where it ends."""
    value = shift = 0
    while True:
        if place >= len(data):
            raise _Broken("it ends in the middle")
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value - (1 << 64) if value >= 1 << 63 else value, place
        shift += 7
        if shift > 63:
            raise _Broken("a number is too long")


def _numbers(data: memoryview) -> list[int]:
    found, place = [], 0
    while place < len(data):
        value, place = whole_number(data, place)
        found.append(value)
    return found


def _message(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise _Broken("a number stands where a message should")
    return value


def _text(value: int | memoryview) -> str:
    try:
        return bytes(_message(value)).decode("utf-8")
    except UnicodeDecodeError as error:
        raise _Broken("a name is no text") from error


def _whole(written: str) -> int:
    try:
        return int(written)
    except ValueError as error:
        raise _Broken(f"{written!r} is no place in a file") from error
