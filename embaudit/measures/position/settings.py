"""Settings of the position measure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import Field

from embaudit.measures.collection_settings import CollectionSettings
from embaudit.measures.workload import Readable, Work

# Share of the filler before the evidence.
DEPTHS: Mapping[str, float] = {"0": 0.0, "1/4": 0.25, "1/2": 0.5, "3/4": 0.75, "1": 1.0}
ALONE, START, BEYOND = "alone", "0", "beyond"


class PositionSettings(CollectionSettings):
    """Settings of the position measure."""

    # 12 pairs that share their documents: 31 000 tokens, and just enough pairs for intervals.
    moved: int = Field(default=24, ge=2, description="queries whose evidence is moved")
    tokens: int = Field(default=256, ge=16, description="length of the documents, in tokens; at most what is read")
    evidence_tokens: int = Field(default=48, ge=4, description="length of the evidence, in tokens")

    def work(self, readable: Readable) -> Iterator[Work]:
        yield from super().work(readable)
        yield Work(self.moved * len(DEPTHS), min(self.tokens, readable.max_length))
        yield Work(self.moved, min(self.evidence_tokens, readable.max_length))
