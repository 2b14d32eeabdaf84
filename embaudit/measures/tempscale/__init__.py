"""Does a lower attention temperature help *this* checkpoint, and does it beat the usual alternatives?

The tasks are those of ``embaudit.corpora.downstream``; ``compare`` has the alternatives, chooses τ on one half
of the items and reports on the other. Nothing here runs a model: vectors in, rows out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, field_validator

from embaudit.measures.measure import DownstreamSettings, Measure, Readable, Work, parts_of
from embaudit.measures.tempscale.tables import ROWS

# Nearest neighbours, logistic regression and clustering.
LABELLED_TASKS = 3


class TempscaleSettings(DownstreamSettings):
    """Settings of the attention-temperature measure."""

    grid: tuple[float, ...] = Field(
        default=(1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5), min_length=1, description="temperatures τ; 1 is always included"
    )
    reads: Literal["limit", "positions"] = Field(
        default="limit", description="read documents up to the configured limit, as served, or up to all positions"
    )

    starts: int = Field(default=10, ge=1, description="k-means initialisations")
    by: tuple[Literal["layer", "head"], ...] = Field(
        default=(), description="also search a τ per layer, or per head (the same in every layer)"
    )

    def work(self, readable: Readable) -> Iterator[Work]:
        # One more pass for averaged chunks.
        yield from self.one_pass(readable, len(self.grid) + 1)
        parts = {"layer": readable.layers, "head": readable.heads / readable.layers}
        for part in self.by:
            for corpus in self.corpora:
                # Two neighbouring values per part and sweep; tasks on the same texts share some encodes.
                yield self.texts_of(corpus, readable, 2 * parts[part] * (LABELLED_TASKS if corpus == "longdocs" else 1))

    @field_validator("grid")
    @classmethod
    def _every_temperature_is_positive(cls, grid: tuple[float, ...]) -> tuple[float, ...]:
        if any(not 0 < tau < float("inf") for tau in grid):
            raise ValueError(f"temperatures must be greater than 0, not {list(grid)}")
        return tuple(sorted({1.0, *grid}, reverse=True))


MEASURE_VERSION = 3

MEASURE = Measure(
    name="tempscale",
    package=__name__,
    question="Does a lower attention temperature help?",
    parts=parts_of(__name__),
    settings=TempscaleSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    # Only on request: everything is encoded once per temperature of the grid.
    is_default=False,
    shown_tables=("tempscale_choice",),
)
