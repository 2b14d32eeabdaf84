"""How much of a text does mean pooling throw away?"""

from __future__ import annotations

from embaudit.measures.measure import Measure
from embaudit.measures.socm.settings import SocmSettings

MEASURE = Measure(
    name="socm",
    question="How much of a text does mean pooling throw away?",
    settings=SocmSettings,
    mathematics="embaudit.socm",
    is_sharded=True,
    shown_tables=("socm_summary",),
)
