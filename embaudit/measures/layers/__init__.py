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

# Time of a core for what a layer's states and attention of one token are read for (`benchmarks/README.md`).
TOKEN_SECONDS = 6.6e-5


class LayerSettings(DrawnSettings):
    """Settings of the layers measure."""

    corpora: tuple[str, ...] = Field(default=("wikipedia", "msmarco"), description="corpora of texts")
    texts: int = Field(default=1_000, ge=1, description="texts of each corpus")

    def work(self, readable: Readable) -> Iterator[Work]:
        for read in super().work(readable):
            yield replace(read, core_seconds=read.texts * read.tokens * readable.layers * TOKEN_SECONDS)


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
