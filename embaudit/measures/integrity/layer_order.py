"""Are the layers in the order in which they were trained? Neighbours resemble each other.

All layers of a transformer read and write one stream of d numbers per token, and what training makes of a dimension
changes slowly from layer to layer: its gains, its biases, how much a layer reads of it (norms of columns) and writes to
it (norms of rows). With r_f(i, j) the correlation of such a profile f of layers i and j over the d dimensions, the
figure is what the best other order of the layers gains,

    max_π  mean_f Σ_i r_f(π_i, π_{i+1})  −  mean_f Σ_i r_f(i, i + 1) .

It is 0 for both trained checkpoints that it was tried on (6 and 12 layers), and .17 to .7 when two layers are swapped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.streamed import was_read
from embaudit.declared.rule import Finding, Rule, number, percent
from embaudit.measures.integrity.blocks import Block

if TYPE_CHECKING:
    import torch

MIN_LAYERS, MIN_PROFILES = 4, 6
# A profile tells layers apart only if each has a neighbour that it resembles.
INFORMATIVE = 0.3
# Of the similarity of a layer and the one that it resembles most, against the median layer's.
UNLIKE = 0.5
# What the other order must gain: in all, for each pair of neighbours that it changes, and in this share of profiles.
GAIN, GAIN_PER_PAIR, SHARE = 0.1, 0.05, 0.65
# What a transposed matrix gains in correlation with its neighbours.
TURNED = 0.4
RULE = Rule(
    "layer_order",
    look_if="layers of several models, or in no order at all",
    problem_if="two layers that changed places, one that moved, some turned round: neighbours would resemble each "
    f"other more in that order, by {number(GAIN)} and more over all profiles (gains, biases, norms of rows and "
    f"columns) and in {percent(SHARE)} of them",
    reason="0 for two trained checkpoints (6 and 12 layers), .17 to .7 with two layers swapped. Not judged: layers of "
    "several kinds in turn, and one that resembles none. A stack that is turned round as a whole has the same "
    "neighbours: its scores tell",
)
TRANSPOSED = Rule(
    "transposed_matrices",
    look_if="one square matrix",
    problem_if="several: the norms of their rows are those of the columns in the layers beside, by a correlation of "
    f"{number(TURNED)} more than rows with rows",
    reason="never in two trained checkpoints, and most of a layer's matrices when it was transposed",
)
NAMED_AT_MOST = 6


@dataclass(frozen=True)
class Order:
    """The order of layers that neighbours fit best.

    Attributes:
        given: the numbers of the layers that can be told apart, as in the file.
        places: the same in that order.
        profiles: how many there are.
        gain: in mean correlation, summed over neighbours.
        share: of profiles that gain.
        is_one_move: two layers change places, one moves, or some are turned round; not the whole stack.
    """

    given: tuple[int, ...]
    places: tuple[int, ...]
    profiles: int
    gain: float
    share: float
    is_one_move: bool

    @property
    def is_another(self) -> bool:
        """Whether the layers clearly stand in another order."""
        changed = len(_pairs(self.places) - _pairs(self.given))
        return self.gain >= max(GAIN, GAIN_PER_PAIR * changed) and self.share >= SHARE


def order_findings(checkpoint: Checkpoint, blocks: Sequence[Block]) -> list[Finding]:
    """One finding for each stack whose layers stand in another order; none if all are in order, or cannot be told."""
    config = checkpoint.model.config.get_text_config()
    # Layers of several kinds in turn resemble the next one of their kind.
    if len(set(getattr(config, "layer_types", None) or ())) > 1:
        return []
    stacks: dict[str, list[Block]] = defaultdict(list)
    for block in blocks:
        stacks[block.stack].append(block)
    findings = []
    for stack, layers in stacks.items():
        found = best_order(_profiles(layers, int(getattr(config, "hidden_size", 0) or 0)))
        if found is not None and found.is_another:
            findings.append(_finding(stack, found))
        if turned := transposed(layers):
            findings.append(_transposed_finding(turned))
    return findings


def transposed(layers: Sequence[Block]) -> list[str]:
    """Names of square matrices whose rows are like the columns of the same matrix in the layers beside them.

    That is, the norms of the rows correlate with those of the neighbours' columns, or the other way round, and by more
    than ``TURNED`` better than rows with rows and columns with columns.
    """
    found = []
    for name, tensor in layers[0].tensors.items() if len(layers) >= MIN_LAYERS else ():
        shapes = {tuple(block.tensors[name].shape) if name in block.tensors else () for block in layers}
        if tensor.dim() != 2 or shapes != {(tensor.shape[0], tensor.shape[0])}:
            continue
        tensors = [block.tensors[name] for block in layers]
        columns, rows = (_unit(_stacked(tensors, lambda one, side=side: _log_norms(one, side))) for side in (0, 1))  # type: ignore[misc]
        for place, block in enumerate(layers):
            # The two nearest: with one, a layer at the end would be taken for what is wrong with its only neighbour.
            beside = sorted({*range(len(layers))} - {place}, key=lambda other, place=place: abs(other - place))[:2]  # type: ignore[misc]
            as_is = max(_mean(columns[place], columns[beside]), _mean(rows[place], rows[beside]))
            turned = max(_mean(rows[place], columns[beside]), _mean(columns[place], rows[beside]))
            if turned - as_is >= TURNED:
                found.append(f"{block.name}.{name}")
    return found


def _log_norms(tensor: torch.Tensor, side: int) -> torch.Tensor:
    return tensor.norm(dim=side).clamp(min=1e-12).log()


def _unit(profile: np.ndarray) -> np.ndarray:
    centred = profile - profile.mean(axis=1, keepdims=True)
    return np.asarray(centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-12))


def _mean(profile: np.ndarray, others: np.ndarray) -> float:
    return float((others @ profile).mean())


def _transposed_finding(names: Sequence[str]) -> Finding:
    shown = ", ".join(names[:NAMED_AT_MOST]) + (" …" if len(names) > NAMED_AT_MOST else "")
    return TRANSPOSED.finding(
        "problem" if len(names) > 1 else "look",
        f"{len(names)} square {'matrices seem' if len(names) > 1 else 'matrix seems'} transposed: the norms of rows "
        f"are those of the columns in the layers beside: {shown}.",
        meaning="Layouts of linear layers differ between libraries; a conversion that mixes them up runs without an "
        "error.",
        advice="Transpose these matrices, or convert the checkpoint again.",
        value=float(len(names)),
    )


def best_order(profiles: Sequence[np.ndarray]) -> Order | None:
    """The order that neighbours fit best, by local search from the given one; None if they cannot tell.

    Args:
        profiles: (layers, d) each.
    """
    if not profiles or len(profiles[0]) < MIN_LAYERS:
        return None
    tables = np.array([table for profile in profiles if (table := _correlations(profile)) is not None])
    if len(tables) < MIN_PROFILES:
        return None
    mean = tables.mean(axis=0)
    nearest = (mean - 2 * np.eye(len(mean))).max(axis=1)
    # A layer that resembles none was damaged, or is unlike the others by its nature: its place cannot be told.
    given = np.flatnonzero(nearest >= UNLIKE * np.median(nearest))
    if len(given) < MIN_LAYERS:
        return None
    best, is_one_move, moves = given, True, 0
    while True:
        others = _moved(best)
        scores = _fit(mean, others)
        at = int(scores.argmax())
        if scores[at] <= _fit(mean, best[None])[0] + 1e-9:
            break
        best, moves = others[at], moves + 1
        is_one_move = moves == 1
    gains = _fit(tables, best[None])[:, 0] - _fit(tables, given[None])[:, 0]
    # A path has no direction.
    best = min(best, best[::-1], key=lambda order: int(np.abs(order - given).sum()))
    return Order(
        tuple(given.tolist()),
        tuple(best.tolist()),
        len(tables),
        float(gains.mean()),
        float((gains > 0).mean()),
        is_one_move,
    )


def _profiles(layers: Sequence[Block], width: int) -> list[np.ndarray]:
    """(layers, d) of each tensor that has a side of the stream's width: itself, or log norms along the other side."""
    found = []
    for name in layers[0].tensors:
        tensors = [block.tensors[name] for block in layers if name in block.tensors]
        shape = tuple(tensors[0].shape)
        if len(tensors) < len(layers) or any(tuple(tensor.shape) != shape for tensor in tensors):
            continue
        if shape == (width,):
            found.append(_stacked(tensors, lambda tensor: tensor))
        if len(shape) == 2:
            found += [
                _stacked(tensors, lambda tensor, side=side: _log_norms(tensor, side))  # type: ignore[misc]
                for side in (0, 1)
                if shape[1 - side] == width
            ]
    return found


