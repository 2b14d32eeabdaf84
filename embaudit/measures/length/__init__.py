"""Length collapse (arXiv 2410.24200): how much more alike long texts are, and how much of that needs no attention.

``curve`` measures similarity by length under four conditions and compares them, ``bias`` measures the effect of length
on neighbours, on unrelated pairs and on rankings of a collection, and ``heads`` measures σ_a by layer, head and length,
beside its published bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from pydantic import Field, field_validator

from embaudit.declared.figure import Worse
from embaudit.declared.table import (
    COSINE,
    ROUNDED_SHARE,
    SHARE,
    TOLERANCE,
    BigInt,
    Interval,
    Range,
    Row,
    Series,
    column,
    computed,
    rule,
)
from embaudit.measures.measure import Asked, DrawnSettings, Measure, OfCorpus, Readable, Work, parts_of

DIFFERENCE: Range = (-1, 1)
Condition = Literal["natural", "truncation", "windows", "input_embeddings"]
# The two norms are computed from float32 weights with different rounding.
NORM_TOLERANCE = 1e-3


class LengthBinRow(OfCorpus, table="length_bin", key=("corpus", "condition", "low")):
    """Mean cosine of texts in one length bin under one condition; lengths are before truncation."""

    condition: Condition = column("What is compared: whole texts, or one of three controls.")
    low: int = column("Shortest length in the bin, without special tokens.", unit="tokens", ge=0)
    high: int = column(
        "Exclusive upper end of the bin; the last bin ends with the position table.",
        unit="tokens",
        ge=1,
        at_least="length",
        above="low",
    )
    length: float = column("Mean length of its texts, or the length that controls are cut to.", unit="tokens", ge=0)
    beyond_limit: bool = column("Whether length exceeds the checkpoint's configured limit.")
    texts: int = column("Texts in the bin.", ge=0)
    cosine_mean: float | None = column(
        "Mean pairwise cosine; null below two texts.",
        within=COSINE,
        interval=Interval("jackknife over texts, null below four", "cosine_low", "cosine_high"),
    )

    @rule
    def mean_needs_two_texts(texts: Series, cosine_mean: Series) -> Series:
        """A bin has a mean if and only if it has two texts."""
        return cosine_mean.notna() == (texts > 1)


class Rise(Row):
    """A condition's rise from the first to the last bin that has a mean."""

    condition: Condition = column("What is compared: whole texts, or one of three controls.")
    first_length: float | None = column("Length of the first bin.", unit="tokens", ge=0)
    last_length: float | None = column("Length of the last bin.", unit="tokens", ge=0, at_least="first_length")
    first_cosine: float | None = column("Mean cosine in the first bin.", within=COSINE, figure=True)
    last_cosine: float | None = column("Mean cosine in the last bin.", within=COSINE, figure=True)
    rise: float | None = column("last_cosine − first_cosine.", figure=Worse("higher", absolute=0.03))
    share_of_natural: float | None = column(
        "rise / rise of the natural curve, over the bins that both have; null without a rise.", figure=True
    )
    share_of_truncation: float | None = column(
        "rise / rise of truncations of the same texts.", figure=True, interval=Interval("jackknife over texts")
    )
    share_of_truncation_low: float | None
    share_of_truncation_high: float | None


class LengthRiseRow(Rise, OfCorpus, table="length_rise", key=("corpus", "condition"), item="{corpus}, {condition}"):
    """A condition's rise from the first to the last bin that has a mean; all null if fewer than two have one."""

    @rule
    def rise_is_difference_of_ends(first_cosine: Series, last_cosine: Series, rise: Series) -> Series:
        """rise = last_cosine − first_cosine."""
        expected = (last_cosine - first_cosine).astype(float)
        return (expected.isna() & rise.isna()) | ((rise - expected).abs() <= TOLERANCE)


class _Lengths(OfCorpus):
    """How long the texts of a corpus are, beside what is read of them."""

    corpus_id: str = column("Id of the corpus.")
    texts: int = column(
        "Texts of at least one token.", ge=0, at_least=("beyond_read", "beyond_configured", "control_texts")
    )
    empty: int = column("Texts without a token.", ge=0)
    read_limit: int = column("Longest text read here, without special tokens.", unit="tokens", ge=1, at_least="window")
    configured_limit: int = column("Longest text that the checkpoint reads as deployed.", unit="tokens", ge=1)
    position_limit: int | None = column("Length of the position table; null if there is none.", unit="tokens", ge=1)
    beyond_configured: int = column("Texts longer than configured_limit.", ge=0)
    beyond_read: int = column("Texts longer than read_limit, which are not on the natural curve.", ge=0)
    control_texts: int = column("Texts that the controls are made from.", ge=0)
    window: int = column("Length of the windows that are encoded separately.", unit="tokens", ge=1)
    tokens_mean: float | None = column("Mean length.", unit="tokens")
    tokens_median: float | None = column("Median length.", unit="tokens")
    tokens_max: int | None = column("Largest length.", unit="tokens")


