"""Sticky tokens (arXiv 2507.18171): search, validation, and the evidence behind them."""

from __future__ import annotations

from typing import Literal

from embaudit.declared.figure import Summary, SummaryFigure, Worse
from embaudit.declared.table import (
    COSINE,
    ROUNDED_SHARE,
    SHARE,
    TOLERANCE,
    BigInt,
    Interval,
    Json,
    Range,
    Row,
    Series,
    Warn,
    column,
    rule,
)

Role = Literal["candidate", "control"]
Protocol = Literal["definition", "retention"]
# Beside them tokens are negligible.
Grade = Literal["strong", "moderate", "weak"]
Severity = Literal[Grade, "negligible"]
# Graded on loss: how much less of a pair's similarity a token retains than ordinary tokens do.
SEVERITY_FROM_LOSS: tuple[tuple[float, Grade], ...] = ((0.5, "strong"), (0.25, "moderate"), (0.1, "weak"))
Basis = Literal["screened", "validated"]
# A count of sticky tokens changes by one or two from one sample of draws to another.
MORE_TOKENS = Worse("higher", absolute=2, relative=0.1)
OVER_TOKENS = Interval("Bonett–Wright over tokens")
CROSSED = Interval("bootstrap over draws, groups of anchors and controls")
BY_BOOTSTRAP = Interval("bootstrap over tokens")
OVER_ENTRIES = Interval("jackknife over 25 groups of the entries that it is estimated from, null if these are all")
OVER_GROUPS = Interval("jackknife over 25 groups of tokens")
# ρ_t ≥ 0, so that pull ≤ 1.
PULL: Range = (None, 1 + TOLERANCE)
CHANGE_OF_COSINE: Range = (-2 - TOLERANCE, 2 + TOLERANCE)
# Similarities after insertion are float32: if all are nearly equal, their spread has few significant digits.
SPREAD_TOLERANCE = 1e-3


class StickySentenceRow(Row, table="sticky_sentence", key=("purpose", "role", "position")):
    """A sentence that tokens are inserted into (draw), or that the results are compared with (anchor)."""

    purpose: Literal["scoring", "validation"] = column("Which step uses the sentence.")
    role: Literal["draw", "anchor"] = column("Every draw is compared with every anchor of its purpose.")
    position: int = column("Index among the sentences of its purpose and role, from 0.", ge=0)
    sentence: str = column("The sentence.")


class StickyPairRow(Row, table="sticky_pair", key=("purpose", "position")):
    """Sentence pairs, for the steps that need pairs; those given by the user included."""

    purpose: Literal["scoring", "validation", "shift", "reference_scoring", "reference_validation"] = column(
        "Which step uses the pair."
    )
    position: int = column("Index among the pairs of its purpose, from 0.")
    first: str = column("The sentence that is left unchanged.")
    second: str = column("The sentence that tokens are inserted into.")
    similarity: float = column("Cosine before insertion.", within=COSINE)


class StickyScoreRow(Row, table="sticky_score", key=("token_id",), detail=True):
    """The search's scores of every token that it scanned."""

    token_id: int = column("Id of the token.")
    draws: int = column("(Sentence, operator) draws spent on it.", ge=1)
    pull: float | None = column("1 − ρ_t/ρ_0; null if none of its draws has a point below u.", within=PULL)
    slope: float = column("Regression slope of similarity after insertion on similarity before: the share retained.")
    pull_rank: int = column("1 is the strongest pull; tokens with more draws rank first.", ge=1)
    slope_rank: int = column("1 is the lowest retention; tokens with more draws rank first.", ge=1)
    shortlisted_by: str | None = column("definition, retention or definition+retention; null: not shortlisted.")
    is_pilot: bool = column("Whether it belongs to the pilot, a random sample that gets all draws.")

    @rule
    def ranks_are_complete(pull_rank: Series, slope_rank: Series) -> Series:
        """Ranks run from 1 to the number of tokens, each used once."""
        return _is_rank(pull_rank) & _is_rank(slope_rank)


