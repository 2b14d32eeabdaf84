"""Placement: how much more harm copies of a token do at the worst positions than at those of the search.

``places`` defines positions and looks for the worst ones, ``losses`` measures their effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

from pydantic import Field

from embaudit.declared.figure import Worse
from embaudit.declared.table import SHARE, TOLERANCE, Interval, Row, Series, column, rule
from embaudit.measures.measure import Measure, MeasureSettings, Readable, Work, parts_of
from embaudit.remedies.screening import Severity

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


STRATEGY = (
    "rotation (prefix, suffix and random positions in turn, as in the search for sticky tokens); prefix; suffix; "
    "random; interleaved (spread evenly between the words); sentence_ends (distributed over the text's beginning and "
    "the ends of its sentences); or searched: best_random (the worst of several random placements), greedy (one copy "
    "at a time, where it is worst), gradient (the same, trying only the gaps that a gradient proposes)."
)
LOSS = "1 − slope / median slope of the ordinary tokens under rotation, on sentences held out from the search."
RESAMPLED = Interval("bootstrap over draws, groups of anchors and ordinary tokens")


class _PlacementBase(Row):
    strategy: Strategy = column(STRATEGY)
    loss: float = column(LOSS, interval=RESAMPLED)
    change: float | None = column("loss − loss under rotation; null for rotation.", interval=RESAMPLED)
    copies: float = column("Mean number of copies per text; a search may use fewer than the budget.", ge=0)
    place: float = column("Their mean position: 0 before the text's first token, 1 after its last.", within=SHARE)

    @rule
    def change_is_from_rotation(strategy: Series, change: Series) -> Series:
        """Rotation, and only rotation, has no change."""
        return (strategy == ROTATION) == change.isna()


class PlacementRow(_PlacementBase, table="placement", key=("strategy", "role"), item="{role}, {strategy}"):
    """Loss from copies of severe and of ordinary tokens, by the copies' positions."""

    role: Literal["severe", "ordinary"] = column("severe: mean over tokens; ordinary: median over tokens.")
    loss: float = column(LOSS, interval=RESAMPLED, figure=Worse("higher", absolute=0.05))
    loss_seen: float = column("loss on the sentences that the search used.")
    tokens: int = column("Tokens.", ge=1)
    draws: int = column("Sentences that each token was placed in.", ge=1)
    budget: int = column("Largest number of copies per sentence.", ge=1)
    encodes: int = column("Encodes per token and sentence; a gradient counts as six.", ge=1)

    @rule
    def ordinary_in_rotation_is_the_unit(strategy: Series, role: Series, loss: Series) -> Series:
        """The reference: ordinary tokens under rotation have a loss of 0."""
        return (strategy != ROTATION) | (role == "severe") | (loss.astype(float).abs() <= TOLERANCE)

    @rule
    def within_budget(copies: Series, budget: Series) -> Series:
        """No text has more copies than the budget."""
        return copies <= budget + TOLERANCE


class PlacementTokenRow(_PlacementBase, table="placement_token", key=("strategy", "token_id")):
    """Loss from copies of one severe token, by the copies' positions."""

    token_id: int = column("Id of the token.", ge=0)
    token: str = column("The token as written in the vocabulary.")
    example: str = column("The first sentence with the copies, decoded.")


ROWS: tuple[type[Row], ...] = (PlacementRow, PlacementTokenRow)

MEASURE_VERSION = 1

MEASURE = Measure(
    name="placement",
    package=__name__,
    question="Where in a text do sticky tokens do most harm, and how much more than at fixed positions?",
    parts=parts_of(__name__),
    settings=PlacementSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    # Only on request: the search for positions encodes each text hundreds of times.
    is_default=False,
    shown_tables=("placement",),
)
