"""Compression: what a search loses with smaller vectors: fewer bits for each dimension, or fewer dimensions.

The ways and their equations are in ``codes``, the figures in ``compression``.
"""

from __future__ import annotations

from embaudit.measures.compression.settings import CompressionSettings
from embaudit.measures.compression.tables import ROWS
from embaudit.measures.measure import Measure, Parts

# Increase this when values change: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 1


def _parts() -> Parts:
    from embaudit.measures.compression import findings, page, steps

    return Parts(measure=steps.measure, findings=findings.findings, page=page)


MEASURE = Measure(
    name="compression",
    package=__name__,
    question="What does a search lose with smaller vectors?",
    parts=_parts,
    settings=CompressionSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"compression": ("recall",)},
    shares={"compression": "recall"},
    is_default=False,
    shown_tables=("compression",),
)
