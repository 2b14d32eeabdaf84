"""One pass over texts that keeps what several questions need: each pooling, and the state after each layer.

States between layers are reduced as soon as they are computed: never those of all layers at once.
transformers returns them together (``output_hidden_states``), which for a batch of 2 048 tokens of a decoder of 24
layers and 896 dimensions is .18 GB, and grows with depth and width. The state after a layer is what the next one is
given; where each is found among what modules are given, on two texts and bit by bit, it is taken from there. Where one
is not (no layers of its own, states that are cut or scaled in between), they are asked for together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import scipy

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.pooling import pool
from embaudit.corpora.downstream import unit_rows
from embaudit.words.errors import MeasureError, is_of_machine

if TYPE_CHECKING:
    import torch

Reduced = TypeVar("Reduced")
# Texts and their tokens by which a model's layers are found: more than one, so that padding is looked at, too.
TEXTS, TOKENS = 2, 16


@dataclass(frozen=True)
class LayerInputs:
    """Where the states before each layer are met.

    Attributes:
        modules: those that are given one.
        calls: which calls of these modules, counted together, are given the state after the embeddings, the first
            layer, …, the last but one.
        whole: how many calls there are in a pass.
    """

    modules: tuple[torch.nn.Module, ...]
    calls: tuple[int, ...]
    whole: int


_KNOWN: WeakKeyDictionary[torch.nn.Module, LayerInputs | None] = WeakKeyDictionary()


def last_and_stops(
    model: torch.nn.Module, inputs: Mapping[str, torch.Tensor], reduce: Callable[[torch.Tensor], Reduced]
) -> tuple[torch.Tensor, list[Reduced]]:
    """The last state (B, n, d), and each state reduced: after the embeddings, the first layer, …, the last.

    The last one is what the model returns, after a final norm. Empty if a model returns no states.
    """
    where = _found(model, inputs)
    if where is not None:
        with _reducing(where, reduce) as found:
            last = model(**inputs).last_hidden_state
        if len(found) == len(where.calls):
            return last, [*found, reduce(last)]
    given = model(**inputs, output_hidden_states=True)
    states = getattr(given, "hidden_states", None) or ()
    last = given.last_hidden_state
    return last, [*(reduce(state) for state in states[:-1]), reduce(last)] if states else []


def _found(model: torch.nn.Module, inputs: Mapping[str, torch.Tensor]) -> LayerInputs | None:
    """Looked for once in a model's life; None if its states are not what modules are given."""
    if model not in _KNOWN:
        rows = {name: tensor[-TEXTS:, :TOKENS] for name, tensor in inputs.items() if tensor.dim() > 1}
        is_plain = len(rows) == len(inputs) and all(tensor.dim() == 2 for tensor in rows.values())
        _KNOWN[model] = _look(model, rows) if is_plain else None
    return _KNOWN[model]


def _look(model: torch.nn.Module, inputs: Mapping[str, torch.Tensor]) -> LayerInputs | None:
    import torch

    layers = [
        layer for stack in model.modules() if isinstance(stack, torch.nn.ModuleList) for layer in stack.children()
    ]
    met: list[tuple[torch.nn.Module, torch.Tensor, torch.Tensor]] = []

    def note(layer: torch.nn.Module, state: torch.Tensor) -> None:
        # A copy beside it: a layer may write into what it is given.
        met.append((layer, state, state.clone()))

    with _told(layers, note):
        given = model(**inputs, output_hidden_states=True)
    states: Sequence[torch.Tensor] = getattr(given, "hidden_states", None) or ()
    places: list[int] = []
    for state in states[:-1]:
        start = places[-1] + 1 if places else 0
        place = next((at for at in range(start, len(met)) if met[at][1] is state), None)
        if place is None or not torch.equal(met[place][2], state):
            return None
        places.append(place)
    if not places or states[-1].shape != given.last_hidden_state.shape:
        return None
    modules = tuple(dict.fromkeys(met[place][0] for place in places))
    calls = [place for place, (layer, *_) in enumerate(met) if layer in modules]
    return LayerInputs(modules, tuple(calls.index(place) for place in places), len(calls))


