"""Suggestions for mistyped names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from embaudit.words.sentences import listing


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name closest to ``name``, or None if none is close."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1)), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``Did you mean NAME? ``, to be followed by another sentence; empty if no name is close."""
    near = closest(name, known)
    return f"Did you mean {near}? " if near else ""


def hint(name: str, known: Iterable[str]) -> str:
    """The end of a sentence: the closest name, or all known names if none is close."""
    names = list(known)
    near = closest(name, names)
    return f"; did you mean {near}?" if near else f"; there are {listing(names)}"
