"""Settings of the geometry measure."""

from __future__ import annotations

from pydantic import Field

from embaudit.measures.measure import DrawnSettings


class GeometrySettings(DrawnSettings):
    """Settings of the geometry measure."""

    corpora: tuple[str, ...] = Field(default=("wikipedia", "msmarco"), description="corpora of texts")
    # All pairwise cosines are held in memory in float64: at 5 000 texts 200 MB, and as much again for copies.
    texts: int = Field(default=1_000, ge=1, le=5_000, description="texts of each corpus")
    neighbours: int = Field(default=10, ge=1, description="k of k-occurrence (hubness)")
