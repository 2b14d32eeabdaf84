"""Occurrence: do severe tokens occur in real texts, and what do they do there?

``counts`` counts them, with the code of ``embaudit screen``; ``removal`` removes them and measures how cosines change.
"""

from __future__ import annotations

from embaudit.measures.measure import Measure
from embaudit.measures.occurrence.settings import OccurrenceSettings
from embaudit.measures.occurrence.tables import ROWS

# Increase this when values change: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 2

MEASURE = Measure(
    name="occurrence",
    question="Do severe tokens occur in real texts, and what do they do there?",
    settings=OccurrenceSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    # Only on request: conclusions need real corpora, which must be named, too.
    is_default=False,
    shown_tables=("occurrence_corpus", "occurrence"),
)
