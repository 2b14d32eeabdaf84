"""Placement: how much more harm copies of a token do at the worst positions than at those of the search.

``places`` defines positions, ``search`` looks for the worst ones, ``losses`` measures their effect.
"""

from __future__ import annotations

from embaudit.measures.measure import Measure, Parts
from embaudit.measures.placement.settings import PlacementSettings
from embaudit.measures.placement.tables import ROWS

# Increase this when values change: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 1


def _parts() -> Parts:
    from embaudit.measures.placement import findings, page, steps

    return Parts(measure=steps.measure, findings=findings.findings, page=page)


MEASURE = Measure(
    name="placement",
    package=__name__,
    question="Where in a text do sticky tokens do most harm, and how much more than at fixed positions?",
    parts=_parts,
    settings=PlacementSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    # Only on request: the search for positions encodes each text hundreds of times.
    is_default=False,
    shown_tables=("placement",),
)
