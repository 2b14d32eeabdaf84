"""Settings of the compression measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from embaudit.measures.collection import CollectionSettings
from embaudit.measures.workload import Readable, Work

# Of 42 rankings (eight ways, and ten draws of random dimensions for each of three cuts) of 114 queries, measured.
CORE_SECONDS = 0.6


class CompressionSettings(CollectionSettings):
    """Settings of the compression measure: those of the collection that is searched."""

    def work(self, readable: Readable) -> Iterator[Work]:
        for one in super().work(readable):
            yield replace(one, core_seconds=CORE_SECONDS)
