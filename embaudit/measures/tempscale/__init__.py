"""Does a lower attention temperature help *this* checkpoint, compared with chunking, whitening and centring?

The tasks are those of ``embaudit.corpora.downstream``; ``compare`` has the alternatives, chooses τ on one half
of the items and reports on the other. Nothing here runs a model: vectors in, rows out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field, field_validator

from embaudit.declared.table import (
    COSINE,
    DIFFERENCE_OF_COSINES,
    TOLERANCE,
    BigInt,
    Interval,
    Row,
    Series,
    column,
    rule,
)
from embaudit.measures.measure import DownstreamSettings, Measure, Readable, Work, parts_of

Task = Literal["classification_knn", "classification_logistic", "clustering", "retrieval", "sts"]
ArmName = Literal["none", "temperature", "chunk_average", "whitening", "centring"]
Split = Literal["choose", "report"]
Recommendation = Literal["yes", "no", "unsupported"]
Part = Literal["layer", "head"]
MIN_TAU = 1e-12


class _Scored(Row):
    """A downstream task, and the items on which it is scored."""

    task: Task = column("Downstream task.")
    items: BigInt = column("Documents, queries or pairs.", ge=0, at_least="units")
    units: BigInt = column("Resampling units of the bootstrap: items that share a text form one unit.", ge=0)


class _Read(_Scored):
    """What was read for the task."""

    corpus: str = column("Name of the corpus in this audit.")
    corpus_id: str = column("Id of the corpus.")
    reads: Literal["limit", "positions"] = column("How far texts are read: as served, or up to all positions.")
    max_tokens: int = column("Longest document, special tokens included.", unit="tokens", ge=1)


class _InBin(_Scored):
    """A length bin, and the difference in score on it."""

    bin: int = column("Length bin; 0 is all lengths.", ge=0)
    bin_low: BigInt | None = column("Shortest length in the bin, before truncation.", unit="tokens")
    bin_high: BigInt | None = column("Exclusive upper end of the bin; null: open.", unit="tokens", at_least="bin_low")
    difference: float | None = column(
        "Score − score of the arm none on the same items.",
        within=DIFFERENCE_OF_COSINES,
        interval=Interval("paired bootstrap over units, null below ten", "low", "high"),
    )
    low: float | None
    high: float | None


class ArmScore(_InBin):
    """One arm on one half of one bin; there is no score with fewer than two items."""

    arm: ArmName = column("Modification of the checkpoint or its vectors.")
    tau: float = column("Attention temperature; 1 for all arms except temperature.", ge=MIN_TAU)
    split: Split = column("choose: the half that arms are fitted on; report: the held-out half.")
    # Accuracy, V-measure and nDCG lie in [0, 1], Spearman's ρ in [-1, 1].
    score: float | None = column(
        "Accuracy (classification), V-measure (clustering), nDCG@10 (retrieval) or Spearman's ρ (sts; mean over data "
        "sets); null below two items, and for clustering below two classes.",
        within=COSINE,
    )


class TempscaleRow(ArmScore, _Read, table="tempscale", key=("task", "arm", "tau", "split", "bin")):
    """One arm on one half of one length bin."""

    @rule
    def only_other_arms_have_differences(
        arm: Series, tau: Series, difference: Series, low: Series, high: Series
    ) -> Series:
        """The arm none is the unmodified checkpoint: τ = 1, and no difference."""
        has_none = difference.isna() & low.isna() & high.isna()
        return (arm != "none") | ((tau == 1) & has_none)


class Choice(_InBin):
    """The answer for one bin: the best τ on the choose half, and its effect on the report half."""

    tau: float | None = column("The chosen τ; null: too few items to choose on, or unsupported.", ge=MIN_TAU)
    recommendation: Recommendation = column(
        "yes: low > 0; unsupported: the architecture does not support a temperature."
    )
    score_before: float | None = column("Score at τ = 1 on the report half.", within=COSINE)
    score_after: float | None = column("Score at the chosen τ on the report half.", within=COSINE)
    reason: str = column("The recommendation in words.")


class TempscaleChoiceRow(Choice, _Read, table="tempscale_choice", key=("task", "bin")):
    """The answer: τ chosen on one half, and its difference from τ = 1 on the other."""

    @rule
    def recommendation_agrees_with_interval(recommendation: Series, low: Series, tau: Series) -> Series:
        """Yes if and only if the interval lies above 0; no τ if unsupported."""
        chosen = tau.astype(float)
        is_above = (low.astype(float) > 0) & chosen.notna() & (chosen != 1)
        return ((recommendation == "yes") == is_above) & ((recommendation != "unsupported") | chosen.isna())

    @rule
    def difference_is_of_the_scores(difference: Series, score_before: Series, score_after: Series) -> Series:
        """difference = score_after − score_before."""
        expected = score_after.astype(float) - score_before.astype(float)
        return difference.isna() | ((difference.astype(float) - expected).abs() <= TOLERANCE)


class SearchedTask(_Scored):
    """A τ of each part of the model, and what it gains on the report half."""

    part: Part = column("What has its own τ; a head's τ is the same in every layer.")
    tau: float = column("The best single τ on the choose half, where the search starts.", ge=MIN_TAU)
    taus: str = column("τ of each layer or head in order, as `--layer-tau` and `--head-tau` take them.")
    trials: int = column("Combinations of temperatures that were tried.", ge=1)
    recommendation: Literal["yes", "no"] = column("yes: low > 0 and beyond_low > 0.")
    score_before: float | None = column("Score at τ = 1.", within=COSINE)
    score_single: float | None = column("Score at the single τ.", within=COSINE)
    score_after: float | None = column("Score at `taus`.", within=COSINE)
    difference: float | None = column(
        "score_after − score_before.",
        within=DIFFERENCE_OF_COSINES,
        interval=Interval("paired bootstrap over units, null below ten", "low", "high"),
    )
    low: float | None
    high: float | None
    beyond: float | None = column(
        "score_after − score_single: the gain over a single τ.",
        within=DIFFERENCE_OF_COSINES,
        interval=Interval("paired bootstrap over units, null below ten", "beyond_low", "beyond_high"),
    )
    beyond_low: float | None
    beyond_high: float | None


class TempscaleSearchRow(SearchedTask, _Read, table="tempscale_search", key=("corpus", "task", "part")):
    """A τ per layer or per head, searched on the choose half from the best single τ; scores are on the report half."""

    @rule
    def recommended_where_better_than_both(recommendation: Series, low: Series, beyond_low: Series) -> Series:
        """Yes if and only if both intervals lie above 0."""
        return (recommendation == "yes") == ((low.astype(float) > 0) & (beyond_low.astype(float) > 0))

    @rule
    def differences_are_of_the_scores(
        difference: Series, beyond: Series, score_before: Series, score_single: Series, score_after: Series
    ) -> Series:
        """difference and beyond are differences of the scores."""
        after = score_after.astype(float)
        errors = [
            (found.astype(float) - (after - before.astype(float))).abs()
            for found, before in ((difference, score_before), (beyond, score_single))
        ]
        return ~((errors[0] > TOLERANCE) | (errors[1] > TOLERANCE))


ROWS: tuple[type[Row], ...] = (
    TempscaleRow,
    TempscaleChoiceRow,
    TempscaleSearchRow,
)


# Nearest neighbours, logistic regression and clustering.
LABELLED_TASKS = 3


class TempscaleSettings(DownstreamSettings):
    """Settings of the attention-temperature measure."""

    grid: tuple[float, ...] = Field(
        default=(1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5), min_length=1, description="temperatures τ; 1 is always included"
    )
    reads: Literal["limit", "positions"] = Field(
        default="limit", description="read documents up to the configured limit, as served, or up to all positions"
    )

    starts: int = Field(default=10, ge=1, description="k-means initialisations")
    by: tuple[Part, ...] = Field(
        default=(), description="also search a τ per layer, or per head (the same in every layer)"
    )

    def work(self, readable: Readable) -> Iterator[Work]:
        # One more pass for averaged chunks.
        yield from self.one_pass(readable, len(self.grid) + 1)
        parts = {"layer": readable.layers, "head": readable.heads / readable.layers}
        for part in self.by:
            for corpus in self.corpora:
                # Two neighbouring values per part and sweep; tasks on the same texts share some encodes.
                yield self.texts_of(corpus, readable, 2 * parts[part] * (LABELLED_TASKS if corpus == "longdocs" else 1))

    @field_validator("grid")
    @classmethod
    def _every_temperature_is_positive(cls, grid: tuple[float, ...]) -> tuple[float, ...]:
        if any(not 0 < tau < float("inf") for tau in grid):
            raise ValueError(f"temperatures must be greater than 0, not {list(grid)}")
        return tuple(sorted({1.0, *grid}, reverse=True))


MEASURE_VERSION = 3

MEASURE = Measure(
    name="tempscale",
    package=__name__,
    question="Does a lower attention temperature help?",
    parts=parts_of(__name__),
    settings=TempscaleSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    # Only on request: everything is encoded once per temperature of the grid.
    is_default=False,
    shown_tables=("tempscale_choice",),
)
