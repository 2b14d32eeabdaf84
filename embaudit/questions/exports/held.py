"""Holds an ONNX file against the weights: the same texts of every kind, alone and in a batch, and their neighbours.

Its tensors beside the checkpoint's tell of which revision it is.
Exporters keep the names of embeddings, norms and biases, and quantisation leaves norms and biases as they are. Of a
revision that was trained further nearly all of them differ, so that even a rounded file tells whose it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.checkpoint.onnx_encoder import ELSEWHERE, OnnxEncoder, OnnxModel
from embaudit.checkpoint.onnx_file import FLOATS, OnnxFile, Precision
from embaudit.corpora.downstream import unit_rows
from embaudit.corpora.downstream.retrieval import overlaps, ranked
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.measures.quality.material import sample_material
from embaudit.questions.exports.quantised import BITS, Quantisation, quantised, rounding_of
from embaudit.questions.parity.compare import KindDifference, apart, compare_kind, is_apart, texts_by_kind
from embaudit.questions.parity.explain import explain
from embaudit.words.errors import CheckpointError

if TYPE_CHECKING:
    import torch

    from embaudit.questions.parity.explain import Explanation

# ‖Δ‖ / ‖W‖ that a shorter format leaves, with room for values near its smallest.
ROUNDED: dict[Precision, float] = {"float32": 1e-5, "float16": 2e-3, "bfloat16": 1e-2}
# Values of a tensor that are compared: a table of words need not be read whole.
MOST = 1 << 20
# Fewer tensors say nothing of a whole network.
FEWEST = 2


@dataclass(frozen=True)
class WeightsBeside:
    """How many of a file's tensors have a counterpart of the same name and size, and how many of those differ.

    Gains that are all 1 and biases that are all 0 are not counted: every checkpoint may have them.

    Attributes:
        largest: ‖Δ‖ / ‖W‖ of the one that differs most.
    """

    compared: int
    differing: int
    largest: float

    @property
    def are_the_same(self) -> bool:
        return self.compared >= FEWEST and not self.differing

    @property
    def are_others(self) -> bool:
        """Whether most differ. Optimisers fold scales into some norms, and leave the rest."""
        return self.compared >= FEWEST and 2 * self.differing > self.compared


def weights_beside(file: OnnxFile, model: torch.nn.Module) -> WeightsBeside:
    """Compare the floating-point tensors of a file with a model's, by name."""
    own = {
        name: tensor
        for name, tensor in model.state_dict().items()
        if tensor.dim() and tensor.is_floating_point() and bool((tensor != tensor.flatten()[0]).any())
    }
    apart = []
    for stored in file.weights:
        name = _name_in(own, stored.name)
        if name is None or not stored.has_values:
            continue
        tensor, shape = own[name], tuple(own[name].shape)
        # Matrices are stored as they multiply: the other way round.
        if stored.shape not in (shape, shape[::-1]):
            continue
        ways = [tensor.flatten()] if stored.shape == shape else []
        ways += [tensor.T.flatten()] if stored.shape == shape[::-1] and tensor.dim() == 2 else []
        values = file.values(stored, MOST)
        distance = min(_relative(values, way[:MOST].float().cpu().numpy()) for way in ways)
        apart.append((distance, distance > ROUNDED[FLOATS[stored.kind][0]]))
    return WeightsBeside(len(apart), sum(differs for _, differs in apart), max((one for one, _ in apart), default=0.0))


def _name_in(own: dict[str, torch.Tensor], name: str) -> str | None:
    """A model's tensor that a file's is, whatever the exporter put in front of its name."""
    rest = name
    while rest not in own:
        _, dot, rest = rest.partition(".")
        if not dot:
            return None
    return rest


def _relative(values: np.ndarray, own: np.ndarray) -> float:
    if values.shape != own.shape:
        return float("inf")
    difference = float(np.linalg.norm(values.astype(np.float64) - own))
    size = float(np.linalg.norm(own.astype(np.float64)))
    return difference / size if size else (0.0 if not difference else float("inf"))


