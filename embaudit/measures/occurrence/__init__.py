"""Occurrence: do severe tokens occur in real texts, and what do they do there?

``counts`` counts them, with the code of ``embaudit screen``; ``removal`` removes them and measures how cosines change.
"""

from __future__ import annotations

from embaudit.measures.measure import Measure, Parts
from embaudit.measures.occurrence.settings import OccurrenceSettings
from embaudit.measures.occurrence.tables import ROWS

# Increase this when values change: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 2


def _parts() -> Parts:
    from embaudit.measures.occurrence import findings, page, steps

    return Parts(measure=steps.measure, findings=findings.findings, page=page)


MEASURE = Measure(
    name="occurrence",
    package=__name__,
    question="Do severe tokens occur in real texts, and what do they do there?",
    parts=_parts,
    settings=OccurrenceSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    # Only on request: conclusions need real corpora, which must be named, too.
    is_default=False,
    shown_tables=("occurrence_corpus", "occurrence"),
)