class NeighbourBias(Row):
    """Length and neighbourhoods over N texts; None if undefined."""

    neighbours: int = column("k, the number of nearest neighbours.", ge=0)
    hubness_spearman: float | None = column(
        "Spearman's ρ between length and k-occurrence, the number of texts that have a text among their k nearest.",
        within=COSINE,
    )
    hubness_p: float | None = column("p-value of hubness_spearman, treating texts as independent.", within=SHARE)
    neighbour_length_ratio: float | None = column("Mean length of neighbours / mean length of texts.", ge=0)
    short_neighbour_length_ratio: float | None = column("The same for the neighbours of the shortest third.")
    rank_spearman: float | None = column(
        "Spearman's ρ between length and mean rank as an unrelated text; negative: long texts rank high.",
        within=COSINE,
    )
    knn_accuracy: float | None = column("Accuracy of the k neighbours' vote; null without labels.", within=SHARE)
    wrong_length_ratio: float | None = column(
        "Mean length of neighbours with another label / of neighbours with the same label.", ge=0
    )


class LengthSummaryRow(NeighbourBias, _Lengths, table="length_summary", key=("corpus",)):
    """Effect of length on nearest neighbours and ranks in a corpus."""

    is_labelled: bool = column(
        "Whether every text has a label, with at least two labels in all; texts with different labels are unrelated.",
        after="neighbours",
    )
    long_pairs: BigInt = column("Unrelated pairs in the longest third of the texts.", ge=0)
    long_pairs_mean: float | None = column("Their mean cosine.", within=COSINE)
    short_pairs_mean: float | None = column("Mean cosine of unrelated pairs in the shortest third.", within=COSINE)
    share_long_above: float | None = column(
        "Share of long pairs above the 95th percentile of short pairs; 0.05 if length had no effect.", within=SHARE
    )


class LengthPairRow(OfCorpus, table="length_pair", key=("corpus", "rank")):
    """One of the highest-scoring unrelated pairs of long texts."""

    rank: int = column("1 is the highest cosine.", ge=1)
    first: BigInt = column("Position of the first text in the corpus.", ge=0)
    second: BigInt = column("Position of the second text in the corpus.", above="first")
    first_tokens: int = column("Length of the first text.", unit="tokens", ge=1)
    second_tokens: int = column("Length of the second text.", unit="tokens", ge=1)
    first_label: str | None = column("Label of the first text, if it has one.")
    second_label: str | None = column("Label of the second text, if it has one.")
    cosine: float = column("Cosine similarity of the two.", within=COSINE)


class OutrankedShares(Row):
    """How often relevant documents of one length are outranked."""

    relevant: Literal["short", "long"] = column("Length of the relevant document.")
    pairs: int = column("Pairs of a query and a relevant document.", ge=1, at_least="units")
    units: int = column(
        "Resampling units of the bootstrap: queries that share a relevant document form one unit.", ge=1
    )
    by_short: float = column(
        "Share of the short irrelevant documents that outrank the relevant one; mean over pairs.", within=SHARE
    )
    by_long: float = column(
        "Share of the long irrelevant documents that outrank the relevant one; mean over pairs.", within=SHARE
    )
    difference: float = column(
        "by_short − by_long, for the same queries and relevant documents.",
        within=DIFFERENCE,
        figure=True,
        interval=Interval("bootstrap over units, null below ten", "low", "high"),
    )
    low: float | None
    high: float | None


class LengthRankingRow(
    OutrankedShares,
    table="length_ranking",
    key=("corpus", "condition", "relevant"),
    item="{corpus}, {condition}, {relevant} documents",
):
    """How often relevant documents are outranked by short and by long irrelevant ones."""

    corpus: str = column("Name of the collection in this audit.")
    condition: Literal["natural", "cut"] = column("Documents as they are read, or all cut to one length.")
    boundary: float = column(
        "Median document length; longer documents count as long.", unit="tokens", ge=0, after="relevant"
    )
    read: int = column(
        "Limit up to which documents are read, without special tokens.", unit="tokens", ge=1, after="boundary"
    )
    documents: int = column("Documents that are ranked.", ge=2, after="read")

    @rule
    def difference_is_of_shares(by_short: Series, by_long: Series, difference: Series) -> Series:
        """difference = by_short − by_long."""
        return (difference - (by_short - by_long)).abs() <= TOLERANCE


