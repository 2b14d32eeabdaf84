"""Figures over texts, from states that are encoded once: geometry, SOCM, poolings, layers, length, occurrence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks.coverage.draws import SHARE, Ended, Population
from embaudit.checkpoint import Encoder
from embaudit.measures.geometry.geometry import measure_geometry
from embaudit.measures.layers.layers import LayerBatch, measure_layers
from embaudit.measures.layers.steps import Collector, summarise_layer, summarise_pooled
from embaudit.measures.length import Condition
from embaudit.measures.length.curve import BinValue, rises
from embaudit.measures.length.spans import mean_cosine, windows_of
from embaudit.measures.occurrence.occurrence import ALL, Movement, measure_removals, take_out
from embaudit.measures.socm.clouds import TokenCloud, clouds_of
from embaudit.measures.socm.lengths import LengthCells
from embaudit.measures.socm.pairs import PairBlock, all_pairs
from embaudit.measures.socm.summary import summarise
from embaudit.measures.socm.tightness import cloud_angles, compare_poolings
from embaudit.words.estimate import Estimate

# All pairs of these are kept, 32 bytes each.
SOCM_TEXTS = 2_000
CUT = 16
LENGTHS, LENGTH_TEXTS = (16, 32), 2_000
OCCURRENCE_TEXTS, ANCHORS, PER_DRAW = 1_000, 200, 30
COMMON_TOKENS = 10


def geometry(encoder: Encoder, texts: Sequence[str]) -> Population:
    vectors = encoder.encode_texts(texts)

    def figures(places: np.ndarray) -> dict[str, Ended]:
        found = measure_geometry(vectors[places], 10).figures
        return {name: (one.value, one.low, one.high) for name, one in found.items()}

    return Population("geometry", len(texts), min(1_000, len(texts) // SHARE), figures)


def layers(encoder: Encoder, texts: Sequence[str]) -> Population:
    """Layers and pooled states; texts are numbered by length, as they are measured."""
    collector, positions = Collector(), []
    for batch in measure_layers(encoder, texts):
        collector.add(batch)
        if isinstance(batch, LayerBatch) and batch.layer == 0:
            positions.append(batch.positions)
    batches = {layer: [batch.values for batch in found] for layer, found in collector.batches.items()}
    by_layer = {layer: _joined(found) for layer, found in batches.items()}
    pooled = _joined([batch.values for batch in collector.pooled])
    items = sum(map(len, positions))

    def figures(places: np.ndarray) -> dict[str, Ended]:
        found: dict[str, Ended] = {}
        for layer, values in by_layer.items():
            means = summarise_layer(layer, {name: own[places] for name, own in values.items()}).means
            found |= {f"{name} [layer {layer}]": (mean.value, mean.low, mean.high) for name, mean in means.items()}
        of_pooled = summarise_pooled({name: own[places] for name, own in pooled.items()}, has_final_norm=False)
        return {
            **found,
            **{f"pooled {name}": (mean.value, mean.low, mean.high) for name, mean in of_pooled.means.items()},
        }

    return Population("layers", items, min(1_000, items // SHARE), figures)


def _joined(parts: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


class Pairs:
    """SOCM's distances between all pairs of some texts."""

    def __init__(self, states: Iterator[tuple[int, np.ndarray]]) -> None:
        found, _ = clouds_of((place, X.copy()) for place, X in states)
        self.clouds = [
            TokenCloud(place, one.tokens, one.peak, one.relative_norm, one.unit_mean, one.trace)
            for place, one in enumerate(found)
        ]
        self.traces = np.array([cloud.trace for cloud in self.clouds])
        self.tokens = np.array([cloud.n for cloud in self.clouds])
        size = len(self.clouds)
        self.d_mu, self.d_sigma = np.zeros((size, size)), np.zeros((size, size))
        for block in all_pairs(self.clouds):
            self.d_mu[block.first, block.second] = block.d_mu
            self.d_sigma[block.first, block.second] = block.d_sigma

    def among(self, places: np.ndarray) -> PairBlock:
        """The pairs of the texts at ascending places, which are numbered from 0."""
        first, second = np.triu_indices(len(places), 1)
        at = places[first], places[second]
        d_mu, d_sigma = self.d_mu[at], self.d_sigma[at]
        return PairBlock(first, second, d_mu, d_sigma, (1 - d_mu) * d_sigma)


