"""Settings of the question what sticky tokens do to real work."""

from __future__ import annotations

from pydantic import Field

from embaudit.measures.measure import DownstreamSettings


class ImpactSettings(DownstreamSettings):
    """Settings of the question what sticky tokens do to real work."""

    tokens: tuple[str, ...] = Field(
        default=(), description="ids, strings of the vocabulary or texts; none: those that the measure sticky finds"
    )
    tokens_per_arm: int = Field(default=3, ge=1, description="the worst of each list, and ordinary ones")
    starts: int = Field(default=3, ge=1, description="of k-means")
    resamples: int = Field(default=500, ge=100, description="of the paired bootstrap")

    @property
    def builds_on(self) -> tuple[str, ...]:
        return () if self.tokens else ("sticky",)
