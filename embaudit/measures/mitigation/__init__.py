"""What helps against sticky tokens: remedies compared by the tokens' loss, by scores on poisoned texts, and by cost.

``remedies`` defines what a remedy does to ids, embeddings or vectors, and measures retention under each of them.
The tasks are those of ``embaudit.corpora.downstream``; copies are inserted as in ``embaudit.measures.impact``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, get_args

from pydantic import Field

from embaudit.declared.figure import Worse
from embaudit.declared.table import COSINE, SHARE, TOLERANCE, BigInt, Interval, Row, Series, column, rule
from embaudit.measures.impact import LOWER_SCORE, PAIRED, ImpactSettings
from embaudit.measures.measure import Measure, OfCorpus, Readable, Work, parts_of
from embaudit.remedies.screening import Severity

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


Metric = Literal["ndcg_10", "v_measure", "accuracy", "spearman"]
METRICS: tuple[str, ...] = get_args(Metric)
RemedyOrNone = Literal["none", "strip", "prune", "unk", "mean", "scale", "centring", "components", "whitening"]
assert get_args(RemedyOrNone) == (NONE, *REMEDIES)
REMEDY = (
    "none; severe tokens removed from texts (strip) or from the tokenizer (prune); their input embeddings replaced by "
    "the unknown token's (unk) or the mean of all others (mean), or scaled to an ordinary length (scale); the vectors "
    "centred (centring), freed of their first principal components (components), or whitened (whitening)."
)
RESAMPLED = Interval("bootstrap over draws, groups of anchors and ordinary tokens")


class MitigationRow(
    OfCorpus, table="mitigation", key=("corpus", "metric", "remedy"), item="{corpus}, {metric}, {remedy}"
):
    """A task's score under a remedy, on clean texts and on texts that contain severe tokens."""

    corpus_id: str = column("Id of the corpus.")
    metric: Metric = column("As in the table impact.")
    remedy: RemedyOrNone = column(REMEDY)
    clean: float | None = column("Score on the unmodified texts; null if undefined.", within=COSINE, figure=LOWER_SCORE)
    clean_change: float | None = column(
        "clean − clean without a remedy: the cost; null for none.", interval=PAIRED, figure=LOWER_SCORE
    )
    poisoned: float | None = column(
        "Score with a severe token in all texts, on average over the tokens.", within=COSINE, figure=LOWER_SCORE
    )
    poisoned_change: float | None = column(
        "poisoned − poisoned without a remedy: the gain; null for none.", interval=PAIRED
    )
    tokens: int = column("Severe tokens, inserted one at a time.", ge=1)
    items: int = column("Queries, texts or pairs.", ge=1, at_least="units")
    units: int = column("Resampling units of the bootstrap: items that share a text form one unit.", ge=1)
    texts: BigInt = column("Documents, queries, texts, or both sides of pairs.", ge=1, at_least="touched")
    touched: BigInt = column("Clean texts that the remedy changes: those that contain a severe token, or all.", ge=0)

    @rule
    def none_changes_nothing(remedy: Series, touched: Series, clean_change: Series, poisoned_change: Series) -> Series:
        """Without a remedy no text changes, and there are no changes of score."""
        return (remedy != NONE) | ((touched == 0) & clean_change.isna() & poisoned_change.isna())

    @rule
    def untouched_texts_cost_nothing(touched: Series, clean_change: Series) -> Series:
        """A remedy that changes no clean text costs nothing."""
        return (touched > 0) | clean_change.isna() | (clean_change.astype(float).abs() <= TOLERANCE)


class _Loss(Row):
    loss: float = column(
        "1 − slope / median slope of ordinary tokens, both under the remedy.",
        interval=RESAMPLED,
    )
    change: float | None = column("loss − loss without a remedy; null for none.", interval=RESAMPLED)

    @rule
    def change_is_from_none(remedy: Series, change: Series) -> Series:
        """none, and only none, has no change."""
        return (remedy == NONE) == change.isna()


class MitigationLossRow(_Loss, table="mitigation_loss", key=("remedy",), item="{remedy}"):
    """Loss of the worst tokens under a remedy, and the share of the vocabulary that is lossy under it."""

    remedy: RemedyOrNone = column(REMEDY)
    loss: float = column(
        "1 − slope / median slope of ordinary tokens under the remedy, on average over the worst tokens.",
        interval=RESAMPLED,
        figure=Worse("higher", absolute=0.05),
    )
    severe: int = column("Severe tokens that the remedy is applied to.", ge=1)
    tokens: int = column("The worst of these, whose losses are averaged.", ge=1)
    draws: int = column("Sentences that tokens were inserted into.", ge=1)
    copies: int = column("Copies of a token per sentence.", ge=1)
    fitted_on: int | None = column("Clean texts that a transform of the vectors is fitted on; null for others.", ge=2)
    vocabulary: int = column("Random tokens of the vocabulary.", ge=1, at_least="lossy")
    lossy: int = column("Those with a loss of at least 0.25 under the remedy.", ge=0)
    lossy_share: float = column("lossy / vocabulary.", within=SHARE, interval=Interval("Clopper–Pearson"))

    @rule
    def share_agrees_with_counts(vocabulary: Series, lossy: Series, lossy_share: Series) -> Series:
        """lossy_share = lossy / vocabulary."""
        return (lossy_share - lossy / vocabulary).abs() <= TOLERANCE


class MitigationTokenRow(_Loss, table="mitigation_token", key=("remedy", "token_id")):
    """Loss of one of the worst tokens under a remedy."""

    remedy: RemedyOrNone = column(REMEDY)
    token_id: int = column("Id of the token.", ge=0)
    token: str = column("The token as written in the vocabulary.")


ROWS: tuple[type[Row], ...] = (MitigationRow, MitigationLossRow, MitigationTokenRow)

MEASURE_VERSION = 2

MEASURE = Measure(
    name="mitigation",
    package=__name__,
    question="What helps against sticky tokens, and what does it cost?",
    parts=parts_of(__name__),
    settings=MitigationSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    # Only on request: texts are encoded once per remedy and token.
    is_default=False,
    shown_tables=("mitigation", "mitigation_loss"),
)
