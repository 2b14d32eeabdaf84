"""Where sticky tokens do most harm; equations stand in ``search`` and ``losses``."""

from __future__ import annotations

from typing import Literal

from embaudit.figure import Worse
from embaudit.measures.placement.settings import ROTATION, Strategy
from embaudit.table import SHARE, TOLERANCE, Interval, Row, Series, column, rule

STRATEGY = (
    "rotation (prefix, suffix and random places in turn, as in the search for sticky tokens); prefix; suffix; random; "
    "interleaved (evenly between the words); sentence_ends (dealt to the text's beginning and the ends of its "
    "sentences); or searched: best_random (the worst of some random placements), greedy (one copy after another where "
    "it is worst), gradient (the same in the gaps that a gradient proposes)."
)
LOSS = "1 − slope / median slope of the ordinary tokens in rotation, against sentences that no search saw."
RESAMPLED = Interval("bootstrap over draws, groups of anchors and ordinary tokens")


class _Placed(Row):
    strategy: Strategy = column(STRATEGY)
    loss: float = column(LOSS, interval=RESAMPLED)
    change: float | None = column("loss − the same in rotation; null for rotation.", interval=RESAMPLED)
    copies: float = column("Copies in a text, on average; a search may take fewer than the budget.", ge=0)
    place: float = column(
        "Where they stand, on average: 0 before the text's first token, 1 behind its last.", within=SHARE
    )

    @rule
    def change_is_from_rotation(strategy: Series, change: Series) -> Series:
        """Nothing is compared with itself."""
        return (strategy == ROTATION) == change.isna()


class PlacementRow(_Placed, table="placement", key=("strategy", "role"), item="{role}, {strategy}"):
    """What copies of severe and of ordinary tokens take of similarities, by where they stand."""

    role: Literal["severe", "ordinary"] = column("Of the severe tokens the mean, of the ordinary ones the median.")
    loss: float = column(LOSS, interval=RESAMPLED, figure=Worse("higher", absolute=0.05))
    loss_seen: float = column("loss against the sentences that the search saw.")
    tokens: int = column("Tokens.", ge=1)
    draws: int = column("Sentences that each was placed in.", ge=1)
    budget: int = column("Copies that a sentence may hold.", ge=1)
    encodes: int = column("Encodes for a token in a sentence; a gradient counts as six.", ge=1)

    @rule
    def ordinary_in_rotation_is_the_unit(strategy: Series, role: Series, loss: Series) -> Series:
        """What everything is measured in: a loss of 0."""
        return (strategy != ROTATION) | (role == "severe") | (loss.astype(float).abs() <= TOLERANCE)

    @rule
    def within_budget(copies: Series, budget: Series) -> Series:
        """No text holds more copies."""
        return copies <= budget + TOLERANCE


class PlacementTokenRow(_Placed, table="placement_token", key=("strategy", "token_id")):
    """What one of the severe tokens takes of similarities, by where its copies stand."""

    token_id: int = column("Id of the token.", ge=0)
    token: str = column("As the vocabulary writes it.")
    example: str = column("The first sentence with the copies, decoded.")


ROWS: tuple[type[Row], ...] = (PlacementRow, PlacementTokenRow)
