"""Which tokens, inserted into a text, drag its similarities to one value?"""

from __future__ import annotations

from embaudit.measures.measure import Measure
from embaudit.measures.sticky.settings import StickySettings

MEASURE = Measure(
    name="sticky",
    question="Which tokens, inserted into a text, drag its similarities to one value?",
    settings=StickySettings,
    mathematics="embaudit.sticky.validation",
    is_sharded=True,
    shown_tables=("sticky_summary", "sticky_reference_summary", "sticky_attention"),
)