# Of a kind: the first, which is the shortest where it matters, and the last.
TEXTS_PER_KIND = 2
# Servers put so many texts, and more, into a batch.
BATCH = 8
# Sentences of the embedded sample among which neighbours are looked for.
PAIRS = 60


@dataclass(frozen=True)
class ExportComparison:
    """One output of one ONNX file beside the weights.

    Attributes:
        name: the file's, and the output's if the file has several that may be served.
        is_pooled: whether pooling is in the file.
        length, batch: the one size that it takes; None for any.
        kinds: each text alone, by kind.
        batched: the same texts in batches, held against the file's own vectors of each alone.
        noise: (kinds,) median 1 − cosine that such a quantisation alone makes; None if it is none.
        overlap: mean share of a sentence's ten nearest that are the same; None if there was nothing to look for.
        explanation: which other pooling or modules it has; None if none was looked for.
        explained: median 1 − cosine that this leaves.
    """

    name: str
    precision: Precision
    producer: str
    is_pooled: bool
    length: int | None
    batch: int | None
    kinds: tuple[KindDifference, ...]
    batched: KindDifference
    weights: WeightsBeside
    dimensions: tuple[int, int]
    noise: tuple[float, ...] | None = None
    overlap: float | None = None
    explanation: Explanation | None = None
    explained: float = float("nan")

    @property
    def is_same(self) -> bool:
        """Whether it gives the same vectors to all texts that it gives one, but for rounding in float32."""
        return self.dimensions[0] == self.dimensions[1] and not any(map(is_apart, self.kinds))

    @property
    def distances(self) -> np.ndarray:
        """(n,) of all kinds."""
        return np.concatenate([kind.distances for kind in self.kinds])

    @property
    def median(self) -> float:
        return float(np.nanmedian(self.distances)) if np.isfinite(self.distances).any() else float("nan")

    @property
    def worst(self) -> float:
        return float(np.nanmax(self.distances)) if np.isfinite(self.distances).any() else float("nan")

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "precision": self.precision,
            "producer": self.producer,
            "median": _number(self.median),
            "worst": _number(self.worst),
            "batched": _number(self.batched.worst),
            "overlap": self.overlap,
            "weights_compared": self.weights.compared,
            "weights_differing": self.weights.differing,
            "kinds": [kind.as_json() for kind in self.kinds],
        }


