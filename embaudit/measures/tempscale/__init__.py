"""Does a lower attention temperature help?"""

from __future__ import annotations

from embaudit.measures.measure import Measure
from embaudit.measures.tempscale.settings import TempscaleSettings

MEASURE = Measure(
    name="tempscale",
    question="Does a lower attention temperature help?",
    settings=TempscaleSettings,
    mathematics="embaudit.remedy",
    # Only when named: a grid of temperatures encodes everything once for each of them.
    is_default=False,
    shown_tables=("tempscale_choice",),
)
