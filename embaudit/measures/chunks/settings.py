"""Settings of the chunks measure."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from embaudit.measures.collection_settings import DOCUMENTS, SAMPLE_TOKENS, CollectionSettings
from embaudit.measures.workload import Readable, Work


class ChunksSettings(CollectionSettings):
    """Settings of the chunks measure."""

    sizes: tuple[int, ...] = Field(
        default=(32, 64, 128, 256), min_length=1, description="sizes of pieces, in tokens; those below the length limit"
    )
    passages: int = Field(default=4, ge=2, description="passages of a composed document")
    # Each is encoded whole and once per size: 50 000 tokens of the embedded sample.
    searched: int = Field(default=132, ge=4, description="documents (or passages to compose) that are searched")

    def work(self, readable: Readable) -> Iterator[Work]:
        yield from super().work(readable)
        tokens = readable.tokens[DOCUMENTS] if self.corpora else float(SAMPLE_TOKENS)
        for size in self.sizes:
            if size < readable.max_length:
                count = max(1.0, tokens / size)
                yield Work(self.searched * count, tokens / count)
        yield Work(self.searched / self.passages, min(tokens * self.passages, readable.max_length))
