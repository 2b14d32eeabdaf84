"""Settings of the concentration measure."""

from __future__ import annotations

from pydantic import Field

from embaudit.measures.measure import MeasureSettings


class LayerSettings(MeasureSettings):
    """Settings of the concentration measure, layer by layer."""

    corpora: tuple[str, ...] = ("wikipedia", "msmarco")
    texts: int = Field(default=1_000, ge=1, description="first texts of each corpus")
