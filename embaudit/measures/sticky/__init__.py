"""Sticky tokens: which tokens, inserted into a text, pull its similarities towards one value?"""

from __future__ import annotations

from embaudit.measures.measure import Measure, Parts
from embaudit.measures.sticky.settings import StickySettings
from embaudit.measures.sticky.tables import ROWS, STICKY_TOKEN

# Increase this when values change: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 7


def _parts() -> Parts:
    from embaudit.measures.sticky import findings, page, steps

    return Parts(measure=steps.measure, findings=findings.findings, page=page)


MEASURE = Measure(
    name="sticky",
    package=__name__,
    question="Which tokens, inserted into a text, pull its similarities towards one value?",
    parts=_parts,
    settings=StickySettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    view_summaries=(STICKY_TOKEN,),
    headline_figures={
        "sticky_summary": ("u", "outliers"),
        "sticky_token": ("worst_loss",),
        "sticky_severity": ("estimated",),
    },
    is_sharded=True,
    shown_tables=("sticky_summary", "sticky_reference_summary", "sticky_attention"),
)