class TokenEffect(Row):
    """A token's effect on the validation points, with 95 % intervals; None if undefined (0/0)."""

    points: int = column("(Draw, anchor) points measured.", ge=1)
    rho: float = column("ρ_t: mean |similarity − u| after insertion, over points below u.", within=(0, 2))
    rho_0: float = column("ρ_0: the same before insertion.", within=(0, 2))
    pull: float = column("1 − ρ_t/ρ_0: how far similarities moved towards u.", within=PULL, interval=CROSSED)
    pull_low: float | None
    pull_high: float | None
    excess_pull: float = column("Pull minus the controls' median pull.")
    slope: float = column("Regression slope of similarity after insertion on similarity before.", interval=CROSSED)
    slope_low: float | None
    slope_high: float | None
    loss: float = column("1 − slope / the controls' median slope.", interval=CROSSED)
    loss_low: float | None
    loss_high: float | None
    focal_point: float | None = column("The value that similarities are pulled to: intercept / (1 − slope).")
    focal_low: float | None = column("Lower end of the 95 % bootstrap interval of focal_point.")
    focal_high: float | None = column("Upper end of the 95 % bootstrap interval of focal_point.")
    sticks_to: str | None = column("'u' if the focal point's interval contains u, otherwise the focal point.")
    severity: Severity = column("Grade of the loss, in absolute terms.")
    shift: float = column("Mean of (similarity after − before).", within=CHANGE_OF_COSINE)
    compression: float | None = column("Standard deviation of similarity after / before.", ge=0)
    near_u_05: float = column("Share of points within 0.05 of u.", within=SHARE)
    near_u_10: float = column("Share of points within 0.1 of u.", within=SHARE, at_least="near_u_05")


class StickyValidationRow(TokenEffect, table="sticky_validation", key=("token_id", "protocol")):
    """A validated token under one protocol: its effect, and how it compares; the controls are ordinary tokens."""

    token_id: int = column("Id of the token.")
    protocol: Protocol = column("How it is judged: by the paper's definition, or by retention.")
    role: Role = column("candidate: shortlisted; control: an ordinary token for comparison.", after="protocol")
    value: float = column("What is compared with the threshold: pull, or slope.", after="severity")
    threshold: float | None = column(
        "Beyond it, a candidate stands out from its shortlist; null below 40 candidates.", after="value"
    )
    outlier: str | None = column(
        "Whether it stands out from the other candidates, however bad they are: yes, no, no_threshold, or "
        "not_shortlisted (a candidate of the other protocol); null for controls.",
        after="threshold",
    )
    basis: Basis = column("How thoroughly the profile validates.", after="outlier")
    dtype: str | None = column(
        "Precision of the similarities that all of it follows from; null in older audits.", after="basis"
    )
    p_value: float = column("For H0: no more extreme than the controls' 95th percentile.", within=SHARE)
    q_value: float | None = column(
        "Benjamini–Hochberg over the protocol's candidates; null for all others.", within=SHARE, at_least="p_value"
    )

    @rule
    def outlier_agrees_with_threshold(
        protocol: Series, role: Series, value: Series, threshold: Series, outlier: Series, q_value: Series
    ) -> Series:
        """An outlier lies above the threshold (definition: pull), or below it (retention: slope)."""
        import numpy as np

        is_beyond = np.where(protocol == "definition", value > threshold, value < threshold)
        expected = np.select(
            # Every candidate of a protocol's own shortlist has a q-value.
            [role == "control", threshold.isna(), q_value.isna(), is_beyond],
            ["", "no_threshold", "not_shortlisted", "yes"],
            "no",
        )
        return outlier.fillna("") == expected

    @rule
    def severity_agrees_with_loss(severity: Series, loss: Series) -> Series:
        """Strong from 0.5, moderate from 0.25, weak from 0.1."""
        return severity == loss.map(severity_of)

    @rule
    def slope_within_compression(slope: Series, compression: Series) -> Series:
        """|slope| = |correlation| · compression ≤ compression, up to float32 rounding."""
        most = compression.astype(float) * (1 + SPREAD_TOLERANCE) + TOLERANCE
        return compression.isna() | (slope.abs() <= most)