class OwnVectors:
    """A checkpoint's own vectors, made once for all files that are held against them."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.texts: dict[str, tuple[str, ...]] = {
            kind: tuple(dict.fromkeys((*some[: TEXTS_PER_KIND - 1], some[-1])))
            for kind, some in texts_by_kind(checkpoint).items()
        }
        self._noise: dict[Quantisation, tuple[float, ...]] = {}

    @cached_property
    def rows(self) -> dict[str, np.ndarray]:
        return self._by_kind(CheckpointFunction(self.checkpoint).encode(self._flat).vectors)

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        pairs = sample_material().pairs[0].first(PAIRS)
        return tuple(dict.fromkeys((*pairs.firsts, *pairs.seconds)))

    @cached_property
    def nearest(self) -> np.ndarray:
        """(sentences, ≤ 10) places of the nearest by the checkpoint's own vectors."""
        return _nearest(Encoder(self.checkpoint).encode_texts(self.sentences))

    def hold(self, file: OnnxFile, name: str) -> Iterator[ExportComparison]:
        """Each output of a file that may be served.

        Raises:
            CheckpointError: if onnxruntime cannot run it.
        """
        model = OnnxModel(file)
        weights = weights_beside(file, self.checkpoint.model)
        for reading in model.readings:
            shown = name if len(model.readings) == 1 else f"{name} ({reading})"
            yield self._held(OnnxEncoder(model, self.checkpoint, reading), shown, weights)

    def noise(self, rounding: Quantisation) -> tuple[float, ...]:
        """(kinds,) median 1 − cosine of the checkpoint's own vectors to those with rounded matrices."""
        if rounding not in self._noise:
            with quantised(self.checkpoint.model, rounding):
                rows = self._by_kind(CheckpointFunction(self.checkpoint).encode(self._flat).vectors)
            medians = [_median(apart(rows[kind], own)) for kind, own in self.rows.items()]
            self._noise[rounding] = tuple(medians)
        return self._noise[rounding]

    def _held(self, encoder: OnnxEncoder, name: str, weights: WeightsBeside) -> ExportComparison:
        model, flat = encoder.model, self._flat
        alone = encoder.rows(flat)
        failures = dict(encoder.failures)
        if not alone.shape[1]:
            raise CheckpointError(
                f"onnxruntime does not run {name}: {next(iter(failures.values()), 'no text has a vector')}",
                next_step=ELSEWHERE,
            )
        rows = self._by_kind(alone)
        kinds = []
        for kind, texts in self.texts.items():
            failed = {place: failures[text] for place, text in enumerate(texts) if text in failures}
            kinds.append(compare_kind(kind, texts, self.rows[kind], rows[kind], failed))
        precision = model.file.precision
        held = ExportComparison(
            name,
            precision,
            model.file.producer,
            model.is_pooled(encoder.reading),
            model.length,
            model.batch,
            tuple(kinds),
            self._batched(encoder, alone),
            weights,
            (self.checkpoint.dimension, alone.shape[1]),
        )
        return held if held.is_same else _with_reasons(held, self, encoder, rows)

    def _batched(self, encoder: OnnxEncoder, alone: np.ndarray) -> KindDifference:
        """Batches of texts of all kinds, so that short ones stand beside long ones."""
        mixed = [place for start in range(BATCH) for place in range(start, len(self._flat), BATCH)]
        encoder.failures.clear()
        found = np.full_like(alone, np.nan)
        given = encoder.rows([self._flat[place] for place in mixed], BATCH)
        if given.shape[1] == alone.shape[1]:
            found[mixed] = given
        texts = self._flat
        failed = {place: reason for text, reason in encoder.failures.items() for place in [texts.index(text)]}
        kept = {place: reason for place, reason in failed.items() if np.isfinite(alone[place]).all()}
        return compare_kind("in a batch", texts, alone, found, kept)

    @cached_property
    def _flat(self) -> list[str]:
        return [text for some in self.texts.values() for text in some]

    def _by_kind(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        ends = np.cumsum([len(some) for some in self.texts.values()])[:-1]
        return dict(zip(self.texts, np.split(rows, ends), strict=True))


def _with_reasons(
    held: ExportComparison, beside: OwnVectors, encoder: OnnxEncoder, rows: Mapping[str, np.ndarray]
) -> ExportComparison:
    """What else there is to know of a file whose vectors are others: how much comes of rounding, and what does not."""
    noise = beside.noise(rounding_of(encoder.model.file)) if held.precision in BITS else None
    found = encoder.rows(beside.sentences, BATCH)
    overlap = float(overlaps(beside.nearest, _nearest(np.nan_to_num(found))).mean()) if found.shape[1] else None
    # What a file may have in it: the way from states to a vector, and not what is done to texts.
    explanation, explained = None, float("nan")
    # A model of a stranger, used as nobody uses it, may raise anything: what was measured is kept.
    with suppress(Exception):
        explanation = explain(beside.checkpoint, beside.texts, rows, rounds=0)
        if explanation.leaves is not None:
            left = [explanation.leaves(beside.texts[kind], some) for kind, some in rows.items()]
            explained = _median(np.concatenate(left))
    return replace(held, noise=noise, overlap=overlap, explanation=explanation, explained=explained)


def _nearest(rows: np.ndarray) -> np.ndarray:
    unit = unit_rows(np.asarray(rows, dtype=np.float64))
    return ranked(unit @ unit.T, [frozenset([place]) for place in range(len(unit))])


def _median(values: Sequence[float] | np.ndarray) -> float:
    found = np.asarray(values)
    return float(np.nanmedian(found)) if np.isfinite(found).any() else float("nan")


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None
