"""Collects a corpus's layer values batch by batch for the summaries: numbers per text, never its tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from embaudit.checkpoint.anatomy import anatomy_of
from embaudit.measures.layers.layers import LayerBatch, PooledBatch, constants
from embaudit.measures.layers.summary import (
    HeadStat,
    LayerStat,
    PooledStat,
    summarise_heads,
    summarise_layer,
    summarise_pooled,
)
from embaudit.measures.layers.weights import ValueOutput
from embaudit.words.errors import NotMeasurable

if TYPE_CHECKING:
    from transformers import PreTrainedModel


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
        weights = constants(anatomy)
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
