"""Settings of the integrity measure: there is nothing to choose."""

from __future__ import annotations

from collections.abc import Iterator

from embaudit.measures.measure import MeasureSettings
from embaudit.measures.workload import Readable, Work

# Texts that function and numerics encode, about; and reading all files once more takes a core this long per GB.
TEXTS, TOKENS, SECONDS = 70, 30, 4.0


class IntegritySettings(MeasureSettings):
    """It reads the checkpoint and a fixed table of hard texts."""

    def work(self, readable: Readable) -> Iterator[Work]:
        yield Work(TEXTS, min(TOKENS, readable.max_length), core_seconds=SECONDS, runs_in="float32")
