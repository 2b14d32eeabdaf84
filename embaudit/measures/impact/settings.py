"""Settings of the impact measure."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from embaudit.measures.measure import DownstreamSettings
from embaudit.measures.workload import Readable, Work


class ImpactSettings(DownstreamSettings):
    """Settings of the impact measure."""

    tokens: tuple[str, ...] = Field(
        default=(), description="ids, vocabulary strings or texts; none: the tokens that the sticky measure finds"
    )
    tokens_per_arm: int = Field(default=3, ge=1, description="worst tokens of each protocol, and ordinary tokens")
    starts: int = Field(default=3, ge=1, description="k-means initialisations")
    resamples: int = Field(default=500, ge=100, description="resamples of the paired bootstrap")

    def work(self, readable: Readable) -> Iterator[Work]:
        # Clean texts, and texts with each token of three arms (two protocols, ordinary), or of two (given, ordinary).
        yield from self.one_pass(readable, 1 + (2 if self.tokens else 3) * self.tokens_per_arm)

    @property
    def builds_on(self) -> tuple[str, ...]:
        return () if self.tokens else ("sticky",)
