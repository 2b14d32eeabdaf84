"""Settings of the layers measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pydantic import Field

from embaudit.measures.measure import DrawnSettings
from embaudit.measures.workload import Readable, Work

# Time of a core for what a layer's states and attention of one token are read for (`benchmarks/README.md`).
TOKEN_SECONDS = 6.6e-5


class LayerSettings(DrawnSettings):
    """Settings of the layers measure."""

    corpora: tuple[str, ...] = Field(default=("wikipedia", "msmarco"), description="corpora of texts")
    texts: int = Field(default=1_000, ge=1, description="texts of each corpus")

    def work(self, readable: Readable) -> Iterator[Work]:
        for read in super().work(readable):
            yield replace(read, core_seconds=read.texts * read.tokens * readable.layers * TOKEN_SECONDS)
