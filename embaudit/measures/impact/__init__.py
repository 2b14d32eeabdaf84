"""Impact: downstream tasks scored on clean texts and on texts that contain sticky tokens.

``arms`` chooses the tokens, inserts them into texts, and compares scores with the clean arm and with ordinary tokens.
The tasks are those of ``embaudit.corpora.downstream``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from embaudit.declared.figure import Worse
from embaudit.declared.table import COSINE, ROUNDED_SHARE, TOLERANCE, BigInt, Interval, Row, Series, column, rule
from embaudit.measures.measure import DownstreamSettings, Measure, OfCorpus, Readable, Work, parts_of


class ImpactSettings(DownstreamSettings):
    """Settings of the impact measure."""

    tokens: tuple[str, ...] = Field(
        default=(), description="ids, vocabulary strings or texts; none: the tokens that the sticky measure finds"
    )
    tokens_per_arm: int = Field(default=3, ge=1, description="worst tokens of each protocol, and ordinary tokens")
    starts: int = Field(default=3, ge=1, description="k-means initialisations")
    resamples: int = Field(default=500, ge=100, description="resamples of the paired bootstrap")

    def work(self, readable: Readable) -> Iterator[Work]:
        # Clean texts, and texts with each token of three arms (two protocols, ordinary), or of two (given, ordinary).
        yield from self.one_pass(readable, 1 + (2 if self.tokens else 3) * self.tokens_per_arm)

    @property
    def builds_on(self) -> tuple[str, ...]:
        return () if self.tokens else ("sticky",)


Metric = Literal["ndcg_10", "mrr_10", "recall_10", "v_measure", "accuracy", "spearman"]
Arm = Literal["clean", "ordinary", "retention", "definition", "reference", "given"]
Share = Literal["none", "half", "all"]
ARM = (
    "Which tokens the texts contain: none (clean), ordinary ones, the worst by retention, by definition or by the "
    "published code (reference), or those requested by the user (given)."
)
POISONED = "How many of the documents or texts contain copies; queries never do."
PAIRED = Interval("paired bootstrap over queries, texts or pairs; null below ten that share no text")
# Two points: another sample of texts moves a score by as much.
LOWER_SCORE = Worse("lower", absolute=0.02)


class _Effect(Row):
    """The effect of copies on a score."""

    metric: Metric = column(
        "nDCG@10, MRR@10 or recall@10 (retrieval); V-measure of k-means (clustering); nearest-neighbour accuracy "
        "(classification); Spearman's ρ with human scores (sts), the mean over data sets if there are several."
    )
    arm: Arm = column(ARM)
    poisoned: Share = column(POISONED)
    score: float | None = column("Mean over the tokens; null if undefined.", within=COSINE)
    change: float | None = column("score − score of the clean arm; null for that arm.", interval=PAIRED)
    beyond: float | None = column(
        "score − score with ordinary tokens in as many texts; null for the ordinary and the clean arm.",
        interval=PAIRED,
    )

    @rule
    def only_clean_has_no_copies(arm: Series, poisoned: Series, change: Series) -> Series:
        """The clean arm, and only it, has no copies; it has no change."""
        is_clean = arm == "clean"
        return (is_clean == (poisoned == "none")) & (~is_clean | change.isna())

    @rule
    def ordinary_tokens_are_the_comparison(arm: Series, beyond: Series) -> Series:
        """The clean and the ordinary arm are not compared with ordinary tokens."""
        return ~arm.isin(["clean", "ordinary"]) | beyond.isna()


def _as_figure(name: str) -> Any:
    """For arms only: another checkpoint has other tokens."""
    return replace(_Effect.own_columns[name], figure=LOWER_SCORE)


class ImpactRow(
    _Effect,
    OfCorpus,
    table="impact",
    key=("corpus", "metric", "arm", "poisoned"),
    item="{corpus}, {metric}, {arm}, {poisoned}",
):
    """The effect of an arm's tokens on a score, on average over the tokens."""

    score: float | None = _as_figure("score")
    change: float | None = _as_figure("change")
    beyond: float | None = _as_figure("beyond")
    corpus_id: str = column("Id of the corpus.")
    tokens: int = column("Tokens of the arm, each measured alone.", ge=0)
    items: int = column("Queries, texts or pairs.", ge=1, at_least="units")
    units: int = column("Resampling units of the bootstrap: items that share a text form one unit.", ge=1)
    texts: BigInt = column("Documents or texts that may get copies; both sides of pairs.", ge=1, at_least="held")
    held: BigInt = column("Those that have copies.", ge=0, at_least="shortened")
    copies: float = column("Mean number of copies in these; none are truncated.", ge=0)
    shortened: BigInt = column("Those that lose content at the end to make room for copies.", ge=0)

    @rule
    def texts_hold_copies(arm: Series, held: Series, copies: Series, tokens: Series) -> Series:
        """Every arm except the clean one has tokens, and copies in some texts."""
        is_poisoned = arm != "clean"
        return ((held > 0) == is_poisoned) & ((tokens > 0) == is_poisoned) & ((copies == 0) | is_poisoned)


class ImpactDataSetRow(
    _Effect, OfCorpus, table="impact_data_set", key=("corpus", "metric", "data_set", "arm", "poisoned")
):
    """The effect of an arm's tokens on the score of one data set, where a corpus has several."""

    data_set: str = column("Name of the data set: of its file, or of its repository on the hub.")
    items: int = column("Pairs.", ge=1, at_least="units")
    units: int = column("Resampling units of the bootstrap: pairs that share a sentence form one unit.", ge=1)


class ImpactTokenRow(_Effect, OfCorpus, table="impact_token", key=("corpus", "metric", "arm", "poisoned", "token_id")):
    """The effect of one token on a score."""

    token_id: int = column("Id of the token.", ge=0)
    token: str = column("The token as written in the vocabulary.")

    @rule
    def tokens_are_in_texts(arm: Series) -> Series:
        """The clean arm has no tokens."""
        return arm != "clean"


class ImpactQueryRow(OfCorpus, table="impact_query", key=("corpus", "query", "arm", "poisoned"), detail=True):
    """An arm's effect on one query, on average over its tokens; for comparing checkpoints on the same queries."""

    query: str = column("Text of the query.")
    arm: Arm = column(ARM)
    poisoned: Share = column(POISONED)
    ndcg_10: float = column("nDCG@10.", within=ROUNDED_SHARE)
    mrr_10: float = column("1 / rank of the first relevant document; 0 beyond rank ten.", within=ROUNDED_SHARE)
    recall_10: float = column("Share of the relevant documents in the top ten.", within=ROUNDED_SHARE)

    @rule
    def nothing_found_is_nothing_gained(ndcg_10: Series, mrr_10: Series, recall_10: Series) -> Series:
        """All three are 0, or none is."""
        return ((ndcg_10 > TOLERANCE) == (recall_10 > TOLERANCE)) & ((mrr_10 > TOLERANCE) == (recall_10 > TOLERANCE))


ROWS: tuple[type[Row], ...] = (ImpactRow, ImpactDataSetRow, ImpactTokenRow, ImpactQueryRow)

MEASURE_VERSION = 2

MEASURE = Measure(
    name="impact",
    package=__name__,
    question="What do sticky tokens do to retrieval, clustering, classification and similarity?",
    parts=parts_of(__name__),
    settings=ImpactSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    # Only on request: every text is encoded once per token.
    is_default=False,
    shown_tables=("impact", "impact_token"),
)