def socm(encoder: Encoder, texts: Sequence[str]) -> Iterator[Population]:
    """The average with cells by length; poolings; and the average of cut texts."""
    whole = Pairs(encoder.token_embeddings(texts[:SOCM_TEXTS]))

    def average(pairs: Pairs) -> Callable[[np.ndarray], dict[str, Ended]]:
        def figures(places: np.ndarray) -> dict[str, Ended]:
            cells = LengthCells(pairs.tokens[places], pairs.traces[places])
            found = summarise(pairs.traces[places], cells.passing([pairs.among(places)]))
            by_length: dict[str, Ended] = {
                f"by length [{cell.shorter}, {cell.longer}]": (cell.socm_mean, cell.socm_low, cell.socm_high)
                for cell in cells.cells()
            }
            return {"mean": (found.socm_mean, found.socm_low, found.socm_high), **by_length}

        return figures

    def poolings(places: np.ndarray) -> dict[str, Ended]:
        block = whole.among(places)
        first, second = (whole.traces[places[side]] for side in (block.first, block.second))
        angles = cloud_angles(block.d_mu, block.d_sigma, first, second)
        own = [whole.clouds[place].tokens for place in places.tolist()]
        found: dict[str, Ended] = {}
        for one in compare_poolings(own, block.first, block.second, angles):
            found[f"kept [{one.pooling}]"] = one.kept, one.kept_low, one.kept_high
            found[f"correlation [{one.pooling}]"] = one.correlation, one.correlation_low, one.correlation_high
        return found

    size = len(whole.clouds)
    yield Population("SOCM", size, size // SHARE, average(whole))
    yield Population("SOCM's poolings", size, size // SHARE, poolings)
    ids = [own[:CUT] for own in encoder.own_ids(texts) if len(own) >= CUT][:SOCM_TEXTS]
    cut = Pairs(encoder.token_embeddings_of_ids([encoder.checkpoint.with_special_tokens(one) for one in ids]))
    size = len(cut.clouds)
    yield Population(f"SOCM of texts cut to {CUT} tokens", size, size // SHARE, average(cut))


def length(encoder: Encoder, texts: Sequence[str]) -> Population:
    """Mean cosines of the same texts cut to two lengths, whole and in windows, and the share of the rise."""
    own = [ids for ids in encoder.own_ids(texts) if len(ids) >= LENGTHS[-1]][:LENGTH_TEXTS]
    around = encoder.checkpoint.with_special_tokens
    vectors: dict[tuple[Condition, int], np.ndarray] = {}
    for tokens in LENGTHS:
        vectors["truncation", tokens] = encoder.encode_ids([around(ids[:tokens]) for ids in own])
        windows = [windows_of(ids[:tokens], LENGTHS[0]) for ids in own]
        encoded = encoder.encode_ids([around(window) for of_text in windows for window in of_text])
        vectors["windows", tokens] = encoded.reshape(len(own), -1, encoded.shape[1]).mean(axis=1)

    def figures(places: np.ndarray) -> dict[str, Ended]:
        cosines = {key: mean_cosine(found[places]) for key, found in vectors.items()}
        values = [
            BinValue(condition, tokens, tokens, tokens, beyond_limit=False, cosine=cosine)
            for (condition, tokens), cosine in cosines.items()
        ]
        share = next(
            Estimate.of(vars(rise), "share_of_truncation") for rise in rises(values) if rise.condition == "windows"
        )
        means: dict[str, Ended] = {
            f"cosine [{condition}, {tokens} tokens]": (one.mean, one.low, one.high)
            for (condition, tokens), one in cosines.items()
        }
        return {**means, "share of the rise in windows": (share.value, share.low, share.high)}

    return Population("length", len(own), len(own) // SHARE, figures)


def occurrence(encoder: Encoder, texts: Sequence[str]) -> Population:
    """What taking out the ten most frequent tokens of a corpus does to texts: any tokens do for an interval."""
    own = encoder.own_ids(texts)
    counts = Counter(token for ids in own for token in ids)
    common = {token for token, _ in counts.most_common(COMMON_TOKENS)}
    removals = [take_out(place, ids, common, 0) for place, ids in enumerate(own[ANCHORS:], start=ANCHORS)]
    removed = [one for one in removals if one is not None][:OCCURRENCE_TEXTS]
    moved = measure_removals(encoder, {ALL: removed}, list(enumerate(own[:ANCHORS])))[ALL]

    def figures(places: np.ndarray) -> dict[str, Ended]:
        found = Movement(moved.shift[places], moved.moved[places], moved.ordinary[places]).columns()
        return {name: (found[name], found[f"{name}_low"], found[f"{name}_high"]) for name in NAMES}

    return Population("occurrence", len(removed), min(PER_DRAW, len(removed) // SHARE), figures)


NAMES = ("shift", "moved", "excess")