class StickySummaryRow(Row, table="sticky_summary", key=("protocol",), item="{protocol}"):
    """The search and its results under one protocol."""

    protocol: Protocol = column("How tokens are judged.")
    u: float = column(
        "Mean pairwise cosine of the token strings, each encoded as a text.",
        within=ROUNDED_SHARE,
        figure=True,
        interval=OVER_ENTRIES,
    )
    u_ids: float = column(
        "The same with each token encoded by its id.", within=ROUNDED_SHARE, figure=True, interval=OVER_ENTRIES
    )
    u_input_embeddings: float = column(
        "The same for rows of the input embedding matrix.", within=ROUNDED_SHARE, figure=True
    )
    vocabulary_size: int = column("Entries of the vocabulary.", at_least="eligible")
    eligible: int = column("Reachable or special tokens.", at_least="searched")
    searched: int = column("Tokens in the search: all eligible ones, unless limited.", at_least="scanned")
    scanned: int = column(
        "Tokens inserted into at least one sentence; the others are predicted from their embeddings.", at_least="pilot"
    )
    rungs: Json = column("Number of tokens with at least each number of draws.")
    encodes: BigInt = column("Texts encoded by scan and validation.", ge=1)
    reliability: float | None = column(
        "Split-half reliability: Spearman's ρ between scores from halves that share neither draws nor anchors.",
        within=COSINE,
        figure=True,
        interval=OVER_TOKENS,
        dtype="scan_dtype",
    )
    prediction: float | None = column(
        "Out-of-fold Spearman's ρ between the pilot's scores and their prediction from input embeddings.",
        within=COSINE,
        figure=True,
        interval=OVER_TOKENS,
        dtype="scan_dtype",
    )
    draws: int = column("(Sentence, operator) draws of the search.", ge=1)
    anchors: int = column("Sentences that each draw of the search is compared with.", ge=1)
    validation_draws: int = column("Draws of the validation.", warn=Warn(below=20))
    validation_anchors: int = column("Sentences that each draw of the validation is compared with.", ge=1)
    validation_points: int = column("(Draw, anchor) points per validated token.", at_least="points_below_u")
    points_below_u: int = column("Those whose similarity is below u.", ge=1)
    candidates: int = column("Tokens on the protocol's own shortlist.")
    controls: int = column("Ordinary tokens that were validated for comparison.", ge=1)
    control_median: float = column("Median value of the controls.", figure=True, dtype="validation_dtype")
    # Without a threshold nothing is an outlier, which should not go unnoticed.
    threshold: float | None = column(
        "Beyond it, a candidate is an outlier; null below 40 candidates.",
        warn=Warn(null=True),
        figure=True,
        dtype="validation_dtype",
    )
    outliers: int = column("Candidates beyond the threshold.", figure=True, dtype="validation_dtype")
    basis: Basis = column("How thoroughly the profile validates.")
    search: Literal["sequential", "exhaustive"] = column("Whether every token got all draws.")
    pilot: int = column("Random tokens that got all draws.", ge=0, at_least="pilot_shortlisted")
    exhaustive_encodes: BigInt = column("Encodes that an exhaustive search of the same tokens would take.")
    scan_dtype: str = column("Precision of the scan.")
    scan_speedup: float | None = column(
        "Time in float32 / time in half precision, for matrix products of the model's shapes; null if the precision "
        "was given.",
        ge=0,
    )
    rank_correlation: float | None = column(
        "Spearman's ρ between scores in the scan's precision and in float32; null if they are the same.", within=COSINE
    )
    validation_dtype: str | None = column("Precision of the validation; null in audits that did not store it.")
    validation_difference: float | None = column(
        "Largest difference between half precision and the audit's own, on some tokens validated in both, in widths of "
        "a figure's 95 % interval; null if half precision was not tried.",
        ge=0,
    )
    pilot_shortlisted: int | None = column("Pilot tokens that belong on the shortlist.", at_least="pilot_missed")
    pilot_missed: int | None = column("Those that the search would have dropped.", ge=0)
    miss_rate: float | None = column("pilot_missed / pilot_shortlisted.", within=SHARE, at_least="miss_low")
    miss_low: float | None = column("Lower end of the 95 % Clopper–Pearson interval of miss_rate.", within=SHARE)
    miss_high: float | None = column(
        "Upper end of the 95 % Clopper–Pearson interval of miss_rate.", within=SHARE, at_least="miss_rate"
    )
    near_u_05_before: float | None = column("Share of points within 0.05 of u without insertion.", within=SHARE)
    near_u_10_before: float | None = column(
        "Share of points within 0.1 of u without insertion.", within=SHARE, at_least="near_u_05_before"
    )

    @rule
    def miss_rate_agrees_with_counts(
        pilot_shortlisted: Series, pilot_missed: Series, miss_rate: Series, miss_low: Series, miss_high: Series
    ) -> Series:
        """miss_rate = pilot_missed / pilot_shortlisted, with an interval; all null if none was shortlisted."""
        rate = pilot_missed.astype(float) / pilot_shortlisted.astype(float).replace(0, float("nan"))
        is_undefined = rate.isna() & miss_rate.isna() & miss_low.isna() & miss_high.isna()
        has_all = miss_rate.notna() & miss_low.notna() & miss_high.notna()
        return is_undefined | (has_all & ((miss_rate.astype(float) - rate).abs() <= TOLERANCE))


