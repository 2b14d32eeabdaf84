"""Settings of the meaning measure."""

from __future__ import annotations

from collections.abc import Iterator

from embaudit.measures.measure import MeasureSettings
from embaudit.measures.workload import Readable, Work

# Sentences of its own, and their mean length.
SENTENCES, TOKENS = 414, 20


class MeaningSettings(MeasureSettings):
    """Settings of the meaning measure: it has sentences of its own, and nothing to choose."""

    def work(self, readable: Readable) -> Iterator[Work]:
        yield Work(SENTENCES, min(TOKENS, readable.max_length))
