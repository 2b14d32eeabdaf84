"""Settings of the occurrence measure."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from embaudit.measures.measure import DrawnSettings
from embaudit.measures.workload import Readable, Work
from embaudit.remedies.screening.tokens import Severity

# Typical number of severe tokens that occur in ordinary texts.
TOKENS_MET = 10


class OccurrenceSettings(DrawnSettings):
    """Settings of the occurrence measure (``docs/methods.md``)."""

    corpora: tuple[str, ...] = Field(
        default=("wikipedia", "msmarco"), description="corpora of texts in which tokens are counted"
    )
    texts: int = Field(default=20_000, ge=1, description="texts of each corpus; 20 000 is what an audit keeps")
    severity: Severity = Field(default="moderate", description="lowest severity of the tokens counted")
    removal_texts: int = Field(default=30, ge=2, description="texts that a token is removed from")
    anchors: int = Field(default=200, ge=2, description="texts that these are compared with before and after removal")

    @property
    def builds_on(self) -> tuple[str, ...]:
        return ("sticky",)

    def work(self, readable: Readable) -> Iterator[Work]:
        for corpus in self.corpora:
            yield readable.read(corpus, self.anchors)
            yield readable.read(corpus, self.removal_texts, times=2 * TOKENS_MET)
