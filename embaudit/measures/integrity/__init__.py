"""Integrity: is this the network that was trained, and does it compute one function of a text?

``integrity`` checks files, weights and tokenizer, ``function`` and ``numerics`` encode a few hard texts.
"""

from __future__ import annotations

from embaudit.measures.integrity.settings import IntegritySettings
from embaudit.measures.integrity.tables import ROWS
from embaudit.measures.measure import Measure, Parts

# Increase this when values change: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 2


def _parts() -> Parts:
    from embaudit.measures.integrity import findings, page, steps

    return Parts(measure=steps.measure, findings=findings.findings, page=page)


MEASURE = Measure(
    name="integrity",
    package=__name__,
    question="Is this the network that was trained, and does it compute one function of a text?",
    parts=_parts,
    settings=IntegritySettings,
    version=MEASURE_VERSION,
    rows=ROWS,
)