class StickySeverityRow(Row, table="sticky_severity", key=("severity",), item="{severity}"):
    """How many of the searched tokens reach each severity: as validated, and as estimated from the pilot."""

    severity: Grade = column("At least this severe.")
    least_loss: float = column("Smallest loss of this severity.", within=SHARE)
    validated: int = column("Validated candidates with at least that loss; limited by the shortlists' size.", ge=0)
    confirmed: int = column("Those whose loss interval lies entirely above it.", ge=0)
    estimated: float | None = column(
        "Such tokens in total: those that the search kept are counted, of those that it dropped the pilot has a random "
        "sample; corrected for noise. Null with too few draws to estimate the noise.",
        ge=0,
        at_least="confirmed",
        figure=Worse("higher", absolute=2, relative=0.1),
        interval=BY_BOOTSTRAP,
        dtype="(SELECT max(scan_dtype) FROM sticky_summary AS scan WHERE scan.audit_id = sticky_severity.audit_id)",
    )
    estimated_low: float | None
    estimated_high: float | None
    is_capped: bool = column("Whether there are more of them than were validated: the shortlist is too short for all.")

    @rule
    def capped_counts_have_an_estimate(is_capped: Series, estimated_low: Series, validated: Series) -> Series:
        """Capped if even the lower end of the estimate exceeds the number validated."""
        return is_capped == (estimated_low.astype(float) > validated).fillna(value=False)


# The worst loss in the view sticky_token; ties are broken by token id. A loss is measured to a few hundredths.
STICKY_TOKEN = Summary(
    "sticky_token",
    "retention",
    (
        SummaryFigure(
            "worst_loss",
            "max(loss)",
            Worse("higher", absolute=0.05),
            "first(loss_low ORDER BY loss DESC, token_id)",
            "first(loss_high ORDER BY loss DESC, token_id)",
            "The largest loss of a candidate.",
            "max(dtype)",
        ),
    ),
    is_aggregate=True,
)


