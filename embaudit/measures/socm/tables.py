"""Second-order collapse under mean pooling (arXiv 2604.27398): texts as clouds of tokens, and pairs of texts."""

from __future__ import annotations

from typing import Literal

from embaudit.declared.figure import Worse
from embaudit.declared.table import (
    COSINE,
    ROUNDED_SHARE,
    SHARE,
    TOLERANCE,
    BigInt,
    Frame,
    Interval,
    Lookup,
    Range,
    Row,
    Series,
    Warn,
    column,
    computed,
    rule,
)
from embaudit.measures.measure import OfCorpus

Distance = Literal["socm", "d_mu", "d_sigma"]
# Names as in sentence-transformers.
Pooling = Literal["mean", "cls", "lasttoken", "max", "weightedmean"]
CORRELATION: Range = (-1, 1)
D_MU: Range = (-TOLERANCE, 1 + TOLERANCE)
# Errors of d_Σ above this get a warning.
ACCURATE = 1e-4


class SocmTextRow(OfCorpus, table="socm_text", key=("corpus", "position"), detail=True):
    """A text as a cloud of its tokens; if they average to zero, it has no trace and is in no pair."""

    corpus_id: str = column("Id of the corpus.")
    position: BigInt = column("Index in the corpus; for a corpus of pairs, in order of first appearance.")
    tokens: int = column("n, special tokens included.", ge=1)
    mean_norm: float = column("‖μ‖, the length of the mean before scaling.", ge=0)
    trace_sigma: float | None = column("tr Σ of the tokens, scaled so that their mean has length 1.", ge=0)
    exceeds_trace_bound: bool | None = column("Whether tr Σ > 2, where SOCM may leave [0, 1].")
    is_truncated: bool = column("Whether the text was truncated to the checkpoint's length limit.")
    is_undefined: bool = column("Whether its tokens average to zero (up to rounding).")
    mean_cosine: float | None = column(
        "Mean cosine over all token pairs, self-pairs included; null if a token vector is zero.",
        within=ROUNDED_SHARE,
    )

    @rule
    def undefined_has_no_trace(is_undefined: Series, trace_sigma: Series) -> Series:
        """A text has a trace unless its tokens average to zero."""
        return is_undefined.astype(bool) == trace_sigma.isna()

    @rule
    def flag_agrees_with_trace(trace_sigma: Series, exceeds_trace_bound: Series) -> Series:
        """The flag is tr Σ > 2; null without a trace."""
        from embaudit.measures.socm.clouds import TRACE_BOUND

        agrees = (exceeds_trace_bound == (trace_sigma > TRACE_BOUND)).fillna(False)
        return (exceeds_trace_bound.isna() & trace_sigma.isna()) | agrees


def _traces_by_corpus(texts: Frame) -> dict[str, Series]:
    """tr Σ of each text by position, for each corpus."""
    usable = texts.dropna().drop_duplicates(["corpus", "position"])
    return {str(corpus): rows.set_index("position")["trace_sigma"] for corpus, rows in usable.groupby("corpus")}


TRACES = Lookup("traces", "socm_text", ("corpus", "position", "trace_sigma"), _traces_by_corpus)


class _Distances(Row):
    """Distances between two texts' clouds."""

    d_mu: float = column("Distance between the means: all that mean pooling keeps.", within=D_MU)
    d_sigma: float = column("Distance between the covariances: what mean pooling discards.")
    socm: float = column("(1 − d_μ) · d_Σ: large if the texts are alike after pooling but not before.")


class _BoundedDistances(_Distances, OfCorpus):
    """(√tr₁ − √tr₂)²/4 ≤ d_Σ ≤ (tr₁ + tr₂)/4, and SOCM ≤ d_Σ."""

    first: int = column("Position of the first text in socm_text.", ge=0)
    second: int = column("Position of the second text in socm_text.")
    d_sigma: float = column(
        "Distance between the covariances: what mean pooling discards.", at_least="d_sigma_lower_bound"
    )

    @computed()
    def first_trace(corpus: Series, first: Series, traces: dict[str, Series]) -> Series:
        """tr Σ of the first text; if null, so is the bound computed from it, which fails."""
        return _trace_of(corpus, first, traces)

    @computed()
    def second_trace(corpus: Series, second: Series, traces: dict[str, Series]) -> Series:
        """tr Σ of the second text."""
        return _trace_of(corpus, second, traces)

    @computed()
    def tolerance(first_trace: Series, second_trace: Series) -> Series:
        """Rounding grows with the traces, which reach thousands if a text's mean is near zero."""
        return TOLERANCE * (first_trace + second_trace).clip(lower=1).fillna(1.0)

    # Comparisons with null pass, so the bound itself is required.
    @computed(required=True)
    def d_sigma_lower_bound(first_trace: Series, second_trace: Series, tolerance: Series) -> Series:
        """The smallest distance that the traces allow."""
        return (first_trace**0.5 - second_trace**0.5) ** 2 / 4 - tolerance

    @computed(at_least="d_sigma")
    def d_sigma_upper_bound(first_trace: Series, second_trace: Series, tolerance: Series) -> Series:
        """The largest distance that the traces allow."""
        return (first_trace + second_trace) / 4 + tolerance

    @computed(at_least="socm")
    def d_sigma_and_tolerance(d_sigma: Series, tolerance: Series) -> Series:
        """d_Σ plus a tolerance for rounding."""
        return d_sigma + tolerance

    @rule
    def socm_is_product(d_mu: Series, d_sigma: Series, socm: Series, tolerance: Series) -> Series:
        """SOCM = (1 − d_μ) · d_Σ."""
        return (socm - (1 - d_mu) * d_sigma).abs() <= tolerance


