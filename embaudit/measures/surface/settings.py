"""Settings of the surface measure."""

from __future__ import annotations

from collections.abc import Iterator

from embaudit.measures.collection_settings import SAMPLE_QUERIES, CollectionSettings
from embaudit.measures.workload import Readable, Work

# Every change writes each query once more, a typo or a rare form in more tokens; a tokenizer that writes some of them
# alike leaves fewer.
CHANGES, TOKENS = 14, 18


class SurfaceSettings(CollectionSettings):
    """Settings of the surface measure."""

    def work(self, readable: Readable) -> Iterator[Work]:
        yield from super().work(readable)
        queries = self.queries if self.corpora else SAMPLE_QUERIES
        yield Work(CHANGES * queries, min(TOKENS, readable.max_length))
