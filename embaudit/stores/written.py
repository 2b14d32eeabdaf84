"""Lists that hold nothing but one vector or text.

Vectors that are written as text: lists of JSON, numpy or PostgreSQL, plain numbers, hexadecimal, base64, bytes.

What bytes are: vectors of float32, float64, float16, bfloat16, int8, or bits; told by what the numbers look like.

Nothing in the bytes says it. Read as another type, a vector's numbers are wild: exponents become parts of fractions, so
that magnitudes spread over many powers of ten, or are not finite.
"""

from __future__ import annotations

import ast
import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embaudit.stores.nested import column_of, listed
from embaudit.stores.place import SeveralFit
from embaudit.stores.store import StoreTable, Values
from embaudit.stores.tensors import form_of
from embaudit.words.errors import UsageError
from embaudit.words.sentences import listing

BYTES_EACH = {"float64": 8.0, "float32": 4.0, "float16": 2.0, "bfloat16": 2.0, "int8": 1.0, "bits": 1 / 8}
FRACTIONS = ("float64", "float32", "bfloat16", "float16")
# Vectors are of about unit length, or of about a number a dimension.
SMALLEST, LARGEST = 1e-5, 1e3
# Of the numbers of real vectors, hardly one in a hundred lies three powers of ten below the median.
WILD = 0.05
# |x| of int8 that quantises bell-shaped numbers has its median well below that of arbitrary bytes, 64.
SMALL_WHOLE = 48
DECIMALS = 6


def read_bytes(rows: Sequence[bytes], numbers: str) -> np.ndarray:
    """(n, D) of rows with as many bytes each; bits stay packed (uint8)."""
    packed = np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1)
    match numbers:
        case "bits":
            return packed
        case "bfloat16":
            return (packed.view("<u2").astype(np.uint32) << 16).view(np.float32)
        case "int8":
            return packed.view(np.int8)
    return packed.view(np.dtype(numbers).newbyteorder("<"))


def numbers_of_bytes(some: Sequence[bytes], column: str, dimension: int | None = None, asked: str | None = None) -> str:
    """The type of the numbers that these bytes hold.

    Args:
        some: values of one column, none of them empty.
        dimension: of the function that is compared with.
        asked: the type that the user named.

    Raises:
        UsageError: if several fit, or none does.
    """
    width = len(some[0])
    if asked is not None:
        if asked not in BYTES_EACH:
            raise UsageError(f"There are no numbers {asked!r}.", next_step=f"There are {listing(BYTES_EACH)}.")
        if width % max(1, BYTES_EACH[asked]):
            raise UsageError(
                f"Column {column!r} has values of {width:,} bytes, which are no whole number of {asked}.",
                next_step=f"There are {listing(BYTES_EACH)}; without one, it is told from the bytes.",
            )
        return asked
    same = [one for one in some if len(one) == width]
    fit = [name for name in BYTES_EACH if not width % max(1, BYTES_EACH[name]) and is_likely(same, name)]
    if dimension is not None and (own := [name for name in fit if width / BYTES_EACH[name] == dimension]):
        fit = own
    # Numbers that look like those of a vector do not look so by chance; any bytes may be int8 or bits.
    fit = [name for name in fit if name in FRACTIONS] or fit
    # Numbers that a person wrote are short as float64: 0.1, 0.25. None is by chance.
    if len(fit) > 1 and "float64" in fit and _are_written(read_bytes(same, "float64")):
        fit = ["float64"]
    if dimension is not None and not fit:
        fit = [name for name in ("int8", "bits") if width / BYTES_EACH[name] == dimension]
    if len(fit) != 1:
        each = "; ".join(f"{name}, {width / BYTES_EACH[name]:,.0f} numbers" for name in fit)
        raise SeveralFit(
            f"Column {column!r} has values of {width:,} bytes, which may be {each}."
            if fit
            else f"Column {column!r} has values of {width:,} bytes, which look like no vector's numbers.",
            next_step=f"Say what they are: --numbers {fit[0] if fit else 'float32'}",
        )
    return fit[0]


def _are_written(values: np.ndarray) -> bool:
    """Whether every number has few decimals."""
    return all(value == round(value, DECIMALS) for value in values.ravel().tolist())


