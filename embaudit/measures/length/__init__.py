"""Length collapse: how much more alike long texts are than short ones, and how much of that needs no attention.

arXiv 2410.24200. ``curve`` measures similarity by length under four conditions, ``rises`` compares them, ``bias`` asks
what length does to neighbours and to unrelated pairs, ``ranking`` what it does to rankings of a collection, ``heads``
measures σ_a by layer, head and length, and ``bound`` is the published bound on σ_a with the simulation that tells where
it holds.
"""

from __future__ import annotations

from embaudit.measures.length.settings import LengthSettings
from embaudit.measures.length.tables import ROWS
from embaudit.measures.measure import Measure

# Changing how a value is computed changes this number, and with it every key of the measure's steps.
MEASURE_VERSION = 2

MEASURE = Measure(
    name="length",
    question="Do texts grow more alike the longer they are?",
    settings=LengthSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    shown_tables=("length_bin", "length_rise", "length_summary"),
)
