"""Settings of the placement measure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

from pydantic import Field

from embaudit.measures.measure import MeasureSettings
from embaudit.measures.workload import Readable, Work
from embaudit.remedies.screening.tokens import Severity

Fixed = Literal["rotation", "prefix", "suffix", "random", "interleaved", "sentence_ends"]
Searched = Literal["best_random", "greedy", "gradient"]
Strategy = Literal[Fixed, Searched]
# The positions that the search for sticky tokens uses, with which the others are compared.
ROTATION: Fixed = "rotation"
SEARCHED: tuple[Searched, ...] = get_args(Searched)
# Forward and backward pass (three times the work) on texts with a candidate in every gap (twice as long).
GRADIENT_ENCODES = 6
STRATEGIES: tuple[Strategy, ...] = (*get_args(Fixed), *SEARCHED)


class PlacementSettings(MeasureSettings):
    """Settings of the placement measure (``docs/methods.md``)."""

    corpora: tuple[Literal["sts"]] = Field(default=("sts",), description="corpus that sentences are sampled from")
    tokens: tuple[str, ...] = Field(
        default=(), description="ids, vocabulary strings or texts; none: the tokens that the sticky measure finds"
    )
    severity: Severity = Field(default="moderate", description="lowest severity of the tokens used")
    tokens_placed: int = Field(default=3, ge=1, description="number of these tokens, worst first")
    ordinary: int = Field(default=10, ge=2, description="ordinary tokens placed by the same strategies")
    draws: int = Field(default=12, ge=4, description="sentences that each token is placed in")
    budget: int = Field(default=8, ge=1, description="most copies of a token per sentence")
    tries: int = Field(default=32, ge=2, description="random placements, of which the worst counts")
    guided: int = Field(default=4, ge=1, description="gaps to encode at each step of the gradient-guided search")
    resamples: int = Field(default=1_000, ge=100, description="bootstrap resamples")

    @property
    def builds_on(self) -> tuple[str, ...]:
        return () if self.tokens else ("sticky",)

    def work(self, readable: Readable) -> Iterator[Work]:
        sentence = readable.read("sts", 1).tokens
        # Fixed, random and searched placements; the greedy search tries every gap at each step, the guided one a few.
        placements = len(get_args(Fixed)) + self.tries + self.budget * (sentence + GRADIENT_ENCODES + self.guided)
        yield Work((self.tokens_placed + self.ordinary) * self.draws * placements, sentence + self.budget)
