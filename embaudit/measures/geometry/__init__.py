"""Geometry: how the served vectors of a corpus fill their space: anisotropy, rank, dominant dimensions and hubs.

The entry point is ``measure_geometry``; sources and equations are in ``figures``.
"""

from __future__ import annotations

from pydantic import Field

from embaudit.declared.figure import Worse
from embaudit.declared.table import COSINE, ROUNDED_SHARE, SHARE, TOLERANCE, Interval, Row, Series, column, rule
from embaudit.measures.measure import DrawnSettings, Measure, OfCorpus, parts_of


class GeometrySettings(DrawnSettings):
    """Settings of the geometry measure."""

    corpora: tuple[str, ...] = Field(default=("wikipedia", "msmarco"), description="corpora of texts")
    # All pairwise cosines are held in memory in float64: at 5 000 texts 200 MB, and as much again for copies.
    texts: int = Field(default=1_000, ge=1, le=5_000, description="texts of each corpus")
    neighbours: int = Field(default=10, ge=1, description="k of k-occurrence (hubness)")


OVER_TEXTS = Interval("jackknife over groups of texts, null below ten")
OF_INFLUENCE = Interval("Student's t of cross-fitted influences of texts, null below ten")
OF_THIRDS = Interval("jackknife leaving out thirds of the texts, null below ten")
OF_SHARE = Interval("Wilson's interval of a share, null below ten")


class GeometryRow(OfCorpus, table="geometry", key=("corpus",), item="{corpus}"):
    """How the served vectors of a corpus fill their space; values that are undefined on these texts are null."""

    corpus_id: str = column("Id of the corpus.")
    texts: int = column("N, the texts sampled from it.", ge=0, at_least="truncated")
    truncated: int = column("Texts truncated to the checkpoint's length limit.", ge=0)
    dimension: int = column("d, the length of a vector.", ge=1)
    mean_cosine: float | None = column(
        "Mean cosine over all pairs; null below two texts.",
        within=COSINE,
        figure=Worse("higher", absolute=0.02),
        interval=OVER_TEXTS,
    )
    isoscore: float | None = column(
        "IsoScore* with Ledoit–Wolf shrinkage: 1 if isotropic, 0 if all variance is in one direction.",
        within=ROUNDED_SHARE,
        figure=Worse("lower", relative=0.1),
        interval=OVER_TEXTS,
    )
    shrinkage: float | None = column("ζ of IsoScore*, the weight of the isotropic covariance.", within=SHARE)
    effective_rank: float | None = column(
        "exp(entropy) of the covariance's normalised eigenvalues.",
        ge=1,
        figure=Worse("lower", relative=0.1),
        interval=OVER_TEXTS,
    )
    rankme: float | None = column(
        "exp(entropy) of the normalised singular values of the uncentred vectors.",
        ge=1,
        figure=Worse("lower", relative=0.1),
        interval=OVER_TEXTS,
    )
    uniformity: float | None = column(
        "log of the mean over pairs of exp(−2‖û − v̂‖²); 0 if all vectors point the same way.",
        within=(-8 - TOLERANCE, TOLERANCE),
        figure=Worse("higher", absolute=0.1),
        interval=OVER_TEXTS,
    )
    variance_1: float | None = column(
        "Share of the variance in the first principal component.",
        within=ROUNDED_SHARE,
        figure=Worse("higher", absolute=0.05),
        interval=OF_INFLUENCE,
    )
    variance_3: float | None = column(
        "Share of the variance in the first three principal components.",
        within=ROUNDED_SHARE,
        figure=True,
        interval=OF_INFLUENCE,
    )
    variance_10: float | None = column(
        "Share of the variance in the first ten principal components.",
        within=ROUNDED_SHARE,
        figure=True,
        interval=OF_INFLUENCE,
    )
    top_dimension_share: float | None = column(
        "Largest share of the mean cosine contributed by one dimension; null if the mean is not positive.",
        figure=Worse("higher", absolute=0.05),
        interval=OVER_TEXTS,
    )
    dimensions_for_half: int | None = column(
        "Smallest number of dimensions that contribute half of the mean cosine; null if that is not positive.",
        ge=1,
        figure=True,
    )
    neighbours: int = column("k of hubness.", ge=1)
    hubness_skewness: float | None = column(
        "Skewness of k-occurrence, the number of texts that have a text among their k nearest; null up to 2k texts.",
        figure=Worse("higher", relative=0.2),
        interval=OF_THIRDS,
    )
    anti_hubs: float | None = column(
        "Share of texts that are among no other text's k nearest.",
        within=SHARE,
        figure=Worse("higher", absolute=0.02),
        interval=OF_SHARE,
    )

    @rule
    def pairs_have_a_mean(texts: Series, mean_cosine: Series) -> Series:
        """There is a mean cosine if and only if there are two texts."""
        return mean_cosine.notna() == (texts > 1)

    @rule
    def variance_shares_ascend(variance_1: Series, variance_3: Series, variance_10: Series) -> Series:
        """More components explain at least as much variance."""
        return ~((variance_1 > variance_3 + TOLERANCE) | (variance_3 > variance_10 + TOLERANCE))

    @rule
    def ranks_fit_texts_and_dimension(
        texts: Series, dimension: Series, effective_rank: Series, rankme: Series
    ) -> Series:
        """No rank exceeds the number of texts or dimensions."""
        most = dimension.where(dimension < texts, texts) * (1 + TOLERANCE)
        return ~((effective_rank > most) | (rankme > most))


class Dimension(Row):
    """One dimension of the unit vectors."""

    dimension: int = column("Index in the vector; 0 is the first.", ge=0)
    contribution: float = column("Mean over pairs of û_i v̂_i; over all dimensions they add up to the mean cosine.")
    share: float | None = column("contribution / mean cosine; null if that is not positive.")
    mean: float = column("Mean of û_i over the texts.", within=COSINE)
    deviation: float = column("Standard deviation of û_i over the texts.", within=ROUNDED_SHARE)


class GeometryDimensionRow(Dimension, OfCorpus, table="geometry_dimension", key=("corpus", "rank")):
    """One of the ten dimensions that contribute most to the mean cosine of a corpus."""

    rank: int = column("1 is the largest contribution.", within=(1, 10))


ROWS: tuple[type[Row], ...] = (GeometryRow, GeometryDimensionRow)

MEASURE_VERSION = 3

MEASURE = Measure(
    name="geometry",
    package=__name__,
    question="How do the vectors of a corpus fill their space?",
    parts=parts_of(__name__),
    settings=GeometrySettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"geometry": ("mean_cosine", "effective_rank")},
    # It encodes every text once more, which takes seconds that a first look should not cost.
    is_default=False,
    shown_tables=("geometry", "geometry_dimension"),
)
