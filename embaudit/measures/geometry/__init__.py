"""Geometry: how the served vectors of a corpus fill their space: anisotropy, rank, dominant dimensions and hubs.

The entry point is ``measure_geometry``; sources and equations are in ``figures``.
"""

from __future__ import annotations

from embaudit.measures.geometry.settings import GeometrySettings
from embaudit.measures.geometry.tables import ROWS
from embaudit.measures.measure import Measure, Parts

# Increase this when values change: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 3


def _parts() -> Parts:
    from embaudit.measures.geometry import findings, page, steps

    return Parts(measure=steps.measure, findings=findings.findings, page=page)


MEASURE = Measure(
    name="geometry",
    package=__name__,
    question="How do the vectors of a corpus fill their space?",
    parts=_parts,
    settings=GeometrySettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"geometry": ("mean_cosine", "effective_rank")},
    # It encodes every text once more, which takes seconds that a first look should not cost.
    is_default=False,
    shown_tables=("geometry", "geometry_dimension"),
)