class SocmPairRow(
    _BoundedDistances,
    table="socm_pair",
    key=("corpus", "first", "second"),
    bulk=True,
    planned="all_pairs",
    detail=True,
    lookup=TRACES,
):
    """Every pair of the sampled texts of a corpus, first < second: up to twelve million rows per audit."""

    second: int = column("Position of the second text in socm_text.", above="first")


class SocmListedPairRow(
    _BoundedDistances, table="socm_listed_pair", key=("corpus", "position"), detail=True, lookup=TRACES
):
    """A listed pair, such as a query with its hard negative; texts are numbered in order of first appearance."""

    position: BigInt = column("Index in the list: position in text_pair.", ge=0)
    second: int = column("Position of the second text in socm_text.", ge=0)


class SocmSummary(Row):
    """Averages over the pairs of a corpus, with a 95 % jackknife interval for the mean SOCM."""

    texts: int = column("Texts in the comparison.", ge=2)
    pairs: BigInt = column("Pairs of these texts.", ge=1)
    socm_mean: float = column(
        "Mean SOCM over the pairs.",
        at_least="socm_min",
        figure=Worse("higher", absolute=0.02),
        interval=Interval("jackknife over texts", "socm_low", "socm_high"),
    )
    socm_low: float | None
    socm_high: float | None
    socm_min: float = column("Smallest SOCM.", figure=True)
    socm_max: float = column("Largest SOCM.", at_least=("socm_mean", "socm_q99"), figure=True)
    d_mu_mean: float = column("Mean distance between the means.", figure=True)
    d_sigma_mean: float = column("Mean distance between the covariances.", figure=True)
    trace_mean: float = column("Mean tr Σ over the texts.", figure=True)
    trace_max: float = column("Largest tr Σ.", figure=True)
    share_trace_above_bound: float = column(
        "Share of texts with tr Σ > 2, where SOCM may leave [0, 1].",
        within=SHARE,
        figure=True,
    )
    undefined: int = column("Texts left out because their tokens average to zero.", ge=0)
    socm_q01: float = column("1 % quantile of SOCM, to 1e-4 of its value.", at_least="socm_min")
    socm_q05: float = column("5 % quantile of SOCM.", at_least="socm_q01", figure=True)
    socm_q25: float = column("25 % quantile of SOCM.", at_least="socm_q05")
    socm_q50: float = column("Median of SOCM.", at_least="socm_q25", figure=True)
    socm_q75: float = column("75 % quantile of SOCM.", at_least="socm_q50")
    socm_q95: float = column("95 % quantile of SOCM.", at_least="socm_q75", figure=True)
    socm_q99: float = column("99 % quantile of SOCM.", at_least="socm_q95")


