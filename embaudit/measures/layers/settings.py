"""Settings of the layers measure."""

from __future__ import annotations

from pydantic import Field

from embaudit.measures.measure import DrawnSettings


class LayerSettings(DrawnSettings):
    """Settings of the layers measure."""

    corpora: tuple[str, ...] = Field(default=("wikipedia", "msmarco"), description="corpora of texts")
    texts: int = Field(default=1_000, ge=1, description="texts of each corpus")
