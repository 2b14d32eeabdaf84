"""Settings of the compression measure."""

from __future__ import annotations

from collections.abc import Iterator

from embaudit.measures.collection_settings import CollectionSettings
from embaudit.measures.workload import Readable, Work

# Of 38 rankings (eight ways, and ten draws of random dimensions for each of three cuts) of 90 queries with their
# intervals and BM25, measured.
CORE_SECONDS = 1.0


class CompressionSettings(CollectionSettings):
    """Settings of the compression measure: those of the collection that is searched."""

    def work(self, readable: Readable) -> Iterator[Work]:
        yield from super().work(readable)
        yield Work(0, 0, core_seconds=CORE_SECONDS)
