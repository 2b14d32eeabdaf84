"""Does a lower attention temperature help, and what chunking, whitening and centring do instead."""

from __future__ import annotations

from typing import Literal

from embaudit.table import COSINE, DIFFERENCE_OF_COSINES, TOLERANCE, BigInt, Interval, Row, Series, column, rule

Task = Literal["classification_knn", "classification_logistic", "clustering", "retrieval", "sts"]
MIN_TAU = 1e-12


class _Asked(Row):
    """The task, and what was read for it."""

    task: Task = column("What the embeddings are used for.")
    items: BigInt = column("Documents, queries or pairs.", ge=0, at_least="units")
    units: BigInt = column("Items that share a text are one unit: what the bootstrap draws.", ge=0)
    corpus: str = column("Name of the corpus in this audit.")
    corpus_id: str = column("The corpus.")
    reads: Literal["limit", "positions"] = column("How far texts are read: as served, or up to the position table.")
    max_tokens: int = column("Longest document, special tokens included.", unit="tokens", ge=1)


class _Bin(_Asked):
    """What a score is measured on."""

    bin: int = column("Bin of lengths; 0 has all of them.", ge=0)
    bin_low: BigInt | None = column("Shortest text of the bin before truncation.", unit="tokens")
    bin_high: BigInt | None = column("End of the bin, itself not in it; null: open.", unit="tokens", at_least="bin_low")
    difference: float | None = column("Score − that of the arm none on the same items.", within=DIFFERENCE_OF_COSINES)
    low: float | None = column(
        "Lower end of the 95 % interval of the difference: paired bootstrap over units, from ten of them.",
        within=DIFFERENCE_OF_COSINES,
    )
    high: float | None = column(
        "Upper end of the 95 % interval of the difference.", within=DIFFERENCE_OF_COSINES, at_least="low"
    )


class TempscaleRow(_Bin, table="tempscale", key=("task", "arm", "tau", "split", "bin")):
    """One arm on one half of one bin of lengths."""

    arm: Literal["none", "temperature", "chunk_average", "whitening", "centring"] = column(
        "What is done to the checkpoint."
    )
    tau: float = column("τ of the attention; 1 for every arm but temperature.", ge=MIN_TAU)
    split: Literal["choose", "report"] = column("Half: arms are fitted on the first, and scored on the second.")
    # Accuracy, V-measure and nDCG lie in [0, 1], Spearman's ρ in [-1, 1].
    score: float | None = column(
        "Accuracy (classification), V-measure (clustering), nDCG@10 (retrieval) or Spearman's ρ (sts); null below two "
        "items, and for clustering below two classes.",
        within=COSINE,
    )

    @rule
    def only_other_arms_have_differences(
        arm: Series, tau: Series, difference: Series, low: Series, high: Series
    ) -> Series:
        """The arm none is the checkpoint as it is: τ = 1, and no difference to itself."""
        has_none = difference.isna() & low.isna() & high.isna()
        return (arm != "none") | ((tau == 1) & has_none)


class TempscaleChoiceRow(_Bin, table="tempscale_choice", key=("task", "bin")):
    """The answer: τ chosen on one half, and its difference to τ = 1 on the other."""

    tau: float | None = column("The chosen τ; null: nothing to choose on, or unsupported.", ge=MIN_TAU)
    recommendation: Literal["yes", "no", "unsupported"] = column(
        "yes: low > 0; unsupported: the family takes no temperature."
    )
    score_before: float | None = column("Score at τ = 1 on the report half.", within=COSINE)
    score_after: float | None = column("Score at the chosen τ on the report half.", within=COSINE)
    reason: str = column("The recommendation in words.")

    @rule
    def recommendation_agrees_with_interval(recommendation: Series, low: Series, tau: Series) -> Series:
        """Yes where the interval lies above 0, and nowhere else; no τ where there is no temperature to choose."""
        chosen = tau.astype(float)
        is_above = (low.astype(float) > 0) & chosen.notna() & (chosen != 1)
        return ((recommendation == "yes") == is_above) & ((recommendation != "unsupported") | chosen.isna())

    @rule
    def difference_is_of_the_scores(difference: Series, score_before: Series, score_after: Series) -> Series:
        """The difference is that of the two scores."""
        expected = score_after.astype(float) - score_before.astype(float)
        return difference.isna() | ((difference.astype(float) - expected).abs() <= TOLERANCE)


class TempscaleSearchRow(_Asked, table="tempscale_search", key=("corpus", "task", "part")):
    """A τ for each layer or head, searched on the choose half from the best single τ; scores of the report half."""

    part: Literal["layer", "head"] = column("What has a τ of its own; heads have the same in every layer.")
    tau: float = column("The single τ that did best on the choose half, where the search began.", ge=MIN_TAU)
    taus: str = column("τ of each layer or head, from the first: what `--layer-tau` and `--head-tau` take.")
    trials: int = column("Temperatures that were tried.", ge=1)
    recommendation: Literal["yes", "no"] = column("yes: low > 0 and beyond_low > 0.")
    score_before: float | None = column("Score at τ = 1.", within=COSINE)
    score_single: float | None = column("Score at the single τ.", within=COSINE)
    score_after: float | None = column("Score at `taus`.", within=COSINE)
    difference: float | None = column(
        "score_after − score_before.",
        within=DIFFERENCE_OF_COSINES,
        interval=Interval("paired bootstrap over units, from ten", "low", "high"),
    )
    beyond: float | None = column(
        "score_after − score_single: what one τ for all does not give.",
        within=DIFFERENCE_OF_COSINES,
        interval=Interval("paired bootstrap over units, from ten", "beyond_low", "beyond_high"),
    )

    @rule
    def recommended_where_better_than_both(recommendation: Series, low: Series, beyond_low: Series) -> Series:
        """Yes where both intervals lie above 0, and nowhere else."""
        return (recommendation == "yes") == ((low.astype(float) > 0) & (beyond_low.astype(float) > 0))

    @rule
    def differences_are_of_the_scores(
        difference: Series, beyond: Series, score_before: Series, score_single: Series, score_after: Series
    ) -> Series:
        """Both differences are those of the scores."""
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
