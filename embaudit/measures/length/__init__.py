"""Do texts grow more alike the longer they are?"""

from __future__ import annotations

from embaudit.measures.length.settings import LengthSettings
from embaudit.measures.measure import Measure

MEASURE = Measure(
    name="length",
    question="Do texts grow more alike the longer they are?",
    settings=LengthSettings,
    mathematics="embaudit.length",
    shown_tables=("length_bin", "length_rise", "length_summary"),
)
