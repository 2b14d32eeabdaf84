"""Does a lower attention temperature help *this* checkpoint, and does it beat the usual alternatives?

The tasks are those of ``embaudit.corpora.downstream``; ``baselines`` has the alternatives, and ``compare`` chooses τ
on one half of the items and reports on the other. Nothing here runs a model: vectors in, rows out.
"""

from __future__ import annotations

from embaudit.measures.measure import Measure, Parts
from embaudit.measures.tempscale.settings import TempscaleSettings
from embaudit.measures.tempscale.tables import ROWS

# Increase this when values change: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 3


def _parts() -> Parts:
    from embaudit.measures.tempscale import findings, page, steps

    return Parts(measure=steps.measure, findings=findings.findings, page=page)


MEASURE = Measure(
    name="tempscale",
    package=__name__,
    question="Does a lower attention temperature help?",
    parts=_parts,
    settings=TempscaleSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    # Only on request: everything is encoded once per temperature of the grid.
    is_default=False,
    shown_tables=("tempscale_choice",),
)
