"""Measures that other packages bring: entry points of the group ``embaudit.measures`` (docs/measures.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from importlib.metadata import EntryPoint, entry_points

from embaudit.errors import UsageError
from embaudit.measures.measure import Measure

GROUP = "embaudit.measures"


def installed_measures(own: Collection[Measure]) -> Iterator[Measure]:
    """The measures of other packages, by name, so that their order does not depend on the order of installation.

    Args:
        own: embaudit's measures, whose names are taken.

    Raises:
        UsageError: if one cannot be imported, is no ``Measure``, or takes a name that is taken.
    """
    names = {one.name for one in own}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        measure = _loaded(entry)
        if measure.name in names or not measure.name.isidentifier():
            raise _unusable(entry, f"its name, {measure.name!r}, is taken or no Python name")
        names.add(measure.name)
        yield measure


def _loaded(entry: EntryPoint) -> Measure:
    try:
        measure = entry.load()
    except Exception as error:
        raise _unusable(entry, f"{type(error).__name__}: {error}") from error
    if not isinstance(measure, Measure):
        raise _unusable(entry, f"{entry.value} is a {type(measure).__name__}, not a Measure")
    return measure


def _unusable(entry: EntryPoint, why: str) -> UsageError:
    package = entry.dist.name if entry.dist else entry.module
    return UsageError(
        f"The measure {entry.name} of the package {package} cannot be used: {why}.",
        next_step=f"Repair the package, or uninstall it: pip uninstall {package}",
    )
