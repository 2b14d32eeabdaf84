"""What sticky tokens do to real work; the equations stand in ``embaudit.measures.impact.effects``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from embaudit.figure import Worse
from embaudit.table import COSINE, ROUNDED_SHARE, TOLERANCE, BigInt, Interval, Row, Series, column, rule

Metric = Literal["ndcg_10", "mrr_10", "recall_10", "v_measure", "accuracy", "spearman"]
Arm = Literal["clean", "ordinary", "retention", "definition", "reference", "given"]
Share = Literal["none", "half", "all"]
ARM = (
    "Which tokens the texts hold: none (clean), ordinary ones, the worst by either protocol or by the published one "
    "(reference), or those that were asked for (given)."
)
POISONED = "How many of the documents or texts hold copies; queries never do."
PAIRED = Interval("paired bootstrap over queries, texts or pairs, from ten that share no text")
# Two points: less is what another draw of the texts would move it by.
LOWER_SCORE = Worse("lower", absolute=0.02)


class _Effect(Row):
    """What copies do to a score."""

    metric: Metric = column(
        "nDCG, reciprocal rank or recall of the first ten (retrieval); V-measure of k-means (clustering); accuracy of "
        "the nearest neighbours (classification); Spearman's ρ with people's scores (sts)."
    )
    arm: Arm = column(ARM)
    poisoned: Share = column(POISONED)
    score: float | None = column("Mean over the tokens; null where it is undefined.", within=COSINE)
    change: float | None = column("score − that of the clean arm; null for that arm.", interval=PAIRED)
    beyond: float | None = column(
        "score − that of ordinary tokens in as many texts; null for these and for the clean arm.",
        interval=PAIRED,
    )

    @rule
    def only_clean_has_no_copies(arm: Series, poisoned: Series, change: Series) -> Series:
        """The clean arm holds no copies and changes nothing."""
        is_clean = arm == "clean"
        return (is_clean == (poisoned == "none")) & (~is_clean | change.isna())

    @rule
    def ordinary_tokens_are_the_comparison(arm: Series, beyond: Series) -> Series:
        """Nothing is beyond itself."""
        return ~arm.isin(["clean", "ordinary"]) | beyond.isna()


def _as_figure(declared: Any) -> Any:
    """Of an arm; tokens are others in another checkpoint."""
    return replace(declared, figure=LOWER_SCORE)


class ImpactRow(
    _Effect,
    table="impact",
    key=("corpus", "metric", "arm", "poisoned"),
    item="{corpus}, {metric}, {arm}, {poisoned}",
):
    """What the tokens of an arm do to a score, on average over the tokens."""

    corpus: str = column("Name of the corpus in this audit.")
    score: float | None = _as_figure(_Effect.score)
    change: float | None = _as_figure(_Effect.change)
    beyond: float | None = _as_figure(_Effect.beyond)
    corpus_id: str = column("The corpus.")
    tokens: int = column("Tokens of the arm, each measured alone.", ge=0)
    items: int = column("Queries, texts or pairs.", ge=1, at_least="units")
    units: int = column("Items that share a text are one unit: what the bootstrap draws.", ge=1)
    texts: BigInt = column("Documents or texts that may hold copies, of both sides of pairs.", ge=1, at_least="held")
    held: BigInt = column("Those that do.", ge=0, at_least="shortened")
    copies: float = column("Copies in one of these on average; all of them are read.", ge=0)
    shortened: BigInt = column("Of these, texts that lose content at their end to make room for copies.", ge=0)

    @rule
    def texts_hold_copies(arm: Series, held: Series, copies: Series, tokens: Series) -> Series:
        """Copies are in some texts of every arm but the clean one."""
        is_poisoned = arm != "clean"
        return ((held > 0) == is_poisoned) & ((tokens > 0) == is_poisoned) & ((copies == 0) | is_poisoned)


class ImpactTokenRow(_Effect, table="impact_token", key=("corpus", "metric", "arm", "poisoned", "token_id")):
    """What one token does to a score."""

    corpus: str = column("Name of the corpus in this audit.")
    token_id: int = column("Id of the token.", ge=0)
    token: str = column("As the vocabulary writes it.")

    @rule
    def tokens_are_in_texts(arm: Series) -> Series:
        """The clean arm has none."""
        return arm != "clean"


class ImpactQueryRow(Row, table="impact_query", key=("corpus", "query", "arm", "poisoned"), detail=True):
    """What an arm does to one query, on average over its tokens: checkpoints are compared on the same queries."""

    corpus: str = column("Name of the corpus in this audit.")
    query: str = column("What the query says.")
    arm: Arm = column(ARM)
    poisoned: Share = column(POISONED)
    ndcg_10: float = column("nDCG of the first ten.", within=ROUNDED_SHARE)
    mrr_10: float = column("1 / rank of the first relevant document, 0 beyond ten.", within=ROUNDED_SHARE)
    recall_10: float = column("Share of the relevant documents among the first ten.", within=ROUNDED_SHARE)

    @rule
    def nothing_found_is_nothing_gained(ndcg_10: Series, mrr_10: Series, recall_10: Series) -> Series:
        """The three are 0 together."""
        return ((ndcg_10 > TOLERANCE) == (recall_10 > TOLERANCE)) & ((mrr_10 > TOLERANCE) == (recall_10 > TOLERANCE))


ROWS: tuple[type[Row], ...] = (ImpactRow, ImpactTokenRow, ImpactQueryRow)
