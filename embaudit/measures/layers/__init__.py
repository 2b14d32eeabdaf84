"""Concentration: layer by layer, how far attention and the rest of the layer pull a text's tokens together.

arXiv 2604.27398, §6: λ, r and C, the normalised spread, and Theorem 1's bound; σ_a of arXiv 2410.24200.
The entry point is ``measure_layers``.
"""

from __future__ import annotations

from embaudit.measures.layers.settings import LayerSettings
from embaudit.measures.layers.tables import ROWS
from embaudit.measures.measure import Measure, Parts

# Increase this when values change: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 7


def _parts() -> Parts:
    from embaudit.measures.layers import findings, page, steps

    return Parts(measure=steps.measure, findings=findings.findings, page=page)


MEASURE = Measure(
    name="layers",
    package=__name__,
    question="Where in the network are the tokens of a text pulled together?",
    parts=_parts,
    settings=LayerSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"pooled_stat": ("normalised_spread", "within_text_cosine")},
    shown_tables=("layer_stat", "pooled_stat"),
)
