"""Length collapse (arXiv 2410.24200): how much more alike long texts are, and how much of that needs no attention.

``curve`` measures similarity by length under four conditions, ``rises`` compares them, ``bias`` measures the effect of
length on neighbours and on unrelated pairs, ``ranking`` its effect on rankings of a collection, ``heads`` measures σ_a
by layer, head and length, and ``bound`` has the published bound on σ_a and a simulation of where it holds.
"""

from __future__ import annotations

from embaudit.measures.length.settings import LengthSettings
from embaudit.measures.length.tables import ROWS
from embaudit.measures.measure import Measure, Parts

# Increase this when values change: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 4


def _parts() -> Parts:
    from embaudit.measures.length import findings, page, steps

    return Parts(measure=steps.measure, findings=findings.findings, page=page)


MEASURE = Measure(
    name="length",
    package=__name__,
    question="Do the vectors of texts become more alike the longer the texts are?",
    parts=_parts,
    settings=LengthSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    shown_tables=("length_bin", "length_rise", "length_summary"),
)
