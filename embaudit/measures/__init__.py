"""The measures that there are, in the order in which an audit runs and shows them."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from embaudit.measures import layers, length, socm, sticky, tempscale
from embaudit.measures.measure import Measure, MeasureSettings

__all__ = ["DEFAULT_MEASURES", "MEASURES", "Measure", "MeasureName", "MeasureSettings"]

MEASURES: dict[str, Measure] = {
    module.MEASURE.name: module.MEASURE for module in (sticky, socm, layers, length, tempscale)
}
DEFAULT_MEASURES = tuple(name for name, measure in MEASURES.items() if measure.is_default)


def _known(name: str) -> str:
    if name not in MEASURES:
        raise ValueError(f"no measure is called {name!r}; there are {', '.join(MEASURES)}")
    return name


MeasureName = Annotated[str, AfterValidator(_known)]
