"""What helps against sticky tokens: each remedy by the loss of the tokens, the poisoned arm of a task, and its price.

``remedies`` says what a remedy does to ids, to rows or to vectors, ``losses`` measures retention under each of them.
The tasks are those of ``embaudit.downstream``, copies are put into texts as ``embaudit.measures.impact`` does.
"""

from __future__ import annotations

from embaudit.measures.measure import Measure
from embaudit.measures.mitigation.settings import MitigationSettings
from embaudit.measures.mitigation.tables import ROWS

# Changing how a value is computed changes this number, and with it every key of the measure's steps.
MEASURE_VERSION = 1

MEASURE = Measure(
    name="mitigation",
    question="What helps against sticky tokens, and what does it cost?",
    settings=MitigationSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    # Only when named: texts are encoded once for each remedy and token.
    is_default=False,
    shown_tables=("mitigation", "mitigation_loss"),
)
