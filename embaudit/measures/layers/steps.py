"""Concentration layer by layer as a step: one forward pass per text gives the rows of four tables.

A layer's averages over a corpus: means of ratios with intervals, ratios of means, and how often Theorem 1 holds.

They are made of a corpus's layer values, collected batch by batch: numbers per text, never its tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from embaudit.checkpoint.anatomy import anatomy_of
from embaudit.corpora.draw import Draw
from embaudit.measures.layers import (
    MEASURE_VERSION,
    HeadStat,
    LayerHeadStatRow,
    LayerSettings,
    LayerStatRow,
    LayerTextRow,
    PooledStatRow,
)
from embaudit.measures.layers.layers import LAMBDAS, RATIOS, LayerBatch, PooledBatch
from embaudit.measures.layers.terms import ValueOutput
from embaudit.measures.run import Run
from embaudit.statistics import mean_with_interval
from embaudit.steps.corpora import drawn_texts
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, encoder_of
from embaudit.steps.step import Outputs, step
from embaudit.words.errors import NotMeasurable
from embaudit.words.estimate import Estimate, all_columns

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@step(
    "layers",
    version=MEASURE_VERSION,
    tables=(LayerTextRow, LayerStatRow, LayerHeadStatRow, PooledStatRow),
    name="layers",
    run_name="layers over {corpus.name}",
)
def layer_statistics(out: Outputs, spec: CheckpointSpec, corpus: StagedCorpus, draw: Draw) -> None:
    """Tables ``layer_text`` (streamed), ``layer_stat``, ``layer_head_stat`` and ``pooled_stat`` of the drawn texts."""
    from embaudit.measures.layers.layers import LayerBatch, measure_layers

    encoder = encoder_of(spec)
    drawn = drawn_texts(corpus.content_path, draw)
    contents = drawn.texts
    collector = Collector()
    with tracked(f"layers, {corpus.name}", len(contents)) as advance:

        def columns() -> Iterator[dict[str, Any]]:
            for batch in measure_layers(encoder, contents, advance, drawn.places):
                collector.add(batch)
                if isinstance(batch, LayerBatch):
                    yield _text_columns(corpus.name, batch)

        out.columns(LayerTextRow, columns())
    collected = collector.finish(encoder.checkpoint.model)
    counts = {
        "undefined": len(contents) - collected.texts,
        "truncated": encoder.count_truncated(contents),
        "tokens_mean": collected.tokens_mean,
    }
    out.rows(LayerStatRow, _stat_rows(corpus, collected, counts), encodes=encoder.texts)
    out.rows(LayerHeadStatRow, [{"corpus": corpus.name, **asdict(head)} for head in collected.heads])
    out.rows(PooledStatRow, [_pooled_row(corpus, collected.pooled)])


def _text_columns(corpus: str, batch: LayerBatch) -> dict[str, Any]:
    size = len(batch.positions)
    return {
        "corpus": [corpus] * size,
        "position": batch.positions,
        "layer": [batch.layer] * size,
        "tokens": [batch.tokens] * size,
        **{name: pa.array(values, from_pandas=True) for name, values in batch.values.items()},
    }


def _stat_rows(corpus: StagedCorpus, collected: LayerSummaries, counts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for stat, weights in zip(collected.layers, collected.weights, strict=True):
        yield {
            "corpus": corpus.name,
            "corpus_id": corpus.corpus_id,
            "layer": stat.layer,
            "family": collected.family,
            "norm_placement": collected.norm_placement,
            "shares_weights": collected.shares_weights,
            "texts": stat.texts,
            **counts,
            "value_output_norm": weights.norm,
            **all_columns(stat.means),
            **{f"{name}_of_means": value for name, value in stat.of_means.items()},
            **{f"holds_{name.removeprefix('lambda_')}": value for name, value in stat.holds.items()},
        }


def _pooled_row(corpus: StagedCorpus, pooled: PooledStat) -> dict[str, Any]:
    return {
        "corpus": corpus.name,
        "corpus_id": corpus.corpus_id,
        "texts": pooled.texts,
        "has_final_norm": pooled.has_final_norm,
        **all_columns(pooled.means),
        "normalised_spread_of_means": pooled.normalised_spread_of_means,
    }


def measure(run: Run) -> list[Staged]:
    """λ, contraction, r, C, spread, cosine and σ_a of every layer; what cannot be measured gets a note."""
    staged: list[Staged] = []
    for corpus, draw in run.drawn(run.settings(LayerSettings)):
        try:
            staged += run(layer_statistics, run.spec, corpus, draw)
        except NotMeasurable as error:
            staged.append(run.skipped(f"layers over {corpus.name}", error))
    return staged


# Theorem 1 is an equality if Z and H are parallel: rounding must not violate it.
TOLERANCE = 1e-9
OF_POOLED = ("normalised_spread", "within_text_cosine")


@dataclass(frozen=True)
class LayerStat:
    """One layer over the texts of a corpus.

    Attributes:
        texts: texts of at least two tokens.
        means: for each of RATIOS, over the texts where it is defined, with Student's t intervals.
        of_means: contraction, r, c and normalised_spread as ratios of means over texts, as in the definitions (ratios
            of expectations).
        holds: for each of LAMBDAS, the share of texts with S(X)/‖μ(X)‖² ≤ C(1+√λ)²r.
    """

    layer: int
    texts: int
    means: dict[str, Estimate]
    of_means: dict[str, float | None]
    holds: dict[str, float | None]


@dataclass(frozen=True)
class PooledStat:
    """The pooled states over the texts of a corpus; means and intervals as in ``LayerStat``."""

    texts: int
    has_final_norm: bool
    means: dict[str, Estimate]
    normalised_spread_of_means: float | None


def summarise_layer(layer: int, values: Mapping[str, np.ndarray]) -> LayerStat:
    """Averages of one layer.

    Args:
        values: by name, (N,) for all texts of at least two tokens; NaN where undefined.
    """
    return LayerStat(
        layer=layer,
        texts=len(values["r"]),
        means={name: mean_with_interval(values[name]) for name in RATIOS},
        of_means=_ratios_of_means(values),
        holds={name: share_that_holds(values, name) for name in LAMBDAS},
    )


def summarise_pooled(values: Mapping[str, np.ndarray], *, has_final_norm: bool) -> PooledStat:
    """Averages of the pooled states; ``values`` as in ``layers.PooledBatch``, (N,) for all texts."""
    mean = float(np.square(values["mean_norm_x"]).mean())
    return PooledStat(
        texts=len(values["spread_x"]),
        has_final_norm=has_final_norm,
        means={name: mean_with_interval(values[name]) for name in OF_POOLED},
        normalised_spread_of_means=float(values["spread_x"].mean()) / mean if mean > 0 else None,
    )


def summarise_heads(layer: int, heads: Mapping[str, np.ndarray], weights: ValueOutput) -> list[HeadStat]:
    """Averages of each head of one layer; ``heads`` by name, (N, H) for all texts."""
    return [
        HeadStat(
            layer=layer,
            head=head,
            lambda_mean=float(heads["lambda"][:, head].mean()),
            attention_spread=float(heads["attention_spread"][:, head].mean()),
            sigma_a=float(heads["sigma_a"][:, head].mean()),
            sigma_a_max=float(heads["sigma_a"][:, head].max()),
            value_output_norm=float(weights.head_norm[head]),
            value_norm=float(weights.value_norm[head]),
        )
        for head in range(heads["lambda"].shape[1])
    ]


def share_that_holds(values: Mapping[str, np.ndarray], variant: str) -> float | None:
    """Share of texts with S(X)/‖μ(X)‖² ≤ C(1+√λ)²r, among those for which all four are defined."""
    bound = values["c"] * (1 + np.sqrt(values[variant])) ** 2 * values["r"]
    defined = np.isfinite(bound) & np.isfinite(values["normalised_spread"])
    if not defined.any():
        return None
    return float((values["normalised_spread"] <= bound * (1 + TOLERANCE))[defined].mean())


def _ratios_of_means(values: Mapping[str, np.ndarray]) -> dict[str, float | None]:
    mean = {name: float(values[name].mean()) for name in ("spread_h", "spread_z", "spread_y", "spread_x")}
    mean_Y, mean_X = (float(np.square(values[name]).mean()) for name in ("mean_norm_y", "mean_norm_x"))

    def ratio(top: float, bottom: float) -> float | None:
        return top / bottom if bottom > 0 else None

    spread_X, spread_Y = ratio(mean["spread_x"], mean_X), ratio(mean["spread_y"], mean_Y)
    return {
        "contraction": ratio(mean["spread_z"], mean["spread_h"]),
        "r": ratio(mean["spread_h"], mean_Y),
        "c": None if spread_X is None or spread_Y is None else ratio(spread_X, spread_Y),
        "normalised_spread": spread_X,
    }


@dataclass(frozen=True)
class LayerSummaries:
    """A corpus's summaries, and properties of the checkpoint's layers."""

    family: str
    norm_placement: str
    shares_weights: bool
    texts: int
    tokens_mean: float
    layers: list[LayerStat]
    heads: list[HeadStat]
    pooled: PooledStat
    weights: list[ValueOutput]


class Collector:
    """Collects the batches that ``measure_layers`` yields; ``finish`` returns the summaries."""

    def __init__(self) -> None:
        self.batches: dict[int, list[LayerBatch]] = {}
        self.pooled: list[PooledBatch] = []

    def add(self, batch: LayerBatch | PooledBatch) -> None:
        if isinstance(batch, PooledBatch):
            self.pooled.append(batch)
        else:
            self.batches.setdefault(batch.layer, []).append(batch)

    def finish(self, model: PreTrainedModel) -> LayerSummaries:
        """Averages of every layer and head.

        Raises:
            NotMeasurable: if no text has two tokens.
        """
        if not self.batches:
            raise NotMeasurable(
                "No text of this corpus has two tokens, and a single token has no spread.",
                kept="Measures that do not need layers are unaffected.",
                next_step="Give a corpus of longer texts.",
            )
        anatomy = anatomy_of(model)
        weights = [self.batches[layer][0].weights for layer in sorted(self.batches)]
        layers, heads = [], []
        for layer in sorted(self.batches):
            batches = self.batches[layer]
            layers.append(summarise_layer(layer, _joined([batch.values for batch in batches])))
            heads += summarise_heads(layer, _joined([batch.heads for batch in batches]), weights[layer])
        lengths = np.concatenate([np.full(len(batch.positions), batch.tokens) for batch in self.batches[0]])
        return LayerSummaries(
            family=anatomy.family.name,
            norm_placement=anatomy.family.norm_placement,
            shares_weights=anatomy.shares_layers,
            texts=len(lengths),
            tokens_mean=float(lengths.mean()),
            layers=layers,
            heads=heads,
            pooled=summarise_pooled(
                _joined([batch.values for batch in self.pooled]),
                has_final_norm=any(batch.has_final_norm for batch in self.pooled),
            ),
            weights=weights,
        )


def _joined(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
