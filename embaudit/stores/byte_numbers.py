"""What bytes are: vectors of float32, float64, float16, bfloat16, int8, or bits; told by what the numbers look like.

Nothing in the bytes says it. Read as another type, a vector's numbers are wild: exponents become parts of fractions, so
that magnitudes spread over many powers of ten, or are not finite.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embaudit.stores.place import SeveralFit
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
    fit = [name for name in BYTES_EACH if not width % max(1, BYTES_EACH[name]) and _is_likely(same, name)]
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


def _is_likely(rows: Sequence[bytes], name: str) -> bool:
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
