"""Settings of the mitigation measure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

from pydantic import Field

from embaudit.measures.impact.settings import ImpactSettings
from embaudit.measures.workload import Readable, Work
from embaudit.remedies.screening.tokens import Severity

BeforeEncoding = Literal["strip", "prune", "unk", "mean", "scale"]
AfterEncoding = Literal["centring", "components", "whitening"]
Remedy = Literal[BeforeEncoding, AfterEncoding]
REMEDIES: tuple[Remedy, ...] = (*get_args(BeforeEncoding), *get_args(AfterEncoding))
NONE = "none"


class MitigationSettings(ImpactSettings):
    """Settings of the mitigation measure; tasks and tokens as in ``impact``."""

    corpora: tuple[Literal["longdocs", "retrieval", "sts"], ...] = Field(
        default=("retrieval", "sts"), description="a collection with judged queries, scored pairs, or labelled texts"
    )
    tokens_per_arm: int = Field(default=2, ge=1, description="worst tokens to insert into all texts, one at a time")
    severity: Severity = Field(default="moderate", description="lowest severity of the tokens that are treated")
    remedies: tuple[Remedy, ...] = Field(default=REMEDIES, description="remedies to try")
    loss_tokens: int = Field(default=5, ge=1, description="worst tokens whose loss is measured under each remedy")
    vocabulary: int = Field(default=200, ge=1, description="random tokens whose loss is measured, too")
    draws: int = Field(default=16, ge=1, description="sentences that these are inserted into")

    def work(self, readable: Readable) -> Iterator[Work]:
        encoded = sum(remedy in get_args(BeforeEncoding) for remedy in self.remedies)
        # Every token in all texts, untreated and under each remedy; clean texts rarely contain one and are not redone.
        yield from self.one_pass(readable, 1 + (1 + encoded) * self.tokens_per_arm)
        if "sts" in readable.rows:
            # The vocabulary's tokens and about as many controls; only severe tokens are encoded again per remedy.
            others = 2 * min(self.vocabulary, readable.vocabulary)
            inserted = others + (1 + encoded) * self.loss_tokens
            yield Work(inserted * self.draws, readable.tokens["sts"])
