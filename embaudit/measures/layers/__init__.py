"""Concentration: layer by layer, how far attention and the rest of the layer pull a text's tokens together.

arXiv 2604.27398, §6: λ, r and C, the normalised spread, and Theorem 1's bound; σ_a of arXiv 2410.24200.
The entry point is ``measure_layers``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pydantic import Field

from embaudit.measures.layers.tables import ROWS
from embaudit.measures.measure import DrawnSettings, Measure, Readable, Work, parts_of

# Time of a core for one weight of one head's attention, with what else is read of its layer's states; and for a layer's
# norms of W_o W_v, by d³ (`benchmarks/README.md`).
WEIGHT_SECONDS, NORM_SECONDS = 1.35e-7, 1.8e-9


class LayerSettings(DrawnSettings):
    """Settings of the layers measure."""

    corpora: tuple[str, ...] = Field(default=("wikipedia", "msmarco"), description="corpora of texts")
    texts: int = Field(default=1_000, ge=1, description="texts of each corpus")

    def work(self, readable: Readable) -> Iterator[Work]:
        for read in super().work(readable):
            attention = read.texts * readable.heads * read.tokens**2 * WEIGHT_SECONDS
            norms = readable.layers * readable.hidden_size**3 * NORM_SECONDS
            yield replace(read, core_seconds=attention + norms)


MEASURE_VERSION = 7

MEASURE = Measure(
    name="layers",
    package=__name__,
    question="Where in the network are the tokens of a text pulled together?",
    parts=parts_of(__name__),
    settings=LayerSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"pooled_stat": ("normalised_spread", "within_text_cosine")},
    shown_tables=("layer_stat", "pooled_stat"),
)