def is_likely(rows: Sequence[bytes], name: str) -> bool:
    """Whether these bytes, read so, look like vectors."""
    if name == "bits":
        return True
    values = read_bytes(rows, name)
    with np.errstate(all="ignore"):
        sizes = np.abs(values.astype(np.float64)).ravel()
    if name == "int8":
        return bool(np.median(sizes) <= SMALL_WHOLE)
    own = sizes[sizes > 0]
    # A float32 that holds a half-precision number has zeros in every second place, read as that.
    if len(own) < 0.6 * len(sizes) or not np.isfinite(own).all():
        return False
    median = float(np.median(own))
    wild = np.mean((own < median * 1e-3) | (own > max(median, SMALLEST) * 1e4))
    return SMALLEST <= median <= LARGEST and bool(wild <= WILD)


DEEPEST = 3


def with_single(table: StoreTable) -> StoreTable:
    """The table with what a list has alone in it: a vector, ``[[0.1, …]]``, or a text; and with numbers as text."""
    single = {name for name, column in table.columns.items() if column.some and all(map(_is_single, column.some))}
    if not single:
        return table
    columns = {
        name: column_of([_only(one) for one in column.some]) if name in single else column
        for name, column in table.columns.items()
    }

    def read(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        for batch in table.read(names):
            yield {
                name: [_only(one) for one in listed(batch[name])] if name in single else batch[name] for name in names
            }

    return replace(table, columns=columns, read=read)


def _is_single(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], list | str) and _only(value) is not value


def _only(value: Any) -> Any:
    """The list of numbers, or the text, that is alone in a list; the value itself if there is something else in it."""
    own = value
    for _ in range(DEEPEST):
        if not (isinstance(own, list) and len(own) == 1 and isinstance(own[0], list | str)):
            break
        own = own[0]
    if isinstance(own, list) and len(own) >= FEWEST and all(isinstance(one, str) for one in own):
        try:
            return [float(one) for one in own]
        except ValueError:
            return value
    return own if isinstance(own, str) or (isinstance(own, list) and own and isinstance(own[0], int | float)) else value


# pgvector's: {index:value,…}/dimensions, indices from 1.
SPARSE = re.compile(r"\s*\{([^{}]*)\}/(\d+)\s*")
BITS = re.compile(r"[01]{8,}")
# Shorter ones are ids; vectors of fewer numbers than six nobody packs.
BASE64 = re.compile(r"[A-Za-z0-9+/_-]{30,}={0,2}")
HEX = re.compile(r"(?:\\x|0x)?(?:[0-9A-Fa-f]{2}){24,}")
DIGITS = re.compile(r"(?:\\x|0x)?[0-9A-Fa-f]+")
# Letters that no text is full of, and bytes are.
WIDE = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")
CUT = ("...", "…")
# What programs print around a list: array([…], dtype=float32), tensor(…).
CALLED = re.compile(r"[\w.]{1,40}\(")
GIVEN = re.compile(r"(?:,\s*\w+=[^,()\[\]]*)*\)\s*$")
CLOSED = {"[": "]", "{": "}", "(": ")", "<": ">"}
SEPARATOR = re.compile(r"[\s,;|]+")
NOTHING = ("null", "none", "nan")
# Numbers without brackets: fewer are coordinates, versions or the like.
FEWEST = 8


def text_form(texts: Sequence[str]) -> str:
    """How vectors are written: ``list``, ``sparse``, ``printed``, ``bits``, ``hex``, ``base64``, ``bytes`` or
    ``latin1``; empty if they are none."""
    first = [one.strip() for one in texts]
    if all(one[:1] == "[" and one[-1:] == "]" for one in first):
        full = [one for one in texts if one.strip() != "[]"][:3] or texts[:3]
        return "list" if all(_is_list(one) or any(mark in one for mark in CUT) for one in full) else ""
    if all(SPARSE.fullmatch(one) for one in texts):
        return "sparse"
    if all(BITS.fullmatch(one) for one in texts) and len({len(one) for one in texts}) == 1:
        return "bits"
    if all(_printed(one) is not None for one in first):
        return "printed"
    if all(one[:2] in ("b'", 'b"') for one in first):
        return "bytes" if _is_packed(first, of_repr) else ""
    if len({len(one) for one in texts}) == 1 and any(WIDE.search(one) for one in texts):
        return "latin1" if _is_packed(texts, of_latin) else ""
    if all(map(DIGITS.fullmatch, first)):
        # Of any length; short ones are ids, and none is base64.
        return "hex" if all(map(HEX.fullmatch, first)) and _is_packed(first, of_hex) else ""
    return "base64" if all(map(BASE64.fullmatch, first)) and _is_packed(first, of_base64) else ""


