"""Languages: does a sentence find its translation, and are sentences of other scripts told apart at all?

The entry point is ``compare_languages``; sources and equations are in ``figures``.
"""

from __future__ import annotations

from embaudit.measures.languages.settings import LanguagesSettings
from embaudit.measures.languages.tables import ROWS
from embaudit.measures.measure import Measure, Parts

# Increase this when values change: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 1


def _parts() -> Parts:
    from embaudit.measures.languages import findings, page, steps

    return Parts(measure=steps.measure, findings=findings.findings, page=page)


MEASURE = Measure(
    name="languages",
    package=__name__,
    question="Does a sentence find its translation, and are other scripts told apart?",
    parts=_parts,
    settings=LanguagesSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"language": ("found",)},
    shares={"language": "found"},
    is_default=False,
    shown_tables=("language",),
)
