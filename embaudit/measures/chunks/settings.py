"""Settings of the chunks measure."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field, field_validator

from embaudit.measures.collection_settings import DOCUMENTS, SAMPLE_TOKENS, CollectionSettings
from embaudit.measures.workload import Readable, Work

# A piece of fewer tokens is hardly a sentence.
SMALLEST = 8


class ChunksSettings(CollectionSettings):
    """Settings of the chunks measure."""

    sizes: tuple[int, ...] = Field(
        default=(32, 64, 128, 256), min_length=1, description="sizes of pieces, in tokens; those below the length limit"
    )
    passages: int = Field(default=4, ge=2, description="passages of a composed document")
    # Each is encoded whole and once per size: 50 000 tokens of the embedded sample.
    searched: int = Field(default=132, ge=4, description="documents (or passages to compose) that are searched")

    @field_validator("sizes")
    @classmethod
    def _ascending(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        if min(sizes) < SMALLEST:
            raise ValueError(f"a piece has at least {SMALLEST} tokens")
        return tuple(sorted(set(sizes)))

    def work(self, readable: Readable) -> Iterator[Work]:
        yield from super().work(readable)
        tokens = readable.tokens[DOCUMENTS] if self.corpora else float(SAMPLE_TOKENS)
        for size in self.sizes:
            if size < readable.max_length:
                count = max(1.0, tokens / size)
                yield Work(self.searched * count, tokens / count)
        yield Work(self.searched / self.passages, min(tokens * self.passages, readable.max_length))
