"""All measures, in the order in which an audit runs and shows them."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

from pydantic import AfterValidator

from embaudit.measures.measure import Measure, MeasureSettings

__all__ = ["DEFAULT_MEASURES", "MEASURES", "Measure", "MeasureName", "MeasureSettings"]

# Their folders; the only place that lists all of them.
NAMES = (
    # First: with a broken checkpoint, no other figure means anything.
    "integrity",
    "quality",
    "sticky",
    "socm",
    "layers",
    "geometry",
    "length",
    "tempscale",
    "occurrence",
    "placement",
    "impact",
    "mitigation",
)
MEASURES: dict[str, Measure] = {name: import_module(f"{__name__}.{name}").MEASURE for name in NAMES}
DEFAULT_MEASURES = tuple(name for name, measure in MEASURES.items() if measure.is_default)


def _known(name: str) -> str:
    if name not in MEASURES:
        raise ValueError(f"no measure is called {name!r}; choose from {', '.join(MEASURES)}")
    return name


MeasureName = Annotated[str, AfterValidator(_known)]
