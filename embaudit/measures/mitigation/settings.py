"""Settings of the question what helps against sticky tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

from pydantic import Field

from embaudit.measures.impact.settings import ImpactSettings
from embaudit.measures.workload import Readable, Work
from embaudit.screening.tokens import Severity

BeforeEncoding = Literal["strip", "prune", "unk", "mean", "scale"]
AfterEncoding = Literal["centring", "components", "whitening"]
Remedy = Literal[BeforeEncoding, AfterEncoding]
REMEDIES: tuple[Remedy, ...] = (*get_args(BeforeEncoding), *get_args(AfterEncoding))
NONE = "none"


class MitigationSettings(ImpactSettings):
    """Settings of the question what helps against sticky tokens; tasks and tokens as in ``impact``."""

    corpora: tuple[Literal["longdocs", "retrieval", "sts"], ...] = Field(
        default=("retrieval", "sts"), description="a collection with judged queries, scored pairs; or labelled texts"
    )
    tokens_per_arm: int = Field(default=2, ge=1, description="the worst, each in all of the texts")
    severity: Severity = Field(default="moderate", description="tokens that are at least so severe are treated")
    remedies: tuple[Remedy, ...] = Field(default=REMEDIES, description="what is tried")
    loss_tokens: int = Field(default=5, ge=1, description="the worst, whose loss is measured under each remedy")
    vocabulary: int = Field(default=200, ge=1, description="random tokens whose loss is measured too")
    draws: int = Field(default=16, ge=1, description="sentences that these are inserted into")

    def work(self, readable: Readable) -> Iterator[Work]:
        encoded = sum(remedy in get_args(BeforeEncoding) for remedy in self.remedies)
        # Without a remedy and under each, every token in all texts. Few clean texts hold one: they keep their vectors.
        yield from self.one_pass(readable, 1 + (1 + encoded) * self.tokens_per_arm)
        if "sts" in readable.rows:
            # About as many ordinary tokens stand beside those of the vocabulary; only severe ones are remedied.
            others = 2 * min(self.vocabulary, readable.vocabulary)
            inserted = others + (1 + encoded) * self.loss_tokens
            yield Work(inserted * self.draws, readable.tokens["sts"])
