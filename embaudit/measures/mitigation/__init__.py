"""What helps against sticky tokens: remedies compared by the tokens' loss, by scores on poisoned texts, and by cost.

``remedies`` defines what a remedy does to ids, embeddings or vectors; ``losses`` measures retention under each of them.
The tasks are those of ``embaudit.corpora.downstream``; copies are inserted as in ``embaudit.measures.impact``.
"""

from __future__ import annotations

from embaudit.measures.measure import Measure, Parts
from embaudit.measures.mitigation.settings import MitigationSettings
from embaudit.measures.mitigation.tables import ROWS

# Increase this when values change: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 2


def _parts() -> Parts:
    from embaudit.measures.mitigation import findings, page, steps

    return Parts(measure=steps.measure, findings=findings.findings, page=page)


MEASURE = Measure(
    name="mitigation",
    package=__name__,
    question="What helps against sticky tokens, and what does it cost?",
    parts=_parts,
    settings=MitigationSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    # Only on request: texts are encoded once per remedy and token.
    is_default=False,
    shown_tables=("mitigation", "mitigation_loss"),
)
