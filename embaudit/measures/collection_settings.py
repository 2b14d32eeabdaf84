"""Settings of measures that search a judged collection; reading them needs no numpy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, Self

from pydantic import Field

from embaudit.measures.measure import Asked, MeasureSettings
from embaudit.measures.workload import Readable, Work

# The corpus of documents, as ``embaudit.corpora.judged`` names it.
DOCUMENTS = "retrieval"
# Of the embedded sample: its documents, and the length of these with their queries; and its queries.
SAMPLE_DOCUMENTS, SAMPLE_TOKENS = 270, 110
SAMPLE_QUERIES = 90


class CollectionSettings(MeasureSettings):
    """Settings of a measure that searches a judged collection."""

    corpora: tuple[Literal["retrieval"], ...] = Field(
        default=("retrieval",), description="a collection with judged queries; without one, a sample of its own"
    )
    documents: int = Field(default=600, ge=2, description="documents of the collection, relevant ones first")
    queries: int = Field(default=200, ge=4, description="queries of the collection")

    def requested(self, request: Asked) -> Self:
        """Its own sample is larger than the embedded corpora, and takes their place."""
        return self.without_sample(request)

    def work(self, readable: Readable) -> Iterator[Work]:
        """The collection, which the first of the measures that search it encodes."""
        if self.corpora:
            yield replace(readable.read(DOCUMENTS, self.documents), is_shared=True)
        else:
            yield Work(SAMPLE_DOCUMENTS, min(SAMPLE_TOKENS, readable.max_length), is_shared=True)