def _stacked(tensors: Sequence[torch.Tensor], of: Callable[[torch.Tensor], torch.Tensor]) -> np.ndarray:
    import torch

    def read(tensor: torch.Tensor) -> torch.Tensor:
        profile = of(tensor.detach().float())
        was_read()
        return profile

    return np.asarray(torch.stack([read(tensor) for tensor in tensors]).cpu().numpy(), dtype=np.float64)


def _correlations(profile: np.ndarray) -> np.ndarray | None:
    """(layers, layers); None if a layer's profile is constant, or if layers do not resemble each other in it."""
    if not np.isfinite(profile).all():
        return None
    centred = profile - profile.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    if (lengths <= 1e-9).any():
        return None
    table = (centred / lengths) @ (centred / lengths).T
    nearest = (table - 2 * np.eye(len(table))).max(axis=1)
    return table if nearest.mean() >= INFORMATIVE else None


def _fit(tables: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """(…, orders) sum of the correlations of neighbours."""
    return np.asarray(tables[..., orders[:, :-1], orders[:, 1:]].sum(axis=-1))


def _moved(order: np.ndarray) -> np.ndarray:
    """(moves, layers): every order in which two layers change places, some are turned round, or one moves."""
    return np.array([*_moves(order)])


def _moves(order: np.ndarray) -> Iterator[np.ndarray]:
    count = len(order)
    for first in range(count):
        for last in range(first + 1, count):
            swapped, turned = order.copy(), order.copy()
            swapped[[first, last]] = order[[last, first]]
            turned[first : last + 1] = order[first : last + 1][::-1]
            yield swapped
            # Turned round as a whole, neighbours are the same.
            if last - first < count - 1:
                yield turned
        for place in range(count):
            yield np.insert(np.delete(order, first), place, order[first])


def _pairs(order: Sequence[int]) -> set[frozenset[int]]:
    return {frozenset(pair) for pair in zip(order, list(order)[1:], strict=False)}


def _finding(stack: str, found: Order) -> Finding:
    moved = [number for number, other in zip(found.given, found.places, strict=True) if number != other]
    named = ", ".join(str(place) for place in moved[:NAMED_AT_MOST]) + (" …" if len(moved) > NAMED_AT_MOST else "")
    better = ", ".join(map(str, found.places))
    return RULE.finding(
        "problem" if found.is_one_move else "look",
        f"The layers of {stack} seem to stand in another order than they were trained in: layers {named} resemble "
        f"their neighbours less than they would in the order {better} (in {found.share:.0%} of {found.profiles} "
        f"profiles of weights; the correlations of neighbours would add up to {found.gain:.2f} more).",
        meaning="Neighbouring layers of a trained network resemble each other. Layers that were swapped still run, and "
        "make every vector worse."
        if found.is_one_move
        else "Layers were put together from several models or copies, or lost their order.",
        advice="Compare the numbers of the layers in the file with the checkpoint that this one was made from.",
        value=found.gain,
    )