def parsed(text: str | None) -> list[Any] | None:
    """A vector that is written as text, as JSON, pgvector or numpy do; None if this is something else."""
    if not text:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return _spaced(text)
    return found if isinstance(found, list) else None


def _list_of(value: Any) -> list[Any] | None:
    """A list that is written as text, or that is one."""
    found = value if isinstance(value, list) else parsed(value) if isinstance(value, str) else None
    return found[0] if found and len(found) == 1 and isinstance(found[0], list) else found


def _is_list(text: str) -> bool:
    """Whether a text is a list, and not one of words."""
    found = _list_of(text)
    return found is not None and not any(isinstance(one, str) and _spaced(one) is None for one in found[:3])


def _spaced(text: str) -> list[float] | None:
    """``[0.1 0.2]``, in lines or not."""
    try:
        return [float(one) for one in text.strip().removeprefix("[").removesuffix("]").split()] or None
    except ValueError:
        return None


def _printed(text: Any) -> list[float | None] | None:
    """``{0.1,0.2}``, ``array([0.1, 0.2], dtype=float32)``, ``0.1 0.2 …``."""
    if isinstance(text, list):
        return text
    own = text.strip() if isinstance(text, str) else ""
    if (called := CALLED.match(own)) and own.endswith(")"):
        own = GIVEN.sub("", own[called.end() :]).strip()
    is_closed = CLOSED.get(own[:1]) == own[-1:] != ""
    numbers = SEPARATOR.split((own[1:-1] if is_closed else own).strip(" ,;|\n\t"))
    if len(numbers) < (2 if is_closed else FEWEST):
        return None
    try:
        return [None if one.lower() in NOTHING else float(one) for one in numbers]
    except ValueError:
        return None


def _sparse(text: str | None) -> list[float] | None:
    found = SPARSE.fullmatch(text or "")
    if not found:
        return None
    vector = [0.0] * int(found[2])
    for part in filter(None, found[1].split(",")):
        place, _, value = part.partition(":")
        vector[int(place) - 1] = float(value)
    return vector


def _bits(text: str | None) -> np.ndarray | None:
    """Bits packed in bytes, as they are compared."""
    if not text or len(text) % 8:
        return None
    return np.packbits(np.frombuffer(text.encode(), np.uint8) - ord("0"))


def of_hex(text: str | None) -> bytes | None:
    try:
        return None if text is None else bytes.fromhex(text.strip().removeprefix("\\x").removeprefix("0x"))
    except ValueError:
        return None


def of_base64(text: str | None) -> bytes | None:
    """Of either alphabet, with what fills it up at the end or without."""
    if text is None:
        return None
    plain = text.strip().rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        return None


def of_repr(text: str | None) -> bytes | None:
    """Of bytes as Python prints them: ``b'\\x00\\x01'``."""
    try:
        found = ast.literal_eval(text.strip()) if text else None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return found if isinstance(found, bytes) else None


def of_latin(text: str | None) -> bytes | None:
    """Of bytes that were read as text, a letter each."""
    try:
        return None if text is None else text.encode("latin-1")
    except UnicodeEncodeError:
        return None


def _is_packed(texts: Sequence[str], bytes_of: Callable[[str], bytes | None]) -> bool:
    raw = [bytes_of(one) for one in texts]
    own = [one for one in raw if one]
    try:
        return len(own) == len(raw) and (form_of(own, "") is not None or numbers_of_bytes(own, "") in FRACTIONS)
    except UsageError:
        return False


LISTS_OF: Mapping[str, Callable[[Any], Any]] = {
    "list": _list_of,
    "printed": _printed,
    "sparse": _sparse,
    "bits": _bits,
}
BYTES_OF: Mapping[str, Callable[[str | None], bytes | None]] = {
    "hex": of_hex,
    "base64": of_base64,
    "bytes": of_repr,
    "latin1": of_latin,
}
