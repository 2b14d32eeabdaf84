"""Which part of a store is meant: the collection, table or split that was named, or the only one."""

from __future__ import annotations

from collections.abc import Sequence

from embaudit.stores.place import SeveralParts
from embaudit.words.errors import UsageError, hint
from embaudit.words.sentences import first_of

LISTED = 12


class NoSuchPart(UsageError):
    """A part that a place has not; those that it has are ``parts``."""

    parts: tuple[str, ...] = ()


def part_meant(names: Sequence[str], asked: str | None, shown: str, what: str = "collection") -> str:
    """The part that was asked for, or the only one.

    Args:
        names: of all parts.
        what: a part is called.

    Raises:
        UsageError: if there is none, it is not among them, or several may be meant.
    """
    if not names:
        raise UsageError(f"{shown} has no {what}.", next_step="Check that this is the store that is meant.")
    if asked is not None and asked not in names:
        error = NoSuchPart(
            f"{shown} has no {what} {asked!r}{hint(asked, sorted(names)[:LISTED])}.", next_step="Name it: --from NAME"
        )
        error.parts = tuple(names)
        raise error
    if asked is None and len(names) > 1:
        some = sorted(names)
        raise SeveralParts(
            f"{shown} has {len(names):,} {what}s: {first_of(some, LISTED)}.",
            next_step=f"Name the one that is meant: --from {some[0]}",
            names=some,
        )
    return names[0] if asked is None else asked
