"""Other ways to make a vector of the same states: pooling, modules skipped, dimensions cut, precision of the vector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.checkpoint.modules import POOLING_MODES
from embaudit.checkpoint.pooling import pool
from embaudit.checkpoint.probe import SegmentIds
from embaudit.questions.parity.readings import Attention, Reading, Windows
from embaudit.words.errors import MeasureError, is_of_machine

if TYPE_CHECKING:
    import torch

DECLARED = "declared"
CONTENT = "mean of the text's own tokens"
# All subsets of so many modules are tried; of more, one at a time and all.
FEW_MODULES = 3
# What a sequence's states depend on, and how they are pooled.
Key = tuple[tuple[int, ...], int, int, int, SegmentIds | None, Attention, int]


@dataclass(frozen=True)
class PoolingVariant:
    """A way to make vectors of states.

    Attributes:
        pooling: a mode, ``DECLARED`` or ``CONTENT``.
        layer: states after this many layers fewer.
        skipped: places of modules after pooling that are left out.
        by_length: windows are weighted by their lengths.
    """

    pooling: str = DECLARED
    layer: int = 0
    skipped: tuple[int, ...] = ()
    by_length: bool = False

    def said(self, kinds: Sequence[str], declared: str) -> tuple[str, ...]:
        """What is different from the declared way, each as the end of "it …"."""
        sentences = []
        if self.pooling == CONTENT:
            sentences.append("leaves special tokens out of the mean")
        elif self.pooling != DECLARED:
            sentences.append(f"takes {self.pooling} instead of {declared} pooling")
        if self.layer:
            sentences.append("takes the states of the layer before the last")
        sentences += [f"skips {kinds[place]}" for place in self.skipped]
        if self.by_length:
            sentences.append("weighs windows by their length")
        return tuple(sentences)

    @property
    def changes(self) -> int:
        return (self.pooling != DECLARED) + bool(self.layer) + len(self.skipped) + self.by_length


class Maker:
    """Makes vectors of readings in every way; states of one sequence are computed once.

    Args:
        dimension: of the vectors to reproduce.
    """

    def __init__(self, checkpoint: Checkpoint, dimension: int) -> None:
        self.checkpoint = checkpoint
        self.dimension = dimension
        steps = list(checkpoint.after_pooling.children())
        kinds = [module.kind for module in checkpoint.recipe.modules if module.kind != "Dropout"]
        self.kinds = [*kinds, *["the cut to fewer dimensions"] * (len(steps) - len(kinds))]
        self.steps = steps
        self._pooled: dict[Key, dict[tuple[str, int], np.ndarray]] = {}

    @property
    def declared_pooling(self) -> str:
        return "+".join(self.checkpoint.recipe.pooling)

    def makings(self, reading: Reading) -> Iterator[PoolingVariant]:
        """Every way that gives vectors of the right dimension, the declared one first."""
        places = range(len(self.steps))
        sizes = range(len(self.steps) + 1) if len(self.steps) <= FEW_MODULES else (0, 1, len(self.steps))
        for skipped in [subset for size in sizes for subset in combinations(places, size)]:
            for pooling in (DECLARED, CONTENT, *POOLING_MODES):
                if (pooling,) == self.checkpoint.recipe.pooling:
                    continue
                for layer in (0, 1):
                    for by_length in (False, True) if reading.averages else (False,):
                        yield PoolingVariant(pooling, layer, skipped, by_length)

    def vectors(self, reading: Reading, making: PoolingVariant, windows: Sequence[Windows]) -> np.ndarray | None:
        """(n, D) of texts whose windows were ``pool``ed before, not cut; NaN for a text without tokens.

        So is one that the network does not take. None if it takes none, if the modules do not take such a pooling, or
        if fewer dimensions than wanted come out.
        """
        return next(iter(self.in_each_way(reading, [making], windows)))

    def in_each_way(
        self, reading: Reading, makings: Iterable[PoolingVariant], windows: Sequence[Windows]
    ) -> Iterator[np.ndarray | None]:
        """The same of several ways, in their order; modules run once for those that leave out the same ones."""
        pooled = [self._pooled_ways(reading, some) for some in windows]
        sequences = [ways for text in pooled for ways in text]
        weights = [[window.weight for window in some] for some in windows]
        for skipped, some in groupby(makings, lambda making: making.skipped):
            asked = list(some)
            made = self._made_of(sequences, list(dict.fromkeys((one.pooling, one.layer) for one in asked)), skipped)
            for making in asked:
                rows = made.get((making.pooling, making.layer))
                if rows is None or rows.shape[1] < self.dimension:
                    yield None
                    continue
                vectors = np.full((len(windows), rows.shape[1]), np.nan)
                start = 0
                for text, ways in enumerate(pooled):
                    if ways:
                        part = rows[start : start + len(ways)]
                        by = weights[text] if making.by_length else None
                        vectors[text] = part[0] if len(ways) == 1 else np.average(part, axis=0, weights=by)
                        start += len(ways)
                yield vectors

    def _pooled_ways(self, reading: Reading, windows: Windows) -> list[Mapping[tuple[str, int], np.ndarray]]:
        """What each window of a text was ``pool``ed to, by pooling and layer; nothing if the network takes one not."""
        found = [self._pooled.get(self._key(reading, window.ids)) for window in windows]
        return [ways for ways in found if ways is not None] if None not in found else []

    def _made_of(
        self,
        sequences: Sequence[Mapping[tuple[str, int], np.ndarray]],
        asked: Sequence[tuple[str, int]],
        skipped: tuple[int, ...],
    ) -> dict[tuple[str, int], np.ndarray]:
        """(S, D) what modules make of sequences, by pooling and layer; without those that they do not take."""
        by_width: dict[int, list[tuple[str, int]]] = {}
        for way in asked:
            if sequences and all(way in ways for ways in sequences):
                by_width.setdefault(len(sequences[0][way]), []).append(way)
        found: dict[tuple[str, int], np.ndarray] = {}
        for ways in by_width.values():
            try:
                made = self._made(np.stack([ways_of[way] for way in ways for ways_of in sequences]), skipped)
            except (RuntimeError, ValueError) as error:
                if is_of_machine(error):
                    raise
                continue
            found |= zip(ways, made.reshape(len(ways), len(sequences), -1), strict=True)
        return found

    def pool(self, asked: Iterable[tuple[Reading, Sequence[Windows]]]) -> None:
        """Run the network on the sequences of readings that it has not run on yet, all together."""
        new: dict[tuple[Any, ...], tuple[Reading, dict[Key, tuple[int, ...]]]] = {}
        for reading, windows in asked:
            for window in (window for some in windows for window in some):
                key = self._key(reading, window.ids)
                if key not in self._pooled:
                    new.setdefault(key[1:], (reading, {}))[1][key] = window.ids
        for reading, sequences in new.values():
            keys = list(sequences)
            # Sequences that the network does not take (other attention, beyond its positions) have no vector.
            if not self._ran(reading, sequences, keys):
                for key in keys:
                    self._ran(reading, sequences, [key])

    def _ran(self, reading: Reading, sequences: Mapping[Key, tuple[int, ...]], keys: Sequence[Key]) -> bool:
        """Whether the network ran on these sequences; what came out is kept."""
        try:
            found = list(
                _Pooling(reading.checkpoint).every_way([list(sequences[key]) for key in keys], reading.attention)
            )
        # An id that no token has is a MeasureError.
        except (IndexError, MeasureError, RuntimeError, TypeError, ValueError) as error:
            if is_of_machine(error):
                raise
            return False
        self._pooled |= {keys[place]: pooled for place, pooled in found}
        return True

    def _made(self, pooled: np.ndarray, skipped: tuple[int, ...]) -> np.ndarray:
        import torch

        with torch.inference_mode():
            vectors = torch.from_numpy(pooled).to(self.checkpoint.device)
            for place, step in enumerate(self.steps):
                if place not in skipped:
                    vectors = step(vectors)
            return np.asarray(vectors.float().cpu().numpy(), dtype=np.float64)

    def _key(self, reading: Reading, ids: tuple[int, ...]) -> Key:
        checkpoint = reading.checkpoint
        around = len(checkpoint.prefix_ids), len(checkpoint.suffix_ids)
        return ids, checkpoint.prompt.unpooled, *around, checkpoint.segments, reading.attention, id(checkpoint.model)


class _Pooling(Encoder):
    """Runs the network once and pools in every way."""

    def every_way(
        self, sequences: Sequence[Sequence[int]], attention: Attention
    ) -> Iterator[tuple[int, dict[tuple[str, int], np.ndarray]]]:
        import torch

        checkpoint = self.checkpoint
        unpooled = checkpoint.prompt.unpooled
        before, after = len(checkpoint.prefix_ids), len(checkpoint.suffix_ids)
        for indices, ids, mask in self._batches(sequences):
            with torch.inference_mode():
                asked: dict[str, Any] = dict(checkpoint.inputs(ids, mask))
                if attention == "from zero":
                    asked |= {"position_ids": torch.arange(ids.shape[1], device=ids.device).expand_as(ids)}
                elif isinstance(attention, tuple):
                    # As the model makes them itself, one for each kind of layer.
                    whole = _seen(mask, "whole", checkpoint.model.dtype)
                    local = _seen(mask, attention, checkpoint.model.dtype)
                    asked |= {"attention_mask": {"full_attention": whole, "sliding_attention": local}}
                elif attention != "declared":
                    asked |= {"attention_mask": _seen(mask, attention, checkpoint.model.dtype)}
                given = checkpoint.model(**asked, output_hidden_states=True)
                earlier: tuple[torch.Tensor, ...] = getattr(given, "hidden_states", None) or ()
                states = {0: given.last_hidden_state}
                # Some models pad the states of their layers to whole blocks.
                if len(earlier) > 1 and earlier[-2].shape == given.last_hidden_state.shape:
                    states[1] = earlier[-2]
                found: dict[tuple[str, int], np.ndarray] = {}
                for layer, X in states.items():
                    modes = {DECLARED: checkpoint.recipe.pooling} | {mode: (mode,) for mode in POOLING_MODES}
                    for name, mode in modes.items():
                        found[name, layer] = pool(X, mask, mode, unpooled).float().cpu().numpy()
                    own = _own_tokens(mask, max(before, unpooled), after)
                    found[CONTENT, layer] = pool(X, own, ("mean",), 0).float().cpu().numpy()
            for row, index in enumerate(indices):
                yield int(index), {name: rows[row] for name, rows in found.items()}


def _seen(mask: torch.Tensor, attention: Attention, dtype: torch.dtype) -> torch.Tensor:
    """(B, 1, n, n) what is added to attention's logits: 0 where a token sees another, the least number elsewhere."""
    import torch

    seen = mask[:, None, None, :].bool().expand(-1, 1, mask.shape[1], -1)
    if attention == "causal":
        seen = seen.tril()
    elif isinstance(attention, tuple):
        before, after = attention
        seen = seen.triu(-before).tril(after)
    return torch.zeros(seen.shape, dtype=dtype, device=mask.device).masked_fill(~seen, torch.finfo(dtype).min)


def _own_tokens(mask: torch.Tensor, before: int, after: int) -> torch.Tensor:
    """The mask without the first and the last tokens of each sequence; of nothing else, the mean is zero."""
    import torch

    place = torch.arange(mask.shape[1], device=mask.device)
    lengths = mask.sum(1, keepdim=True)
    return mask * (place >= before) * (place < lengths - after)
