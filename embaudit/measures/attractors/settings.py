"""Settings of the attractors measure."""

from __future__ import annotations

from collections.abc import Iterator

from embaudit.measures.collection_settings import CollectionSettings
from embaudit.measures.workload import Readable, Work

# The added texts, and their tokens.
TEXTS, TOKENS = 54, 20


class AttractorsSettings(CollectionSettings):
    """Settings of the attractors measure."""

    def work(self, readable: Readable) -> Iterator[Work]:
        yield from super().work(readable)
        yield Work(TEXTS, min(TOKENS, readable.max_length))