class HeadLength(Row):
    """One head at one length: means over texts, and shares of texts; None if no text has a value."""

    layer: int = column("Layer; 0 is the first.", ge=0)
    head: int = column("Head; 0 is the first.", ge=0)
    length: int = column("Length without special tokens.", unit="tokens", ge=1)
    tokens: int = column("n, special tokens included.", ge=1, at_least="length")
    texts: int = column("Texts cut to that length.", ge=1)
    is_causal: bool = column("Whether attention is causal, which the theory does not cover.")
    sigma_a: float = column("‖PA‖₂.", ge=0)
    frobenius: float = column("‖PA‖_F, always at least sigma_a.")
    sigma_s: float | None = column(
        "Standard deviation of the logits q·k/√d_h; null if the model biases, normalises or masks them.", ge=0
    )
    sigma_s_centred: float | None = column(
        "Standard deviation of the doubly centred logits; null if A has zeros.", ge=0
    )
    bound: float | None = column("The published upper bound on sigma_a at sigma_s.", ge=0)
    bound_centred: float | None = column("The same at sigma_s_centred.", ge=0)
    holds: float | None = column("Share of texts with sigma_a ≤ bound.", within=SHARE)
    holds_centred: float | None = column("Share of texts with sigma_a ≤ bound_centred.", within=SHARE)
    sigma_a_value_norm: float = column("σ_a ‖W_v^h‖₂, the factor of Theorem 2.", ge=0)
    hc_energy: float | None = column(
        "‖PX‖_F/‖X‖_F of the layer's output, the same for all its heads.", within=ROUNDED_SHARE
    )


class LengthSigmaRow(HeadLength, OfCorpus, table="length_sigma", key=("corpus", "layer", "head", "length")):
    """One attention head at one length, on truncations of the same texts: means over texts, and shares of texts."""

    @computed(at_least="sigma_a")
    def frobenius_and_tolerance(frobenius: Series) -> Series:
        """‖PA‖₂ ≤ ‖PA‖_F, up to rounding."""
        return frobenius * (1 + NORM_TOLERANCE) + TOLERANCE


ROWS: tuple[type[Row], ...] = (
    LengthBinRow,
    LengthRiseRow,
    LengthSummaryRow,
    LengthPairRow,
    LengthRankingRow,
    LengthSigmaRow,
)


# The corpus with queries, as named in embaudit.corpora.judged (which imports numpy).
DOCUMENTS = "retrieval"
# Time for sigma_a of one head at 512 tokens (benchmarks/README.md).
HEAD_SECONDS = 2e-3


class LengthSettings(DrawnSettings):
    """Settings of the length measure; lengths are in tokens, without special tokens."""

    corpora: tuple[str, ...] = Field(default=("longdocs",), description="corpora of long texts")
    texts: int = Field(default=500, ge=1, le=5_000, description="texts of each corpus")
    bin_width: int = Field(default=100, ge=1, description="width of a length bin, in tokens")
    longest: int = Field(default=2_048, ge=1, description="longest text, even if the model has more positions")
    control_texts: int = Field(
        default=150, ge=2, description="texts for the controls: truncations, windows and input embeddings"
    )
    window: int = Field(default=16, ge=1, description="tokens per window that is encoded separately and averaged")
    neighbours: int = Field(default=10, ge=1, description="k of the neighbour lists")
    sigma_texts: int = Field(default=100, ge=1, description="texts on which sigma_a is measured, at every length")
    sigma_lengths: tuple[int, ...] = Field(
        default=(16, 64, 128, 256, 512),
        min_length=1,
        description="lengths at which sigma_a is measured; capped at what the model can read",
    )

    ranked_documents: int = Field(
        default=1_000, ge=2, description="documents to rank if a collection is given, relevant ones first"
    )
    ranking_queries: int = Field(default=500, ge=4, description="queries of this collection")

    def work(self, readable: Readable) -> Iterator[Work]:
        for corpus in self.corpora:
            yield readable.read(corpus, self.texts, up_to=self.longest)
            # Truncations at up to eight lengths, half as long on average, of the three texts in four that reach all of
            # them; and windows, with two special tokens each.
            controls = readable.read(corpus, self.control_texts, times=3, up_to=self.longest)
            yield controls
            yield Work(controls.texts / 4 * controls.tokens / self.window, self.window + 2)
            for length in self.sigma_lengths:
                heads = readable.read(corpus, self.sigma_texts, up_to=length)
                yield replace(heads, core_seconds=heads.texts * readable.heads * HEAD_SECONDS * length / 512)
        if DOCUMENTS in self.corpora:
            yield readable.read(DOCUMENTS, self.ranked_documents, times=2)

    def requested(self, request: Asked) -> LengthSettings:
        """Adds a collection with judged queries if the request gives one."""
        asked = (DOCUMENTS,) if DOCUMENTS in request.corpora and DOCUMENTS not in self.corpora else ()
        return super().requested(request).model_copy(update={"corpora": (*self.corpora, *asked)})

    @field_validator("sigma_lengths")
    @classmethod
    def _a_length_has_a_token(cls, lengths: tuple[int, ...]) -> tuple[int, ...]:
        if min(lengths) < 1:
            raise ValueError(f"lengths must be 1 or more, not {list(lengths)}")
        return tuple(sorted(set(lengths)))


MEASURE_VERSION = 4

MEASURE = Measure(
    name="length",
    package=__name__,
    question="Do the vectors of texts become more alike the longer the texts are?",
    parts=parts_of(__name__),
    settings=LengthSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    shown_tables=("length_bin", "length_rise", "length_summary"),
)
