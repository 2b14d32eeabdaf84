"""Where sticky tokens do most harm; equations are in ``search`` and ``losses``."""

from __future__ import annotations

from typing import Literal

from embaudit.declared.figure import Worse
from embaudit.declared.table import SHARE, TOLERANCE, Interval, Row, Series, column, rule
from embaudit.measures.placement.settings import ROTATION, Strategy

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
