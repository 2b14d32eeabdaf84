"""Concentration layer by layer: how far attention and the rest of the layer pull a text's tokens together.

arXiv 2604.27398, §6: λ, r and C, the normalised spread, and Theorem 1's bound; σ_a of arXiv 2410.24200. The entry point
is ``measure_layers``.

H is a layer's input, Z its attention branch, Y = Z + H, X its output; S(M) is the mean squared distance of M's rows
from their mean μ(M).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from embaudit.declared.figure import Worse
from embaudit.declared.table import ROUNDED_SHARE, SHARE, TOLERANCE, BigInt, Interval, Row, Series, column, rule
from embaudit.measures.measure import DrawnSettings, Measure, OfCorpus, Readable, Work, parts_of

OVER_TEXTS = Interval("Student's t over texts")


class LayerTextRow(OfCorpus, table="layer_text", key=("corpus", "position", "layer"), detail=True):
    """One text in one layer; undefined values (0/0) are null, and texts of one token have no rows."""

    position: BigInt = column("Index of the text in the corpus.")
    layer: int = column("Layer; 0 is the first.", ge=0)
    tokens: int = column("n, special tokens included.", ge=2)
    lambda_head_mean: float = column("λ_h of each head, averaged over heads.", ge=0)
    lambda_head_max: float = column("The largest λ_h.", ge=0, at_least="lambda_head_mean")
    lambda_head_averaged_attention: float = column("λ of the head-averaged A with the full W_o W_v.", ge=0)
    lambda_multi_head_bound: float = column(
        "(Σ √λ_h)², a bound for any combination of heads.", ge=0, at_least="lambda_head_max"
    )
    lambda_gaussian: float = column("λ if the entries of H were independent Gaussians.", ge=0)
    contraction: float | None = column("S(Z)/S(H), measured.", ge=0)
    contraction_normed: float | None = column("S(Z)/S(norm(H)); null if attention reads H itself.", ge=0)
    r: float | None = column("S(H)/‖μ(Y)‖².", ge=0)
    c: float | None = column("[S(X)/‖μ(X)‖²] / [S(Y)/‖μ(Y)‖²].", ge=0)
    normalised_spread: float | None = column("S(X)/‖μ(X)‖².", ge=0)
    within_text_cosine: float | None = column(
        "Mean cosine over all token pairs, self-pairs included.", within=ROUNDED_SHARE
    )
    sigma_a: float = column("‖PA‖₂, mean over heads.", ge=0)
    spread_h: float = column("S(H).", ge=0)
    spread_z: float = column("S(Z).", ge=0)
    spread_y: float = column("S(Y).", ge=0)
    spread_x: float = column("S(X).", ge=0)
    mean_norm_y: float = column("‖μ(Y)‖.", ge=0)
    mean_norm_x: float = column("‖μ(X)‖.", ge=0)

    @rule
    def theorem_1_holds(normalised_spread: Series, c: Series, contraction: Series, r: Series) -> Series:
        """S(X)/‖μ(X)‖² ≤ C (1 + √contraction)² r, the triangle inequality, if all four are defined."""
        bound = c * (1 + contraction**0.5) ** 2 * r * (1 + TOLERANCE)
        return bound.isna() | ~(normalised_spread > bound)


def _mean(name: str, figure: bool | Worse = True) -> Any:
    """What a layer has in a text, averaged over texts; of pooled states it is a figure with a worse direction."""
    of_text = LayerTextRow.own_columns[name]
    meaning, *rest = of_text.meaning.removesuffix(".").split(";")
    said = ";".join((f"{meaning}, mean over texts", *rest))
    return replace(of_text, meaning=f"{said}.", at_least=(), figure=figure, interval=OVER_TEXTS)


class LayerStatRow(OfCorpus, table="layer_stat", key=("corpus", "layer"), item="{corpus}, layer {layer}"):
    """One layer over a corpus: means over texts, and ratios of means."""

    corpus_id: str = column("Id of the corpus.")
    layer: int = column("Layer; 0 is the first.", ge=0)
    family: str = column("Declared architecture of the checkpoint.")
    norm_placement: Literal["post", "pre", "sandwich", "parallel"] = column(
        "Placement of the norms; except for post, attention reads norm(H)."
    )
    shares_weights: bool = column("Whether layers share weights.")
    texts: int = column("Texts of at least two tokens.", ge=1)
    undefined: int = column("Texts of at most one token.", ge=0)
    truncated: int = column("Texts truncated to the checkpoint's length limit.", ge=0)
    tokens_mean: float = column("Mean of n, special tokens included.", unit="tokens", ge=2)
    value_output_norm: float = column("‖W_o W_v‖₂, a constant of the checkpoint.", figure=True)
    lambda_head_mean: float = _mean("lambda_head_mean")
    lambda_head_max: float = _mean("lambda_head_max")
    lambda_head_averaged_attention: float = _mean("lambda_head_averaged_attention")
    lambda_multi_head_bound: float = _mean("lambda_multi_head_bound")
    lambda_gaussian: float = _mean("lambda_gaussian")
    contraction: float | None = _mean("contraction")
    contraction_normed: float | None = _mean("contraction_normed")
    r: float | None = _mean("r")
    c: float | None = _mean("c")
    normalised_spread: float | None = _mean("normalised_spread")
    within_text_cosine: float | None = _mean("within_text_cosine")
    sigma_a: float = _mean("sigma_a")
    contraction_of_means: float | None = column(
        "S(Z)/S(H) as a ratio of means over texts, as in the definition (a ratio of expectations).", figure=True
    )
    r_of_means: float | None = column("S(H)/‖μ(Y)‖² as a ratio of means over texts.", figure=True)
    c_of_means: float | None = column("C as a ratio of means over texts.", figure=True)
    normalised_spread_of_means: float | None = column("S(X)/‖μ(X)‖² as a ratio of means over texts.", figure=True)
    holds_head_mean: float | None = column(
        "Share of texts with S(X)/‖μ(X)‖² ≤ C (1 + √λ)² r, λ being lambda_head_mean.", within=SHARE
    )
    holds_head_max: float | None = column("The same with lambda_head_max.", within=SHARE)
    holds_head_averaged_attention: float | None = column("The same with lambda_head_averaged_attention.", within=SHARE)
    holds_multi_head_bound: float | None = column("The same with lambda_multi_head_bound.", within=SHARE)
    holds_gaussian: float | None = column("The same with lambda_gaussian.", within=SHARE)
    holds_contraction: float | None = column(
        "The same with the measured contraction: must be 1, by the triangle inequality.", within=(1, 1)
    )


class HeadStat(Row):
    """One head of one layer: means over texts, and constants of its weights."""

    layer: int = column("Layer; 0 is the first.")
    head: int = column("Head; 0 is the first.")
    lambda_mean: float = column("λ_h, mean over texts.", ge=0)
    attention_spread: float = column("‖PA_h‖_F²/(n − 1), mean over texts.", ge=0)
    sigma_a: float = column("‖PA_h‖₂, mean over texts.", ge=0)
    sigma_a_max: float = column("‖PA_h‖₂, maximum over texts.", ge=0, at_least="sigma_a")
    value_output_norm: float = column("‖W_o^h W_v^h‖₂.", ge=0)
    value_norm: float = column("‖W_v^h‖₂.", ge=0)


class LayerHeadStatRow(HeadStat, OfCorpus, table="layer_head_stat", key=("corpus", "layer", "head")):
    """One attention head over a corpus."""


class PooledStatRow(OfCorpus, table="pooled_stat", key=("corpus",), item="{corpus}"):
    """The token states that are pooled into the served vector, over a corpus."""

    corpus_id: str = column("Id of the corpus.")
    texts: int = column("Texts of at least two tokens.", ge=1)
    has_final_norm: bool = column("Whether a norm follows the last layer; if not, pooling reads that layer's output.")
    normalised_spread: float | None = _mean("normalised_spread", Worse("lower", relative=0.1))
    within_text_cosine: float | None = _mean("within_text_cosine", Worse("higher", absolute=0.02))
    normalised_spread_of_means: float | None = column("S(X)/‖μ(X)‖² as a ratio of means over texts.", figure=True)


ROWS: tuple[type[Row], ...] = (
    LayerTextRow,
    LayerStatRow,
    LayerHeadStatRow,
    PooledStatRow,
)


# Time of a core for one weight of one head's attention, with what else is read of its layer's states; and for a layer's
# norms of W_o W_v, by d³ (`benchmarks/README.md`).
WEIGHT_SECONDS, NORM_SECONDS = 1.35e-7, 1.8e-9


class LayerSettings(DrawnSettings):
    """Settings of the layers measure."""

    corpora: tuple[str, ...] = Field(default=("wikipedia", "msmarco"), description="corpora of texts")
    texts: int = Field(default=1_000, ge=1, description="texts of each corpus")

    def work(self, readable: Readable) -> Iterator[Work]:
        for read in super().work(readable):
            attention = read.texts * readable.heads * read.tokens**2 * WEIGHT_SECONDS
            norms = readable.layers * readable.hidden_size**3 * NORM_SECONDS
            yield replace(read, core_seconds=attention + norms)


MEASURE_VERSION = 7

MEASURE = Measure(
    name="layers",
    package=__name__,
    question="Where in the network are the tokens of a text pulled together?",
    parts=parts_of(__name__),
    settings=LayerSettings,
    version=MEASURE_VERSION,
    rows=ROWS,
    headline_figures={"pooled_stat": ("normalised_spread", "within_text_cosine")},
    shown_tables=("layer_stat", "pooled_stat"),
)