class SocmSummaryRow(SocmSummary, OfCorpus, table="socm_summary", key=("corpus",), item="{corpus}"):
    """Summary of the pairs of a corpus."""

    corpus_id: str = column("Id of the corpus.", after="corpus")
    pooling_is_mean: bool = column(
        "Whether the checkpoint uses mean pooling; if not, SOCM describes a pooling that is not deployed.",
        warn=Warn(false=True),
        after="share_trace_above_bound",
    )
    pair_kind: Literal["all", "listed"] = column("All pairs of the texts, or listed pairs.", after="pooling_is_mean")
    one_token: int = column("Texts of one token, which have no spread.", ge=0, after="undefined")
    truncated: int = column("Texts truncated to the checkpoint's length limit.", ge=0, after="one_token")
    share_cosine_above_bound: float | None = column(
        "Share of texts whose tokens have a mean cosine of at least 1/3 (Appendix J).", within=SHARE
    )
    share_bounds_agree: float | None = column(
        "Share of texts for which mean cosine ≥ 1/3 agrees with tr Σ ≤ 2.", within=SHARE
    )
    # Long texts have a large tr Σ, and a large tr Σ makes a large SOCM.
    correlation_trace: float | None = column(
        "Correlation over pairs between SOCM and tr Σ₁ + tr Σ₂; null if either is constant.", within=CORRELATION
    )
    correlation_length: float | None = column(
        "Correlation over texts between tr Σ and the number of tokens; null if either is constant.",
        within=CORRELATION,
    )
    method: Literal["eigenvalues", "polar"] = column("How nuclear norms were computed.")
    accuracy: float = column(
        "Largest absolute error of d_Σ, compared with float64 singular values.", ge=0, warn=Warn(above=ACCURATE)
    )
    checked_pairs: int = column("Random pairs of this run on which accuracy was measured.", ge=0)


class _LengthAverages(Row):
    """Averages over pairs of texts of given lengths."""

    texts: int = column("Texts in the comparison.", ge=1)
    pairs: BigInt = column("Pairs of these texts.", ge=1)
    d_mu_mean: float = column("Mean distance between the means.", figure=True)
    d_sigma_mean: float = column("Mean distance between the covariances.", figure=True)


class SocmCutRow(
    _LengthAverages, OfCorpus, table="socm_cut", key=("corpus", "tokens"), item="{corpus}, cut to {tokens} tokens"
):
    """All pairs of texts cut to the same length: SOCM without the influence of length."""

    tokens: int = column("Length that texts are cut to, without special tokens; shorter texts are left out.", ge=1)
    texts: int = column("Texts of at least that length.", ge=2)
    socm_mean: float = column(
        "Mean SOCM over the pairs.",
        figure=Worse("higher", absolute=0.02),
        interval=Interval("jackknife over texts", "socm_low", "socm_high"),
    )
    trace_mean: float = column("Mean tr Σ over the texts.", ge=0, figure=True)
    share_trace_above_bound: float = column(
        "Share of texts with tr Σ > 2, where SOCM may leave [0, 1].", within=SHARE, figure=True
    )
    undefined: int = column("Texts left out because their tokens average to zero.", ge=0)


class LengthCell(_LengthAverages):
    """The pairs between two length bins, or within one."""

    shorter: int = column("Lower edge of the shorter text's bin; bins end at 16, 32, 64, … tokens.", ge=1)
    longer: int = column("Lower edge of the longer text's bin; the same for pairs within a bin.", at_least="shorter")
    texts: int = column("Texts in such pairs.", ge=1)
    socm_mean: float = column(
        "Mean SOCM over these pairs.",
        figure=True,
        interval=Interval("jackknife over texts", "socm_low", "socm_high"),
    )
    socm_low: float | None
    socm_high: float | None
    trace_mean: float = column("Mean over the pairs of (tr Σ₁ + tr Σ₂)/2.", ge=0, figure=True)


class SocmLengthRow(
    LengthCell,
    OfCorpus,
    table="socm_length",
    key=("corpus", "shorter", "longer"),
    item="{corpus}, from {shorter} with from {longer} tokens",
):
    """The pairs of a corpus by the lengths of their two texts, which are not cut."""


class Contrast(Row):
    """One distance, averaged over the listed and over the random pairs."""

    distance: Distance = column("What is averaged.")
    pairs: int = column("Pairs of each kind.", ge=2)
    queries: int = column("Distinct queries in these pairs.", ge=2)
    listed_mean: float = column("Mean over listed pairs.")
    random_mean: float = column("Mean over pairs of the same queries with other queries' passages.")
    difference: float = column(
        "listed_mean − random_mean, paired.", figure=True, interval=Interval("jackknife over queries")
    )
    difference_low: float | None
    difference_high: float | None


class SocmContrastRow(
    Contrast, OfCorpus, table="socm_contrast", key=("corpus", "distance"), item="{corpus}, {distance}"
):
    """Listed pairs compared with random pairs of the same queries and passages."""

    @rule
    def difference_is_of_means(listed_mean: Series, random_mean: Series, difference: Series) -> Series:
        """difference = listed_mean − random_mean."""
        return (difference - (listed_mean - random_mean)).abs() <= TOLERANCE * listed_mean.abs().clip(lower=1)


