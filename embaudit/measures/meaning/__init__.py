"""Meaning: is a sentence nearer to its rewording than to one that says something else in almost the same words?

The definition is in ``triples``; the sentences are in ``triples.tsv``.
"""

from __future__ import annotations

from embaudit.measures.meaning.settings import MeaningSettings
from embaudit.measures.meaning.tables import ROWS
from embaudit.measures.measure import Measure, Parts

# Increase this when values change, or the sentences do: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 1


def _parts() -> Parts:
    from embaudit.measures.meaning import findings, page, steps

    return Parts(measure=steps.measure, findings=findings.findings, page=page)


MEASURE = Measure(
    name="meaning",
    package=__name__,
    question="Is a rewording nearer than a sentence that says something else?",
    parts=_parts,
    settings=MeaningSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"meaning": ("nearer",)},
    shares={"meaning": "nearer"},
    is_default=False,
    shown_tables=("meaning",),
)
