"""Placement: how much worse copies of a token are where they hurt most than where the search puts them.

``places`` says where copies stand, ``search`` looks for the worst places, ``losses`` says what that comes to.
"""

from __future__ import annotations

from embaudit.measures.measure import Measure
from embaudit.measures.placement.settings import PlacementSettings
from embaudit.measures.placement.tables import ROWS

# Changing how a value is computed changes this number, and with it every key of the measure's steps.
MEASURE_VERSION = 1

MEASURE = Measure(
    name="placement",
    question="Where in a text do sticky tokens do most harm, and how much more than in fixed places?",
    settings=PlacementSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    # Only when named: the search for places encodes each text hundreds of times.
    is_default=False,
    shown_tables=("placement",),
)
