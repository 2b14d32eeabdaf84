"""Impact: downstream tasks scored on clean texts and on texts that contain sticky tokens.

``arms`` chooses the tokens, ``poison`` inserts them into texts, ``effects`` compares scores with the clean arm and with
ordinary tokens. The tasks are those of ``embaudit.corpora.downstream``.
"""

from __future__ import annotations

from embaudit.measures.impact.settings import ImpactSettings
from embaudit.measures.impact.tables import ROWS
from embaudit.measures.measure import Measure, Parts

# Increase this when values change: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 2


def _parts() -> Parts:
    from embaudit.measures.impact import findings, page, steps

    return Parts(measure=steps.measure, findings=findings.findings, page=page)


MEASURE = Measure(
    name="impact",
    package=__name__,
    question="What do sticky tokens do to retrieval, clustering, classification and similarity?",
    parts=_parts,
    settings=ImpactSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    # Only on request: every text is encoded once per token.
    is_default=False,
    shown_tables=("impact", "impact_token"),
)
