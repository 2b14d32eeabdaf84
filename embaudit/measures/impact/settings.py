"""Settings of the question what sticky tokens do to real work."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from embaudit.measures.measure import DownstreamSettings
from embaudit.measures.workload import Readable, Work


class ImpactSettings(DownstreamSettings):
    """Settings of the question what sticky tokens do to real work."""

    tokens: tuple[str, ...] = Field(
        default=(), description="ids, strings of the vocabulary or texts; none: those that the measure sticky finds"
    )
    tokens_per_arm: int = Field(default=3, ge=1, description="the worst of each list, and ordinary ones")
    starts: int = Field(default=3, ge=1, description="of k-means")
    resamples: int = Field(default=500, ge=100, description="of the paired bootstrap")

    def work(self, readable: Readable) -> Iterator[Work]:
        # Clean texts, and texts with each token: of two lists and ordinary ones, or given and ordinary ones.
        yield from self.one_pass(readable, 1 + (2 if self.tokens else 3) * self.tokens_per_arm)

    @property
    def builds_on(self) -> tuple[str, ...]:
        return () if self.tokens else ("sticky",)
