"""Settings of the question whether a lower attention temperature helps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, field_validator

from embaudit.measures.measure import DownstreamSettings
from embaudit.measures.workload import Readable, Work

# Nearest neighbours, logistic regression and clustering.
LABELLED_TASKS = 3


class TempscaleSettings(DownstreamSettings):
    """Settings of the question whether a lower attention temperature helps."""

    grid: tuple[float, ...] = Field(
        default=(1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5), min_length=1, description="τ; 1 is always among them"
    )
    reads: Literal["limit", "positions"] = Field(
        default="limit", description="documents up to the configured limit, as served, or up to the position table"
    )

    starts: int = Field(default=10, ge=1, description="of k-means")
    by: tuple[Literal["layer", "head"], ...] = Field(
        default=(), description="a τ for each layer, or for each head (the same in every layer), is searched as well"
    )

    def work(self, readable: Readable) -> Iterator[Work]:
        # Averaged pieces are one pass more.
        yield from self.one_pass(readable, len(self.grid) + 1)
        parts = {"layer": readable.layers, "head": readable.heads / readable.layers}
        for part in self.by:
            for corpus in self.corpora:
                # Of each part its two neighbours in each sweep, less what tasks of the same texts have in common.
                yield self.texts_of(corpus, readable, 2 * parts[part] * (LABELLED_TASKS if corpus == "longdocs" else 1))

    @field_validator("grid")
    @classmethod
    def _every_temperature_is_positive(cls, grid: tuple[float, ...]) -> tuple[float, ...]:
        if any(not 0 < tau < float("inf") for tau in grid):
            raise ValueError(f"a temperature divides the logits and must be above 0, and these are {list(grid)}")
        return tuple(sorted({1.0, *grid}, reverse=True))
