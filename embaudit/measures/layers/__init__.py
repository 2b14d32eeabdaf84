"""Where in the network are the tokens of a text pulled together?"""

from __future__ import annotations

from embaudit.measures.layers.settings import LayerSettings
from embaudit.measures.measure import Measure

MEASURE = Measure(
    name="layers",
    question="Where in the network are the tokens of a text pulled together?",
    settings=LayerSettings,
    mathematics="embaudit.concentration",
    shown_tables=("layer_stat",),
)