class StickyShapeRow(Row, table="sticky_shape", key=("space",), item="{space}"):
    """Distribution of the similarities between vocabulary entries, over all pairs of a random sample."""

    space: Literal["text", "input_embeddings"] = column(
        "The vectors: token strings encoded as texts, as for u, or rows of the input embedding matrix."
    )
    tokens: int = column("Sampled entries with a nonzero vector.", ge=2)
    pairs: BigInt = column("Pairs of different entries.", ge=1)
    mean: float = column("Mean cosine of these pairs.", within=COSINE, figure=True)
    sd: float = column("Standard deviation of the cosines.", ge=0, figure=True)
    skewness: float | None = column(
        "Third standardised moment; 0 for a Gaussian, null if all cosines are equal.",
        figure=True,
        interval=OVER_GROUPS,
    )
    excess_kurtosis: float | None = column(
        "Fourth standardised moment minus 3; 0 for a Gaussian.", ge=-2 - TOLERANCE, figure=True, interval=OVER_GROUPS
    )
    gaussian_distance: float | None = column(
        "Kolmogorov distance from a Gaussian with this mean and standard deviation, to 4e-5/sd; null below sd 1e-3.",
        within=SHARE,
        figure=True,
        interval=OVER_GROUPS,
    )
    lowest: float = column("Smallest cosine.", within=COSINE)
    q001: float = column("0.1 % quantile of the cosines, to 1e-4.", at_least="lowest")
    q01: float = column("1 % quantile of the cosines.", at_least="q001")
    q05: float = column("5 % quantile of the cosines.", at_least="q01")
    q10: float = column("10 % quantile of the cosines.", at_least="q05")
    q25: float = column("25 % quantile of the cosines.", at_least="q10")
    q50: float = column("Median of the cosines.", at_least="q25")
    q75: float = column("75 % quantile of the cosines.", at_least="q50")
    q90: float = column("90 % quantile of the cosines.", at_least="q75")
    q95: float = column("95 % quantile of the cosines.", at_least="q90")
    q99: float = column("99 % quantile of the cosines.", at_least="q95")
    q999: float = column("99.9 % quantile of the cosines.", at_least="q99")
    highest: float = column("Largest cosine.", within=COSINE, at_least="q999")


class StickyDoseRow(Row, table="sticky_dose", key=("token_id", "copies")):
    """The worst tokens and some controls, with n copies inserted."""

    token_id: int = column("Id of the token.")
    role: Role = column("candidate: shortlisted; control: an ordinary token for comparison.")
    copies: int = column("n, the copies inserted.", ge=1)
    points: int = column("(Draw, anchor) points measured.", ge=1)
    pull: float | None = column("1 − ρ_t/ρ_0 at n copies.", within=PULL)
    slope: float = column("Regression slope of similarity after insertion on similarity before, at n copies.")
    loss: float = column("1 − slope / the controls' median slope at the same n.")


class StickyShiftRow(Row, table="sticky_shift", key=("token_id", "position"), detail=True):
    """The paper's first experiment: a fixed set of pairs before and after appending n copies."""

    token_id: int = column("Id of the token.")
    role: Literal["sticky", "ordinary"] = column("The token's group.")
    position: int = column("Position of the pair in sticky_pair, with purpose 'shift'.", ge=0)
    before: float = column("Similarity before insertion.", within=COSINE)
    after: float = column("Similarity after insertion.", within=COSINE)

    @rule
    def pairs_are_the_same(token_id: Series, position: Series, before: Series) -> Series:
        """Every token has every pair, with the same similarity before."""
        by_position = before.groupby(position)
        is_one_value = by_position.transform("nunique") == 1
        return is_one_value & (by_position.transform("size") == token_id.nunique())


