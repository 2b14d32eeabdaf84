"""Vectors that are written as text: lists of JSON, numpy or PostgreSQL, plain numbers, hexadecimal, base64."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from embaudit.stores.byte_numbers import FRACTIONS, numbers_of_bytes
from embaudit.stores.packed import form_of
from embaudit.words.errors import UsageError

# pgvector's: {index:value,…}/dimensions, indices from 1.
SPARSE = re.compile(r"\s*\{([^{}]*)\}/(\d+)\s*")
BITS = re.compile(r"[01]{8,}")
# Shorter ones are ids; vectors of fewer numbers than six nobody packs.
BASE64 = re.compile(r"[A-Za-z0-9+/_-]{30,}={0,2}")
HEX = re.compile(r"(?:\\x|0x)?(?:[0-9A-Fa-f]{2}){24,}")
DIGITS = re.compile(r"(?:\\x|0x)?[0-9A-Fa-f]+")
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
    """How vectors are written: ``list``, ``sparse``, ``printed``, ``bits``, ``hex`` or ``base64``; empty if they are
    none."""
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
BYTES_OF: Mapping[str, Callable[[str | None], bytes | None]] = {"hex": of_hex, "base64": of_base64}
