"""Quality: does a checkpoint do what an embedding is for, and is it declared right?

``quality`` runs all of it; each finding has a module of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, Self

from pydantic import Field

from embaudit.declared.figure import Worse
from embaudit.declared.table import Interval, Row, Series, column, rule
from embaudit.measures.measure import Asked, Measure, MeasureSettings, Readable, Work, parts_of

# What a check encodes, other prompts and cases included, in texts of about so many tokens.
TEXTS, TOKENS = 2_000, 24
# A core's time for the resamples behind its intervals, and for reading what it scores in other ways.
SECONDS = 6.0
# Queries with nine other wordings of the instruction, the sample's 90 or up to 120 of a collection.
WORDED_QUERIES, WORDED_TOKENS = 1_080, 21
# Golden queries are asked among so many documents.
GOLDEN = "golden"
GOLDEN_DOCUMENTS = 2_000


class QualitySettings(MeasureSettings):
    """Settings of the quality measure."""

    corpora: tuple[Literal["sts", "retrieval", "golden"], ...] = Field(
        default=("sts", "retrieval", "golden"),
        description="scored pairs, and a collection with judged queries; of what is not given, a sample of its own. "
        "Golden queries with the texts that they should find, if they are given",
    )

    wordings: bool = Field(
        default=False, description="encode queries with nine other wordings of the instruction before them, too"
    )

    def requested(self, request: Asked) -> Self:
        """Its own sample is larger than the embedded corpora, and takes their place."""
        return self.without_sample(request)

    @property
    def builds_on(self) -> tuple[str, ...]:
        """With a broken tokenizer, other readings are not compared."""
        return ("integrity",)

    def work(self, readable: Readable) -> Iterator[Work]:
        yield Work(TEXTS, min(TOKENS, readable.max_length), core_seconds=SECONDS, runs_in="float32")
        if self.wordings:
            yield Work(WORDED_QUERIES, min(WORDED_TOKENS, readable.max_length), runs_in="float32")
        if GOLDEN in self.corpora and GOLDEN in readable.rows:
            yield replace(readable.read(GOLDEN, GOLDEN_DOCUMENTS), runs_in="float32")


# What the parts found is passed on in this table, which is not published.
STAGED = "quality_finding"
OVER_ITEMS = Interval("bootstrap over groups that share a text, null below ten")
RANGE = (-1.0, 1.0)
Kind = Literal["pairs", "queries", "golden"]
# Whatever the audit's precision is.
FLOAT32 = "'float32'"
SCORE = (
    "of pairs Spearman's ρ with people's scores, of queries the mean nDCG@10, of golden queries the share of which an "
    "answer is among the first ten"
)
KIND = "pairs: scored sentence pairs; queries: queries with judged documents; golden: a user's golden queries."


class QualityRow(Row, table="quality", key=("data_set", "kind"), item="{data_set}, {kind}"):
    """What a checkpoint finds in one data set, as it is declared, beside its words alone."""

    data_set: str = column("Name of the data set; sample: the one that comes with embaudit.")
    kind: Kind = column(KIND)
    items: int = column("Number of pairs or queries.", ge=1)
    score: float = column(
        f"The score: {SCORE}.", within=RANGE, figure=Worse("lower", 0.02), interval=OVER_ITEMS, dtype=FLOAT32
    )
    words_score: float | None = column(
        "The same score of word overlap: TF-IDF, or of queries the better of it and BM25; null without words.",
        within=RANGE,
    )
    words_gain: float | None = column(
        "score − words_score, paired.", figure=Worse("lower", 0.02), interval=OVER_ITEMS, dtype=FLOAT32
    )
    input_score: float = column("The same score of the mean of its own input embeddings.", within=RANGE)
    input_gain: float = column(
        "score − input_score, paired.", figure=Worse("lower", 0.02), interval=OVER_ITEMS, dtype=FLOAT32
    )
    auc: float | None = column(
        "Of pairs: the share of (matching, unrelated) pairs in the right order.", within=(0.0, 1.0), interval=OVER_ITEMS
    )
    directions: float | None = column("Of pairs: participation ratio of the sentences' centred unit vectors.", ge=0)
    separation: float | None = column(
        "Of pairs: difference of the mean cosines of matching and unrelated ones, over the deviation of the latter."
    )
    unrelated_cosine: float | None = column("Mean cosine of unrelated pairs.")
    matching_cosine: float | None = column("Mean cosine of matching pairs.")
    unrelated_median: float | None = column("Median score of unrelated pairs, by the declared similarity.")
    matching_median: float | None = column("Median score of matching pairs, by the declared similarity.")
    threshold: float | None = column(
        "The score that lets 1 % of unrelated pairs through.",
        figure=True,
        interval=Interval(
            "exact from order statistics; where too few pairs bound it, up to 1 for cosines and null for others"
        ),
        dtype=FLOAT32,
    )
    kept: float | None = column(
        "Share of matching pairs above it.",
        within=(0.0, 1.0),
        figure=Worse("lower", 0.05),
        interval=Interval("exact, that of the threshold included; null without one"),
        dtype=FLOAT32,
    )

    @rule
    def only_pairs_have_a_scale(kind: Series, auc: Series, threshold: Series) -> Series:
        """Queries have neither a scale nor an AUC."""
        return (kind == "pairs") | (auc.isna() & threshold.isna())


class QualityLayerRow(Row, table="quality_layer", key=("data_set", "kind", "layer")):
    """The score that a checkpoint would have if its network stopped after a layer."""

    data_set: str = column("Name of the data set.")
    kind: Kind = column("pairs: scored sentence pairs; queries: queries with judged documents.")
    layer: int = column("Number of layers that run; 0: the input embeddings with positions.", ge=0)
    score: float = column(f"The score: {SCORE}.", within=RANGE, interval=OVER_ITEMS)


class QualityReadingRow(Row, table="quality_reading", key=("reading", "data_set", "kind")):
    """What another reading of the same checkpoint would gain: pooling, prompt, case, limit, dimensions."""

    reading: str = column("The other reading, such as cls pooling.")
    data_set: str = column("Name of the data set.")
    kind: Kind = column("pairs: scored sentence pairs; queries: queries with judged documents.")
    aspect: str = column("What it changes: pooling, similarity, dimensions, case, prompts, special_tokens, length.")
    gain: float = column("Its score − that of the declared reading, paired.", interval=OVER_ITEMS)


class QualityWordingRow(Row, table="quality_wording", key=("data_set", "wording")):
    """What a checkpoint finds with another wording of the instruction before queries."""

    data_set: str = column("Name of the data set.")
    wording: str = column(
        "Whose wording it is: a family's, a paraphrase of one, none, or declared, if no family has the declared one."
    )
    prompt: str = column("The wording itself.")
    is_declared: bool = column("Whether it is the checkpoint's own.")
    queries: int = column("Number of queries.", ge=1)
    score: float = column("Mean nDCG@10 with it.", within=(0.0, 1.0), interval=OVER_ITEMS)
    change: float = column(
        "Its score − that of the declared wording, paired; 0 for the declared one.", within=RANGE, interval=OVER_ITEMS
    )
    words_score: float | None = column(
        "nDCG@10 of TF-IDF with the wording as words of each query; null without words.", within=(0.0, 1.0)
    )

    @rule
    def the_declared_wording_changes_nothing(is_declared: Series, change: Series) -> Series:
        """It is what the others are compared with."""
        return ~is_declared.astype(bool) | (change == 0)


ROWS: tuple[type[Row], ...] = (QualityRow, QualityLayerRow, QualityReadingRow, QualityWordingRow)


# Increase this when values or the sample's texts change: it is part of the keys of all the measure's steps.
MEASURE_VERSION = 2


MEASURE = Measure(
    name="quality",
    package=__name__,
    question="Does it do what an embedding is for, and is it declared right?",
    parts=parts_of(__name__),
    settings=QualitySettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"quality": ("score", "threshold")},
    shown_tables=("quality",),
)
