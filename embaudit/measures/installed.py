"""Measures that other packages bring: entry points of the group ``embaudit.measures`` (docs/measures.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from embaudit.measures.measure import Measure
from embaudit.system.installed import installed, unusable

GROUP = "embaudit.measures"


def installed_measures(own: Collection[Measure]) -> Iterator[Measure]:
    """The measures of other packages.

    Args:
        own: embaudit's measures, whose names are taken.

    Raises:
        UsageError: if one cannot be imported, is no ``Measure``, or takes a name that is taken.
    """
    names = {one.name for one in own}
    for entry, measure in installed(GROUP, Measure, "measure"):
        if measure.name in names or not measure.name.isidentifier():
            raise unusable(entry, "measure", f"its name, {measure.name!r}, is taken or no Python name")
        names.add(measure.name)
        yield measure
