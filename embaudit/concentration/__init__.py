"""Concentration: layer by layer, how far attention and what follows it pull a text's tokens together.

arXiv 2604.27398, §6: λ, r and C, the normalised spread, and Theorem 1's bound; σ_a of arXiv 2410.24200.
``measure_layers`` is the way in.
"""

from embaudit.concentration.layers import MEASURE_VERSION, LayerBatch, measure_layers
from embaudit.concentration.summary import HeadStat, LayerStat, summarise_heads, summarise_layer

__all__ = [
    "MEASURE_VERSION",
    "HeadStat",
    "LayerBatch",
    "LayerStat",
    "measure_layers",
    "summarise_heads",
    "summarise_layer",
]