class PoolingStat(Row):
    """One pooling of a corpus's texts."""

    pooling: Pooling = column("How token states become one vector, by the name that sentence-transformers uses.")
    texts: int = column("Texts in the comparison.", ge=2)
    pairs: BigInt = column("All pairs of these texts.", ge=1)
    kept: float = column(
        "Share of the tokens' mean squared length explained by one vector in its direction; mean over texts.",
        within=ROUNDED_SHARE,
        figure=True,
        interval=Interval("Student's t over texts"),
    )
    kept_low: float | None
    kept_high: float | None
    cosine_to_mean: float = column("Mean cosine to the mean pooling of the same text.", within=COSINE)
    correlation: float | None = column(
        "Spearman's ρ over pairs between 1 − cosine and the angle between all tokens of the two texts, as Gaussians; "
        "null if either is constant.",
        within=CORRELATION,
        figure=True,
        interval=Interval("jackknife over texts"),
    )
    correlation_low: float | None
    correlation_high: float | None


class SocmPoolingRow(
    PoolingStat, OfCorpus, table="socm_pooling", key=("corpus", "pooling"), item="{corpus}, {pooling}"
):
    """What each pooling keeps of the same token states, whether or not the checkpoint is served with it."""

    is_served: bool = column("Whether it is the checkpoint's own and only pooling.", after="pooling")


class SocmSurfaceRow(OfCorpus, table="socm_surface", key=("corpus", "alpha", "beta")):
    """Generalised SOCM of a corpus for one pair of exponents."""

    alpha: float = column("Exponent α.", ge=0)
    beta: float = column("Exponent β.", ge=0)
    socm_mean: float = column("Mean of (1 − d_μ)^α · d_Σ^β over the pairs.", ge=0)


class PairTightness(_Distances):
    """One sampled pair; undefined values are None."""

    first: int = column("Position of the first text in socm_text.", ge=0)
    second: int = column("Position of the second text in socm_text.", above="first")
    w2_squared: float | None = column("Exact squared 2-Wasserstein distance between the token clouds.", ge=0)
    gaussian_w2_squared: float = column("4 (d_μ + d_Σ), its lower bound.")
    d_mu_sif: float | None = column("d_μ with SIF weights instead of 1/n.", within=D_MU)
    d_sigma_sif: float | None = column("d_Σ with SIF weights.")
    socm_sif: float | None = column("SOCM with SIF weights.")
    d_mu_sif_removed: float | None = column(
        "d_μ with SIF weights and the texts' common component removed.", within=D_MU
    )
    d_sigma_sif_removed: float | None = column("d_Σ under the same pooling.")
    socm_sif_removed: float | None = column("SOCM under the same pooling.")


class SocmTightnessRow(PairTightness, OfCorpus, table="socm_tightness", key=("corpus", "first", "second")):
    """A random pair, with its exact transport distance and under SIF weights."""

    @computed(at_least="gaussian_w2_squared")
    def w2_squared_and_tolerance(w2_squared: Series) -> Series:
        """Gelbrich's bound, up to rounding: no two clouds with these moments are closer than the Gaussians."""
        return w2_squared + TOLERANCE * w2_squared.clip(lower=1)


class SocmPlaneRow(OfCorpus, table="socm_plane", key=("corpus", "pair", "position", "point")):
    """Tokens of two texts projected on their first two directions (PCA without centring), for three pairs."""

    pair: Literal["highest", "median", "lowest"] = column("Rank of the pair's SOCM among all pairs.")
    position: int = column("Index of the text in its corpus.", ge=0)
    point: int = column("-1: the text's mean; from 0: its tokens.", ge=-1)
    token: str | None = column("The token; null for the mean.")
    x: float = column("First coordinate; tokens are scaled so that the text's mean has length 1.")
    y: float = column("Second coordinate.")
    socm: float = column("SOCM of the pair.")
    share: float = column("Share of the tokens' squared length that the plane keeps.", within=ROUNDED_SHARE)


def _trace_of(corpus: Series, position: Series, traces: dict[str, Series]) -> Series:
    """tr Σ of each row's text; null if it has none."""
    import numpy as np
    import pandas as pd

    found = np.full(len(position), np.nan)
    for name, trace in traces.items():
        rows = (corpus == name).to_numpy()
        found[rows] = trace.reindex(position.to_numpy()[rows]).to_numpy()
    return pd.Series(found, index=position.index)


ROWS: tuple[type[Row], ...] = (
    SocmTextRow,
    SocmPairRow,
    SocmListedPairRow,
    SocmSummaryRow,
    SocmCutRow,
    SocmLengthRow,
    SocmContrastRow,
    SocmPoolingRow,
    SocmSurfaceRow,
    SocmTightnessRow,
    SocmPlaneRow,
)