class _Quantiles(Row):
    """Quantiles of the attention received by each group of tokens."""

    sticky_q05: float = column("5 % quantile over sticky tokens.", within=ROUNDED_SHARE)
    sticky_q25: float = column("25 % quantile over sticky tokens.", within=ROUNDED_SHARE, at_least="sticky_q05")
    sticky_q50: float = column("Median over sticky tokens.", within=ROUNDED_SHARE, at_least="sticky_q25")
    sticky_q75: float = column("75 % quantile over sticky tokens.", within=ROUNDED_SHARE, at_least="sticky_q50")
    sticky_q95: float = column("95 % quantile over sticky tokens.", within=ROUNDED_SHARE, at_least="sticky_q75")
    ordinary_q05: float = column("5 % quantile over ordinary tokens.", within=ROUNDED_SHARE)
    ordinary_q25: float = column("25 % quantile over ordinary tokens.", within=ROUNDED_SHARE, at_least="ordinary_q05")
    ordinary_q50: float = column("Median over ordinary tokens.", within=ROUNDED_SHARE, at_least="ordinary_q25")
    ordinary_q75: float = column("75 % quantile over ordinary tokens.", within=ROUNDED_SHARE, at_least="ordinary_q50")
    ordinary_q95: float = column("95 % quantile over ordinary tokens.", within=ROUNDED_SHARE, at_least="ordinary_q75")


class StickyAttentionRow(_Quantiles, table="sticky_attention", key=("layer", "includes_special")):
    """One layer's attention to sticky tokens, compared with ordinary tokens."""

    # Attention received is a mean of softmax weights.
    layer: int = column("Layer; 0 is the first.", ge=0)
    includes_special: bool = column("Whether special tokens, which attract attention anyway, are included.")
    sticky_tokens: int = column("Sticky tokens compared.", ge=1)
    ordinary_tokens: int = column("Ordinary tokens compared.", ge=1)
    sentences: int = column("Sentences that the tokens were appended to.", ge=1)
    wasserstein: float = column("First Wasserstein distance of the attention received.", within=ROUNDED_SHARE)
    permuted_low: float = column("2.5 % quantile of the distance under permutation of tokens.", within=ROUNDED_SHARE)
    permuted_high: float = column(
        "97.5 % quantile of the distance under permutation of tokens.", within=ROUNDED_SHARE, at_least="permuted_low"
    )
    p_value: float = column("(1 + permuted distances at least as large) / (permutations + 1).", within=ROUNDED_SHARE)


class StickyEnrichmentRow(Row, table="sticky_enrichment", key=("selection", "attribute", "value")):
    """Origins, scripts and input embeddings of selected tokens, compared with the scanned vocabulary."""

    selection: str = column("lowest_100, sticky_definition, sticky_retention or strong_or_moderate.")
    attribute: str = column("origin, script, a combination of them, embedding_norm or cosine_to_mean.")
    value: str = column("Value of the attribute; '' for the two numeric ones.")
    selected_with: int | None = column("Selected tokens with this value.", ge=0)
    selected: int = column("Selected tokens.", ge=1, at_least="selected_with")
    scanned_with: int | None = column("Scanned tokens with this value.", at_least="selected_with")
    scanned: int = column("Scanned tokens.", ge=1, at_least=("scanned_with", "selected"))
    share_selected: float | None = column("selected_with / selected.", within=SHARE)
    share_scanned: float | None = column("scanned_with / scanned.", within=SHARE)
    fold: float | None = column("share_selected / share_scanned.", ge=0)
    odds_ratio: float | None = column("Odds ratio of having the value; null if infinite.", ge=0)
    p_value: float | None = column("Fisher's exact test; Mann–Whitney for numeric attributes.", within=SHARE)
    q_value: float | None = column(
        "Benjamini–Hochberg within selection and attribute.", within=SHARE, at_least="p_value"
    )
    selected_median: float | None = column("Median of a numeric attribute over selected tokens.")
    scanned_median: float | None = column("Median of a numeric attribute over scanned tokens.")
    auc: float | None = column("Probability that a selected token has a larger value than another one.", within=SHARE)

    @rule
    def shares_agree_with_counts(
        selected_with: Series,
        selected: Series,
        scanned_with: Series,
        scanned: Series,
        share_selected: Series,
        share_scanned: Series,
        fold: Series,
    ) -> Series:
        """Shares and fold are ratios of the counts; null for numeric attributes."""
        of_selected, of_scanned = selected_with / selected, scanned_with / scanned
        is_ratio = (share_selected.astype(float) - of_selected).abs() <= TOLERANCE
        is_ratio &= (share_scanned.astype(float) - of_scanned).abs() <= TOLERANCE
        is_ratio &= (fold.astype(float) * of_scanned - of_selected).abs() <= TOLERANCE
        return is_ratio | (share_selected.isna() & share_scanned.isna() & fold.isna())


