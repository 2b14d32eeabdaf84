"""Settings of the question where sticky tokens do most harm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

from pydantic import Field

from embaudit.measures.measure import MeasureSettings
from embaudit.measures.workload import Readable, Work
from embaudit.screening.tokens import Severity

Fixed = Literal["rotation", "prefix", "suffix", "random", "interleaved", "sentence_ends"]
Searched = Literal["best_random", "greedy", "gradient"]
Strategy = Literal[Fixed, Searched]
# The places of the search for sticky tokens, which the others are compared with.
ROTATION: Fixed = "rotation"
SEARCHED: tuple[Searched, ...] = get_args(Searched)
# A forward and a backward pass, of texts with a candidate in each gap: twice as long, and three times the work.
GRADIENT_ENCODES = 6
STRATEGIES: tuple[Strategy, ...] = (*get_args(Fixed), *SEARCHED)


class PlacementSettings(MeasureSettings):
    """Settings of the question where sticky tokens do most harm (``docs/methods.md``)."""

    corpora: tuple[Literal["sts"]] = Field(default=("sts",), description="where sentences are drawn from")
    tokens: tuple[str, ...] = Field(
        default=(), description="ids, strings of the vocabulary or texts; none: those that the measure sticky finds"
    )
    severity: Severity = Field(default="moderate", description="tokens that are at least so severe")
    tokens_placed: int = Field(default=3, ge=1, description="the worst of these")
    ordinary: int = Field(default=10, ge=2, description="ordinary tokens beside them, placed by the same strategies")
    draws: int = Field(default=12, ge=4, description="sentences that each is placed in")
    budget: int = Field(default=8, ge=1, description="copies of a token that a sentence may hold")
    tries: int = Field(default=32, ge=2, description="random placements, of which the worst is kept")
    guided: int = Field(default=4, ge=1, description="gaps of each step of the gradient-guided search that are encoded")
    resamples: int = Field(default=1_000, ge=100, description="of the bootstrap")

    @property
    def builds_on(self) -> tuple[str, ...]:
        return () if self.tokens else ("sticky",)

    def work(self, readable: Readable) -> Iterator[Work]:
        sentence = readable.read("sts", 1).tokens
        # Fixed places; random ones; a step of the greedy search tries every gap, one of the guided search a few.
        placements = len(get_args(Fixed)) + self.tries + self.budget * (sentence + GRADIENT_ENCODES + self.guided)
        yield Work((self.tokens_placed + self.ordinary) * self.draws * placements, sentence + self.budget)
