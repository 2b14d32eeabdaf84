"""The one list of measures, in the order in which an audit runs and shows them, and those that other packages bring.

Those come by entry points of the group ``embaudit.measures`` (docs/measures.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Annotated

from pydantic import AfterValidator

from embaudit.measures import (
    attractors,
    chunks,
    compression,
    geometry,
    impact,
    integrity,
    languages,
    layers,
    length,
    meaning,
    mitigation,
    occurrence,
    placement,
    position,
    quality,
    socm,
    sticky,
    surface,
    tempscale,
)
from embaudit.measures.measure import Measure, MeasureSettings
from embaudit.system.files import installed, unusable

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


__all__ = ["DEFAULT_MEASURES", "MEASURES", "Measure", "MeasureName", "MeasureSettings"]

# The only place that lists them.
_OWN = (
    # First: with a broken checkpoint, no other figure means anything.
    integrity.MEASURE,
    quality.MEASURE,
    sticky.MEASURE,
    socm.MEASURE,
    layers.MEASURE,
    geometry.MEASURE,
    surface.MEASURE,
    meaning.MEASURE,
    position.MEASURE,
    attractors.MEASURE,
    compression.MEASURE,
    chunks.MEASURE,
    languages.MEASURE,
    length.MEASURE,
    tempscale.MEASURE,
    occurrence.MEASURE,
    placement.MEASURE,
    impact.MEASURE,
    mitigation.MEASURE,
)
MEASURES: dict[str, Measure] = {measure.name: measure for measure in (*_OWN, *installed_measures(_OWN))}
DEFAULT_MEASURES = tuple(name for name, measure in MEASURES.items() if measure.is_default)


def _known(name: str) -> str:
    if name not in MEASURES:
        raise ValueError(f"no measure is called {name!r}; choose from {', '.join(MEASURES)}")
    return name


MeasureName = Annotated[str, AfterValidator(_known)]