class StickyReferenceRow(Row, table="sticky_reference", key=("token_id",), detail=True):
    """A token as scored by the published code, which concatenates its decoded text with the sentence."""

    token_id: int = column("Id of the token.")
    inserted: str = column("The decoded text that was inserted.")
    score: float = column("The published score, which rewards falling distances.", ge=0)
    score_rank: int = column("1 is the highest score.", ge=1)
    is_shortlisted: bool = column("Whether the score is at or above the 98th percentile.")
    value: float | None = column(
        "Share of pairs whose mean distance falls, operators weighted 4:4:3; null if not shortlisted.",
        within=ROUNDED_SHARE,
    )
    threshold: float | None = column("Above it, a token is sticky; null below 40 candidates.")
    verdict: Literal["sticky", "not_sticky", "no_threshold"] | None = column("Null if not shortlisted.")

    @rule
    def ranks_are_complete(score_rank: Series) -> Series:
        """Ranks run from 1 to the number of tokens, each used once."""
        return _is_rank(score_rank)

    @rule
    def shortlist_has_values(is_shortlisted: Series, value: Series) -> Series:
        """The shortlisted tokens are the validated ones."""
        return is_shortlisted == value.notna()

    @rule
    def verdict_agrees_with_threshold(value: Series, threshold: Series, verdict: Series) -> Series:
        """Sticky above the threshold."""
        import numpy as np

        expected = np.select(
            [value.isna(), threshold.isna(), value > threshold], ["", "no_threshold", "sticky"], "not_sticky"
        )
        return verdict.fillna("") == expected


class StickyReferenceSummaryRow(Row, table="sticky_reference_summary", key=("protocol",), item="{protocol}"):
    """The published code's search and its results."""

    protocol: Literal["reference"] = column("How tokens are judged.")
    u: float = column("Mean pairwise cosine of the token strings.", within=ROUNDED_SHARE, figure=True)
    scanned: int = column("Tokens that pass the published filter, and special tokens.", at_least="candidates")
    scoring_pairs: int = column("Pairs that the scan used.", ge=1)
    validation_pairs: int = column("Pairs that the validation used.", ge=1)
    encodes: BigInt = column("Texts encoded by scan and validation.")
    cutoff: float = column("Lowest score on the shortlist.", figure=True)
    candidates: int = column("Tokens on the shortlist.", ge=1, at_least="sticky")
    threshold: float | None = column("Above it, a token is sticky; null below 40 candidates.", figure=True)
    sticky: int = column("Tokens above the threshold.", ge=0, figure=MORE_TOKENS)


def severity_of(loss: float) -> Severity:
    """Grade of a loss in absolute terms, independent of other candidates."""
    return next((name for least, name in SEVERITY_FROM_LOSS if loss >= least), "negligible")


def _is_rank(ranks: Series) -> Series:
    """True where a rank is in 1..n and unique; all true means that the ranking is complete."""
    return ranks.between(1, len(ranks)) & ~ranks.duplicated(keep=False)


ROWS: tuple[type[Row], ...] = (
    StickySentenceRow,
    StickyPairRow,
    StickyScoreRow,
    StickyValidationRow,
    StickySummaryRow,
    StickySeverityRow,
    StickyDoseRow,
    StickyShiftRow,
    StickyAttentionRow,
    StickyEnrichmentRow,
    StickyShapeRow,
    StickyReferenceRow,
    StickyReferenceSummaryRow,
)
