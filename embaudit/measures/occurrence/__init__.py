"""Occurrence: do the severe tokens stand in real texts, and what do these lose by them?

``counts`` counts them, with the code of ``embaudit screen``; ``removal`` takes them out and looks how far cosines move.
"""

from __future__ import annotations

from embaudit.measures.measure import Measure
from embaudit.measures.occurrence.settings import OccurrenceSettings
from embaudit.measures.occurrence.tables import ROWS

# Changing how a value is computed changes this number, and with it every key of the measure's steps.
MEASURE_VERSION = 1

MEASURE = Measure(
    name="occurrence",
    question="Do severe tokens stand in real texts, and what do these lose by them?",
    settings=OccurrenceSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    # Conclusions need real corpora, and whoever names one names the measure.
    is_default=False,
    shown_tables=("occurrence_corpus", "occurrence"),
)