@contextmanager
def _reducing(where: LayerInputs, reduce: Callable[[torch.Tensor], Reduced]) -> Iterator[list[Reduced]]:
    """What is found of the states while a model runs; nothing if it ran in another way than it was looked at."""
    found: list[Reduced] = []
    count = 0
    wanted = frozenset(where.calls)

    def note(_: torch.nn.Module, state: torch.Tensor) -> None:
        nonlocal count
        if count in wanted:
            found.append(reduce(state))
        count += 1

    with _told(where.modules, note):
        yield found
    if count != where.whole:
        found.clear()


@contextmanager
def _told(layers: Sequence[torch.nn.Module], note: Callable[[torch.nn.Module, torch.Tensor], None]) -> Iterator[None]:
    """Call ``note`` with each of these modules and what it is given first, whenever it is called."""
    import torch

    def before(layer: torch.nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
        state = args[0] if args else named.get("hidden_states")
        if isinstance(state, torch.Tensor):
            note(layer, state)

    with ExitStack() as hooks:
        for layer in dict.fromkeys(layers):
            hooks.callback(layer.register_forward_pre_hook(before, with_kwargs=True).remove)
        yield


# How else a text could be pooled. Means over √n are the mean up to length, so the cosine is the same.
POOLINGS = ("cls", "mean", "max", "lasttoken", "weightedmean")
SERVED = "served"
UNNORMALISED = "without Normalize"


@dataclass(frozen=True)
class Pass:
    """Vectors of texts, in the order given.

    Attributes:
        vectors: (N, D) float32 by name: ``SERVED``; each other pooling, if the modules after it take one; and
            ``UNNORMALISED`` if the checkpoint normalises.
        layers: (N, D) float32 if the network stopped after its embeddings, its first layer, …, its last; empty if not
            asked for, or if the model does not return them.
    """

    vectors: dict[str, np.ndarray]
    layers: tuple[np.ndarray, ...] = ()

    @property
    def served(self) -> np.ndarray:
        return self.vectors[SERVED]


class MultiPoolingEncoder(Encoder):
    """Encodes each text once and pools its states in every way that was asked for."""

    def passes(
        self, sequences: Sequence[Sequence[int]], poolings: Sequence[str] = (), *, with_layers: bool = False
    ) -> Pass:
        """Vectors of id sequences (prompt and special tokens included).

        Raises:
            MeasureError: if a vector is not finite.
        """
        import torch

        named: dict[str, np.ndarray] = {}
        stops: list[np.ndarray] = []
        for indices, ids, mask in self._batches(sequences):
            with torch.inference_mode():
                last, layers = self._states(ids, mask, with_layers=with_layers)
                vectors = {SERVED: self._after(last, mask, self.checkpoint.recipe.pooling)}
                others = [mode for mode in poolings if (mode,) != self.checkpoint.recipe.pooling]
                vectors |= {mode: found for mode in others if (found := self._other(last, mask, mode)) is not None}
                if poolings and (found := self._unnormalised(last, mask)) is not None:
                    vectors[UNNORMALISED] = found
            if not np.isfinite(vectors[SERVED]).all():
                row = int(np.argmin(np.isfinite(vectors[SERVED]).all(axis=1)))
                raise MeasureError(
                    f"The checkpoint gives NaN or infinity for a text of {len(sequences[indices[row]])} tokens.",
                    next_step="The checkpoint is damaged; in half precision, try --dtype float32.",
                )
            # Not beside the next batch's.
            del last
            # Where they belong, so that no vector is in memory twice.
            if not named:
                named = {name: _room(len(sequences), rows) for name, rows in vectors.items()}
                stops = [_room(len(sequences), rows) for rows in layers]
            for name, all_rows in named.items():
                all_rows[indices] = vectors[name]
            for all_rows, rows in zip(stops, layers, strict=True):
                all_rows[indices] = rows
        return Pass(named, tuple(stops))

    def _states(
        self, ids: torch.Tensor, mask: torch.Tensor, *, with_layers: bool
    ) -> tuple[torch.Tensor, list[np.ndarray]]:
        """The last state (B, n, d), and the vectors (B, D) if the network stopped after each."""
        if not with_layers:
            return self._hidden(ids, mask), []
        self.texts += len(ids)
        self.tokens += int(mask.sum())
        inputs = self.checkpoint.inputs(ids, mask)
        return last_and_stops(self.checkpoint.model, inputs, lambda state: self._stopped(state, mask))

    def _after(self, states: torch.Tensor, mask: torch.Tensor, modes: tuple[str, ...]) -> np.ndarray:
        pooled = pool(states, mask, modes, self.checkpoint.prompt.unpooled)
        return np.asarray(self.checkpoint.after_pooling(pooled).float().cpu().numpy())

    def _other(self, states: torch.Tensor, mask: torch.Tensor, mode: str) -> np.ndarray | None:
        try:
            return self._after(states, mask, (mode,))
        except (RuntimeError, ValueError) as error:  # a Dense for several poolings side by side takes no single one
            if is_of_machine(error):
                raise
            return None

    def _unnormalised(self, states: torch.Tensor, mask: torch.Tensor) -> np.ndarray | None:
        """The vectors without a last Normalize; None if the checkpoint declares none."""
        modules = self.checkpoint.recipe.modules
        if not modules or modules[-1].kind != "Normalize":
            return None
        steps = [step for step in self.checkpoint.after_pooling.children() if type(step).__name__ != "UnitLength"]
        vectors = pool(states, mask, self.checkpoint.recipe.pooling, self.checkpoint.prompt.unpooled)
        for step in steps:
            vectors = step(vectors)
        return np.asarray(vectors.float().cpu().numpy())

    def _stopped(self, state: torch.Tensor, mask: torch.Tensor) -> np.ndarray:
        """The served vector of an earlier state; without the modules after pooling if they do not fit its width."""
        try:
            return np.nan_to_num(self._after(state, mask, self.checkpoint.recipe.pooling))
        except (RuntimeError, ValueError) as error:
            if is_of_machine(error):
                raise
            pooled = pool(state, mask, self.checkpoint.recipe.pooling, self.checkpoint.prompt.unpooled)
            return np.nan_to_num(pooled.float().cpu().numpy())


def _room(texts: int, rows: np.ndarray) -> np.ndarray:
    """For vectors like these, (B, D), of so many texts."""
    return np.empty((texts, *rows.shape[1:]), dtype=rows.dtype)


def of_pairs(firsts: np.ndarray, seconds: np.ndarray, similarity: str = "cosine") -> np.ndarray:
    """(n,) float64 similarity of the rows of (n, d) and (n, d)."""
    if similarity in ("euclidean", "manhattan"):
        apart = np.abs(firsts.astype(np.float64) - seconds)
        return -(apart.sum(axis=1) if similarity == "manhattan" else np.sqrt((apart**2).sum(axis=1)))
    one, two = (unit_rows(rows) if similarity == "cosine" else rows.astype(np.float64) for rows in (firsts, seconds))
    return np.einsum("nd,nd->n", one, two)


def of_all(queries: np.ndarray, documents: np.ndarray, similarity: str = "cosine") -> np.ndarray:
    """(q, n) float64 similarity of each row of (q, d) to each of (n, d)."""
    if similarity in ("euclidean", "manhattan"):
        return -scipy.spatial.distance.cdist(
            queries, documents, "cityblock" if similarity == "manhattan" else similarity
        )
    one, two = (unit_rows(rows) if similarity == "cosine" else rows.astype(np.float64) for rows in (queries, documents))
    return np.asarray(one @ two.T)
