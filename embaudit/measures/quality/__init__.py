"""Quality: does a checkpoint do what an embedding is for, and is it declared right?

``quality`` runs all of it; each finding has a module of its own.
"""

from __future__ import annotations

from embaudit.measures.measure import Measure, Parts
from embaudit.measures.quality.settings import QualitySettings
from embaudit.measures.quality.tables import ROWS

# Increase this when values or the sample's texts change: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 2


def _parts() -> Parts:
    from embaudit.measures.quality import findings, page, steps

    return Parts(measure=steps.measure, findings=findings.findings, page=page)


MEASURE = Measure(
    name="quality",
    package=__name__,
    question="Does it do what an embedding is for, and is it declared right?",
    parts=_parts,
    settings=QualitySettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"quality": ("score", "threshold")},
    shown_tables=("quality",),
)
