"""Settings of the quality measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, Self

from pydantic import Field

from embaudit.measures.measure import Asked, MeasureSettings
from embaudit.measures.workload import Readable, Work

# What a check encodes, other prompts and cases included, in texts of about so many tokens.
TEXTS, TOKENS = 2_000, 24
# A core's time for the resamples behind its intervals, and for reading what it scores in other ways.
SECONDS = 6.0
# Golden queries are asked among so many documents.
GOLDEN = "golden"
GOLDEN_DOCUMENTS = 2_000


class QualitySettings(MeasureSettings):
    """Settings of the quality measure."""

    corpora: tuple[Literal["sts", "retrieval", "golden"], ...] = Field(
        default=("sts", "retrieval", "golden"),
        description="scored pairs, and a collection with judged queries; of what is not given, a sample of its own. "
        "Golden queries with the texts that they should find, if they are given",
    )

    def requested(self, request: Asked) -> Self:
        """Its own sample is larger than the embedded corpora, and takes their place."""
        return self.without_sample(request)

    @property
    def builds_on(self) -> tuple[str, ...]:
        """With a broken tokenizer, other readings are not compared."""
        return ("integrity",)

    def work(self, readable: Readable) -> Iterator[Work]:
        yield Work(TEXTS, min(TOKENS, readable.max_length), core_seconds=SECONDS, runs_in="float32")
        if GOLDEN in self.corpora and GOLDEN in readable.rows:
            yield replace(readable.read(GOLDEN, GOLDEN_DOCUMENTS), runs_in="float32")
